"""Two dumps without operations: how an array of b is made of a's is named."""

import ml_dtypes
import numpy as np
import pytest

from parity_io.errors import InputError
from parity.causes.by_arrays import in_words, made_of
from parity.causes.deciding import decide
from parity.comparison.compare import compare
from parity.dumps.read import load
from parity.numerics.comparator import DIVERGENCE, MATCH

DRAW = np.random.default_rng(0)
X, W, V = (DRAW.normal(size=shape) for shape in ((2, 6), (6, 4), (4, 3)))
SQUARE, HEADS = DRAW.normal(size=(5, 5)), DRAW.normal(size=(2, 12))
ACT = np.tanh(X @ W)
ARRAYS = {"inputs/x": X, "parameters/w": W, "parameters/v": V, "pre": X @ W,
          "act": ACT, "square": SQUARE, "heads": HEADS,
          "outputs/y": ACT @ V, "outputs/z": np.tanh(ACT[::-1]) @ V}


def asked(tmp_path, **changed):
    """The decided Comparison of a dump and one with some arrays changed;
    of their names ``_`` is ``/``."""
    other = {name.replace("_", "/"): array
             for name, array in changed.items()}
    traces = []
    for side, arrays in (("a", ARRAYS), ("b", ARRAYS | other)):
        (tmp_path / side).mkdir()
        np.savez(tmp_path / side / "all.npz", **arrays)
        traces.append(load(tmp_path / side))
    return decide(compare(*traces), *traces, None, None)


@pytest.mark.parametrize("changed, words", [
    ({"square": SQUARE.T}, "transposed in b"),
    ({"parameters_w": W.astype(np.float16).astype(float)},
     "rounded to float16 in b"),
    ({"pre": X @ W * 3}, "3 times a's in b"),
    ({"heads": HEADS.reshape(2, 3, 4)[:, [1, 0, 2]].reshape(2, 12)},
     "3 parts of 4 along axis 1 in the order 1, 0, 2"),
    ({"square": SQUARE[:, [0, 3, 2, 1, 4]]},
     "places 1 and 3 of axis 1 exchanged"),
    ({"pre": ACT}, "the values of a's act in b"),
    ({"square": SQUARE + SQUARE**2}, "differs although every output agrees."),
])
def test_an_inner_array_is_named_where_outputs_agree(tmp_path, changed, words):
    made = asked(tmp_path, **changed)
    assert made.verdict == MATCH
    name = next(iter(changed)).rpartition("_")[2]
    note, = [each for each in made.notes if each.startswith(f"{name} ")]
    assert words in note and "no counterparts" not in str(made)


@pytest.mark.parametrize("changed, causes", [
    ({"act": ACT * 1.01, "outputs_y": ACT * 1.01 @ V},
     [("scale", "1", "1.01 times a's")]),
    ({"outputs_y": ARRAYS["outputs/z"], "outputs_z": ARRAYS["outputs/y"]},
     [("values of y", "its own", "the values of a's z"),
      ("values of z", "its own", "the values of a's y")]),
    ({"outputs_y": -ARRAYS["outputs/y"]},
     [("sign", "its own", "the other one")]),
    ({"outputs_y": ARRAYS["outputs/y"][:1]},
     [("shape", "[2, 3]",
       "[1, 3], b's being the first 1 of a's 2 along axis 0")]),
    ({"parameters_w": W[::-1], "outputs_y": ACT @ V + 1},
     [("order", "axis 0 in order", "axis 0 turned round")]),
])
def test_a_divergence_of_dumps_is_named(tmp_path, changed, causes):
    made = asked(tmp_path, **changed)
    assert made.verdict == DIVERGENCE
    assert [(each.cause, each.in_a, each.in_b)
            for each in made.explanations] == causes
    assert "differ by 0" not in str(made)


@pytest.mark.parametrize("changed, words", [
    ({"act": ACT[:, :3]}, "'act' is .2, 4. in a and .2, 3. in b, b's being "
     "the first 3 of a's 4 along axis 1; write the whole"),
    ({"parameters_w": W[2:]}, "'parameters/w' .* the last 4 of a's 6"),
])
def test_an_array_that_is_cut_short_is_refused(tmp_path, changed, words):
    with pytest.raises(InputError, match=words):
        asked(tmp_path, **changed)


def test_an_array_of_another_size_is_named(tmp_path):
    made = asked(tmp_path, act=np.ones((3, 4)))
    assert made.verdict == MATCH
    assert any(note.startswith("'act' is [2, 4] in a and [3, 4] in b, and was "
                               "not compared") for note in made.notes)
    assert "Only in a, and not compared: 1 step (act)." in made.notes


@pytest.mark.parametrize("places, words", [
    ([1, 0], "places 0 and 1 of axis 2 exchanged"),
    ([4, 0, 1, 2, 3], "axis 2 moved by 1"),
    ([0, 3, 1, 4, 2, 5], "axis 2 as [3 2], which is [2 3] in a"),
    ([2, 0, 1, 4, 3], "axis 2 in the order 2, 0, 1, 4, 3"),
])
def test_orders_in_words(places, words):
    assert in_words(np.array(places), 2) == words


def test_what_is_not_related_is_not_told():
    one = DRAW.normal(size=(3, 4)).astype(np.float32)
    assert made_of(one, DRAW.normal(size=(3, 4)).astype(np.float32)) is None
    half = one.astype(ml_dtypes.bfloat16)
    assert made_of(one, half) == (
        "precision", "as it is", "rounded to bfloat16")
    assert made_of(one, np.float32(2.5) * one)[0] == "scale"
