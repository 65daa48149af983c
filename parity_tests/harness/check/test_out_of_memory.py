"""A lack of memory, told with the step and the size."""

import numpy as np
import pytest
import typer

from transformer_contract.config import PLAIN
from parity import ports, out_of_memory
from parity.commands.shell import told_plainly
from reference_numpy.attention import MultiHeadAttention

#: Where scores alone are many terabytes, and nothing else is large.
MANY = 2**23


def lack_of_memory():
    """What NumPy raises for the scores of so many queries and keys."""
    query = np.broadcast_to(np.float64(1), (1, 1, MANY, 1))
    mask = np.broadcast_to(True, (1, 1, 1, MANY))
    with pytest.raises(MemoryError) as caught:
        MultiHeadAttention(PLAIN.replace(d_model=2, n_heads=2)).attend(
            query, query, query, mask, 0, {})
    return caught.value


def test_the_step_and_the_size_are_named():
    words = out_of_memory.message(lack_of_memory(), ports.packages())
    assert words.startswith("there is not enough memory for 512. TiB")
    assert f"(1, 1, {MANY}, {MANY})" in words
    assert ("at step scores of attend in reference_numpy/attention.py, line "
            in words)


@pytest.mark.parametrize("said, told", [
    ("DefaultCPUAllocator: can't allocate memory: you tried to allocate "
     "57600000000 bytes. Error code 12", "for 53.6 GiB;"),
    ("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has",
     "for 20.00 GiB;"),
    ("RESOURCE_EXHAUSTED: Out of memory allocating 1073741824 bytes.",
     "for 1 GiB;"),
    ("OOM when allocating tensor with shape[1,2,6,6] and type double",
     "for an array of shape [1,2,6,6];"),
    ("std::bad_alloc", "for this;"),
])
def test_each_librarys_words(said, told, capsys):
    with pytest.raises(typer.Exit), told_plainly():
        raise RuntimeError(said)
    assert f"not enough memory {told}" in capsys.readouterr().err


def test_another_error_is_no_lack_of_memory():
    assert out_of_memory.message(RuntimeError("no memory of that")) == ""
    with pytest.raises(RuntimeError), told_plainly():
        raise RuntimeError("shape [3]")
