"""What two parameters show by themselves, in words."""

import numpy as np
import pytest

from parity.causes import catalogue
from parity.causes.faults.arrays import ORDER
from parity.causes.formulas import masks
from parity.causes.patterns import relation

W = np.random.default_rng(0).normal(size=(24, 48))


def thirds(order):
    return np.concatenate([np.split(W, 3, 1)[i] for i in order], 1)


@pytest.mark.parametrize("other, words", [
    (thirds([1, 0, 2]), "its thirds along axis 1 are a's in the order 1, 0, 2"),
    (thirds([2, 0, 1]), "its thirds along axis 1 are a's in the order 2, 0, 1"),
    (np.roll(W, 12, 0), "its halves along axis 0 are a's in the order 1, 0"),
    (W.reshape(24, 3, 4, 4).swapaxes(1, 2).reshape(24, 48),
     "axis 1 is [3 4 4] in a and [4 3 4] in b"),
    (W.reshape(4, 2, 3, 48).swapaxes(1, 2).reshape(24, 48),
     "axis 0 is [4 2 3] in a and [4 3 2] in b"),
    (np.random.default_rng(1).permutation(W), ORDER)])
def test_in_which_order_the_same_numbers_are(other, words):
    word, sentence = relation(W, other, "float64")
    assert word == ORDER and sentence.endswith(words)


def test_the_order_of_one_axis():
    bias = W[0]
    _, sentence = relation(bias, np.roll(bias, 24), "float64")
    assert sentence.endswith("its halves are a's in the order 1, 0")
    _, sentence = relation(bias, bias.reshape(3, 16).T.ravel(), "float64")
    assert sentence.endswith("its axis is [3 16] in a and [16 3] in b")


@pytest.mark.parametrize("more, words", [
    (1.0, "larger by 1 in b"), (-0.25, "smaller by 0.25 in b")])
def test_one_number_more_everywhere(more, words):
    """As a norm's scale that is stored less 1."""
    assert relation(W, W + more, "float64")[1] == words
    moved = W + more
    moved[0, 0] += 1e-9
    assert relation(W, moved, "float64")[1].startswith("different")


def test_padding_that_is_seen_is_no_future():
    """All places that are hidden may be later than every query."""
    causes = catalogue.functions("mask", "mask")
    padding = np.arange(9) < np.array([7, 9])[:, None, None, None]
    padding = np.broadcast_to(padding, (2, 1, 7, 9))
    everything = np.ones_like(padding)
    assert masks.in_words(padding, everything, causes) == "ignored in b"
    first = padding[..., :1, :] & (np.arange(9) > 0)
    assert masks.in_words(padding[..., :1, :], first, causes) == (
        "another at 2 of 18 places")
    causal = np.tri(9, dtype=bool)
    assert masks.in_words(causal, np.ones_like(causal), causes) == (
        "the future is seen in b")


def test_padding_is_no_sliding_window():
    """A first place that is hidden from all queries."""
    mine = np.ones((2, 1, 5, 5), bool)
    other = mine & (np.arange(5) > 0)
    assert masks.windows_apart(mine, other) is None
    assert masks.windows_apart(mine[..., :1, :], other[..., :1, :]) is None
    window = masks.behind(5, 5, 3)
    assert masks.windows_apart(np.tri(5, dtype=bool), window)[1] == "3"
