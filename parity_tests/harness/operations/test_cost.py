"""What the sight of operations costs: time, memory, lines on the screen."""

import os

import numpy as np
import pytest

from parity.commands.scripts import call_script
from parity.operations.keeping import put_down
from parity.operations.program import MADE, Program
from parity.operations.signature import BLOCK, signature
from parity.tracing.storage import is_stored


@pytest.mark.parametrize("size", [BLOCK + 1, 2 * BLOCK, 3 * BLOCK - 5])
def test_a_long_array_is_summed_block_by_block(size):
    numbers = np.random.default_rng(0).normal(size=size)
    numbers[7] = np.nan
    large, shuffled = signature(numbers), signature(numbers[::-1])
    assert large.special == (1, 0, 0) and large.telling
    np.testing.assert_allclose(large.moments, shuffled.moments, rtol=1e-12)
    sizes = np.abs(numbers[~np.isnan(numbers)])
    assert large.moments[-1] == np.median(sizes)
    np.testing.assert_allclose(
        large.moments[3], np.mean(1 / (1 + (sizes / np.median(sizes)) ** 2)),
        rtol=1e-12)


def test_a_long_array_of_few_numbers_has_a_signature():
    made = signature(np.arange(2 * BLOCK) % 2 == 0)
    assert (made.kind, made.moments[-1], made.telling) == ("b", 1.0, False)
    assert signature(np.zeros(2 * BLOCK)).moments == (0.0,) * 6


def test_a_large_value_lies_in_a_file_and_once():
    programs = Program("numpy", True), Program("numpy", True)
    array = np.random.default_rng(0).normal(size=BLOCK)
    for program in programs:
        put_down(program, True, array.copy(), MADE, "", "float64")
    first, second = (program.values[0].array for program in programs)
    assert is_stored(first) and first is second
    np.testing.assert_array_equal(first, array)


def test_what_is_the_same_in_a_second_run_is_not_computed_anew():
    before, program = Program("numpy", True), Program("numpy", True)
    array = np.linspace(0, 1, 12)
    put_down(before, True, array, MADE, "", "float64")
    put_down(program, True, array.copy(), MADE, "", "float64", before=before)
    put_down(program, True, array, MADE, "", "float64", before=before)
    assert program.values[0].signature is before.values[0].signature
    assert program.values[1].signature == before.values[0].signature


def test_equal_bytes_of_another_kind_are_no_known_array():
    numbers = np.zeros(4)
    known = signature(numbers)
    assert signature(numbers.astype(np.int64), known).kind == "i"


def test_libraries_do_not_tell_of_themselves(tmp_path, capfd):
    script = tmp_path / "model.py"
    script.write_text("""
import os
os.write(2, b"WARNING: All log messages before absl::InitializeLog() is\\n"
            b"I0000 00:00:1795.747 27705 port.cc:153] oneDNN is on.\\n"
            b"E0000 00:00:1795.747 27705 port.cc:153] it fails\\n"
            b"a word of the user's\\n")
def make():
    return 1, ()
""")
    call_script(f"{script}:make")
    assert capfd.readouterr().err == (
        "E0000 00:00:1795.747 27705 port.cc:153] it fails\n"
        "a word of the user's\n")
    os.write(2, b"and afterwards\n")
    assert capfd.readouterr().err == "and afterwards\n"
