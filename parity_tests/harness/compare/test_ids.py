"""Token ids that differ are told before anything else."""

import numpy as np
import pytest

from parity_io.errors import InputError
from parity.comparison.compare import compare
from parity.inputs.ids import parting
from parity.matching.values import pair_values
from parity_tests.support.layers import Plain

X = np.ones((1, 3))


@pytest.mark.parametrize("one, two, words", [
    ([1, 5, 6, 7, 0, 0], [5, 6, 7, 0, 0, 0], "a begin token in a"),
    ([5, 6, 7], [1, 5, 6, 7], "a begin token in b"),
    ([5, 6, 7, 2, 0, 0], [5, 6, 7, 0, 0, 0], "an end token in a"),
    ([5, 6, 7], [5, 6, 7, 2], "an end token in b"),
    ([5, 6, 7, 0, 0], [0, 0, 5, 6, 7], "padding stands on the left in b"),
    ([5, 6, 7, 0, 0], [5, 6, 7, 1, 1], "padding is 0 in a and 1 in b"),
    ([5, 6, 7, 8, 9, 4], [5, 6, 7], "b is cut off"),
    ([5, 6, 7, 8], [5, 3, 7, 8], "6 in a, 3 in b"),
    ([7], [8], "place 0: 7 in a, 8 in b"),
    ([], [1], "ids differ at row 0, place 0: none in a, 1 in b: "
     "an end token in b")])
def test_what_one_has_more(one, two, words):
    told = parting(np.array([one], int), np.array([two], int))
    assert told.endswith(words)


def test_equal_ids_and_what_is_no_ids():
    ids = np.array([[5, 6], [7, 8]])
    assert parting(ids, ids.astype(np.int32)) == ""
    assert parting(ids * 0.5, ids) == parting(ids[0], ids[1]) == ""
    assert parting(ids, ids[:1]) == "a has 2 rows of ids and b 1"
    assert parting(ids, ids + [[0, 0], [0, 1]]).startswith(
        "ids differ at row 1, place 1: 8 in a, 9 in b")


def test_batches_without_rows():
    empty = np.zeros((0, 3), int)
    assert parting(empty, empty) == ""
    assert parting(empty, np.zeros((0, 4), int)) == (
        "ids have 3 places in a and 4 in b, and no rows")


@pytest.mark.parametrize("two", [[[5, 6, 0]], [[5, 6]]])
def test_a_comparison_says_it_first(two):
    with pytest.raises(InputError, match="ids differ at row 0, place 0: 1 in "
                       "a, 5 in b: a begin token in a; trace both"):
        compare(Plain("torch", {"ids": np.array([[1, 5, 6]])}, {"output": X}),
                Plain("jax", {"ids": np.array(two)}, {"output": X}))


def test_a_mask_of_booleans_is_no_type_of_tokens():
    """A has 0 and 1, b booleans, and types of tokens besides."""
    mask = np.array([[1, 1, 0], [1, 1, 1]])
    mine = {"ids": np.ones((2, 3), int), "attention_mask": mask}
    others = {"tokens": np.ones((2, 3), int), "types": 0 * mask,
              "padding_mask": mask > 0}
    assert {pair.a: pair.b for pair in pair_values(mine, others)} == {
        "ids": "tokens", "attention_mask": "padding_mask"}
    del others["padding_mask"]
    others["kept"] = mask == 0  # not by order alone
    assert "kept" not in {pair.b for pair in pair_values(mine, others)}
