"""Mappings of weights: there and back, as TOML, and what is refused."""

import numpy as np
import pytest

from parity_io.errors import InputError
from parity.conversion import mapping_file
from parity.conversion.entry import Rule, Mapping, Slice

DRAW = np.random.default_rng(0)

#: What A has: a packed projection, two apart, a table and its small companion.
ARRAYS = {"packed": DRAW.normal(size=(4, 12)), "left": DRAW.normal(size=(4, 6)),
          "right": DRAW.normal(size=(4, 2)), "table": DRAW.normal(size=(9, 4)),
          "bias": DRAW.normal(size=6)}
SHAPES = {name: array.shape for name, array in ARRAYS.items()}


def mapping(*entries, **more):
    """A Mapping of ARRAYS by (b, pieces, join, then)."""
    made = [Rule(b, tuple(Slice(*piece) for piece in pieces), *rest)
            for b, pieces, *rest in entries]
    return Mapping(made, SHAPES, {
        entry.b: entry.shape(SHAPES) for entry in made}, **more)


WHOLE = mapping(
    ("q", [("packed", "part 1 of 3 along 1, reshape 4 2 2")]),
    ("k", [("packed", "part 2 of 3 along 1, transpose 1 0")]),
    ("v", [("packed", "slice 8 12 along 1")]),
    ("both", [("left",), ("right", "same")], "concatenate 1", "transpose 1 0"),
    ("table", [("table", "slice 2 9 along 0")]),
    ("heads", [("bias", "reshape 3 2, transpose 1 0")]))


def test_there_and_back_to_the_bit():
    made = WHOLE.forward(ARRAYS)
    assert made["q"].shape == (4, 2, 2) and made["both"].shape == (8, 4)
    assert np.array_equal(made["k"], ARRAYS["packed"][:, 4:8].T)
    back = WHOLE.backward(made, {"table": ARRAYS["table"]})
    for name, array in ARRAYS.items():
        assert np.array_equal(back[name], array), name


def test_stacked_head_by_head():
    one = mapping(("b", [("left", "reshape 4 3 2"), ("left", "reshape 4 3 2")],
                   "stack 2", "reshape 4 12"))
    made = one.forward({**ARRAYS})
    expected = np.stack([ARRAYS["left"].reshape(4, 3, 2)] * 2, 2)
    assert np.array_equal(made["b"], expected.reshape(4, 12))


def test_a_sum_goes_one_way():
    added = mapping(("b", [("table",), ("table", "slice 0 1 along 0")], "sum"))
    assert np.array_equal(added.forward(ARRAYS)["b"],
                          ARRAYS["table"] + ARRAYS["table"][:1])
    with pytest.raises(InputError, match="cannot be taken apart"):
        added.backward(added.forward(ARRAYS))


def test_what_b_does_not_have_is_a_s_own():
    made = WHOLE.forward(ARRAYS)
    with pytest.raises(InputError, match="8 numbers of 'table'"):
        WHOLE.backward(made)
    assert WHOLE.uncovered() == {}  # two rows before the first


def test_a_table_cut_at_its_end_is_not_covered():
    cut = mapping(("b", [("table", "slice 0 7 along 0")]))
    assert "8 of its 36 numbers" in cut.uncovered()["table"]


def test_two_that_are_one_in_a_must_be_equal():
    twice = mapping(("one", [("bias",)]), ("two", [("bias",)]))
    made = twice.forward(ARRAYS)
    assert np.array_equal(twice.backward(made)["bias"], ARRAYS["bias"])
    made["two"] = made["two"] + 1
    with pytest.raises(InputError, match="hold different numbers"):
        twice.backward(made)


@pytest.mark.parametrize("change, words", [
    (lambda arrays: arrays.pop("bias"), "there is no 'bias'"),
    (lambda arrays: arrays.update(bias=np.zeros(5)), "has shape .5."),
    (lambda arrays: arrays.update(more=np.zeros(5)), "'more', which the"),
    (lambda arrays: arrays.update(twin=np.zeros(6)), "'twin' and 'bias'"),
])
def test_other_weights_are_refused(change, words):
    arrays = dict(ARRAYS)
    change(arrays)
    tied = mapping(("b", [("bias",)]), tied_a={"twin": "bias"})
    with pytest.raises(InputError, match=words):
        tied.forward(arrays)


def test_toml_there_and_back(tmp_path):
    path = tmp_path / "m.toml"
    tied = Mapping(WHOLE.entries, SHAPES, WHOLE.b, tied_a={"twin": "bias"})
    mapping_file.write(tied, path)
    assert mapping_file.read(path) == tied


@pytest.mark.parametrize("old, new, words", [
    ('a = "bias"', 'a = "bios"', "of 'bios', which A does not have"),
    ('b = "heads"', 'b = "hands"', "'hands', which B does not have"),
    ('b = "k"', 'b = "q"', "makes 'q' twice|for 'q', which has"),
    ("reshape 3 2, transpose 1 0", "reshape 4 2", "does not fit"),
    ("reshape 3 2, transpose 1 0", "reshape 3 2", "an array of shape .3, 2."),
    ("reshape 3 2, transpose 1 0", "turn round", "is unknown"),
    ("concatenate 1", "concatenate 0", "cannot be joined"),
    ("concatenate 1", "glue", "the join 'glue' is unknown"),
    ('a = "bias"', 'a = []', "is no text, or whose lists differ"),
    ('a = "bias"', 'a = "bias"\nmore = 1', "that is not b = NAME"),
    ("[left_out]", "[left_over]", "an entry 'left_over'"),
    ("a = []\nb = []", 'a = ["none"]\nb = []', "leaves out 'none'"),
    ("a = []\nb = []", 'a = []\nb = ["q"]', "makes 'q' and leaves it out"),
    ('"bias" = [6]', '"bias" = [6]\n"other" = [3]', "not use 'other' of A"),
    ('"bias" = [6]', '"bias" = [-6]', "a list of whole numbers"),
    ('"bias" = [6]', '"bias" = [6000000000000000]', "whole numbers|GiB"),
    ('"bias" = [6]', '"bias" = [600000000000]', "GiB"),
    ("[[parameter]]", "[parameter]", "is no TOML|has no"),
    ("[tied.a]", "[tied.c]", "a table .tied."),
    ("slice 8 12", "slice 12 8", "does not fit"),
])
def test_a_mapping_edited_wrongly(tmp_path, old, new, words):
    path = tmp_path / "m.toml"
    mapping_file.write(WHOLE, path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=words):
        mapping_file.read(path)


def test_what_is_not_said_is_told(tmp_path):
    path = tmp_path / "m.toml"
    mapping_file.write(Mapping(
        WHOLE.entries[:-1], SHAPES, WHOLE.b, left_a=["bias"]), path)
    with pytest.raises(InputError, match="of what 'heads' of B is made"):
        mapping_file.read(path)
    mapping_file.write(Mapping(
        WHOLE.entries[:-1], SHAPES, WHOLE.b, left_a=["bias"],
        left_b=["heads"]), path)
    mapping_file.read(path)
