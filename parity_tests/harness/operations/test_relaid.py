"""An array in another layout: axes exchanged, joined, divided, repeated."""

import numpy as np
import pytest

from parity.operations.layouts import distance, once, relaid, spread

ARRAY = np.random.default_rng(5).normal(size=(2, 3, 4))


@pytest.mark.parametrize("made", [
    ARRAY.transpose(2, 0, 1), ARRAY.transpose(1, 0, 2).reshape(3, 8),
    ARRAY.reshape(6, 4).T, ARRAY.reshape(2, 3, 2, 2).transpose(2, 0, 3, 1),
    ARRAY.transpose(1, 2, 0)[:, None], ARRAY.reshape(-1)],
    ids=lambda made: "x".join(map(str, made.shape)))
def test_the_most_alike_layout_comes_first(made):
    first, *_ = relaid(ARRAY, made)
    assert np.array_equal(first, made)
    first, *_ = relaid(made, ARRAY)
    assert np.array_equal(first, ARRAY)


def test_heads_joined_with_the_batch_are_found_under_another_joint():
    scores = np.random.default_rng(6).normal(size=(2, 4, 3, 5))
    joined = scores.reshape(8, 3, 5)
    other = scores.transpose(1, 0, 2, 3).reshape(4, 6, 5)
    assert np.array_equal(relaid(joined, other)[0], other)
    assert np.array_equal(relaid(other, joined)[0], joined)


def test_a_square_one_is_laid_as_what_it_is_held_against():
    square = ARRAY.reshape(-1)[:16].reshape(4, 4)
    for like in square, square.T:
        noisy = like + 1e-3 * np.eye(4)
        first, second = relaid(square, noisy)
        assert np.array_equal(first, like) and np.array_equal(second, like.T)


def test_where_nothing_is_alike_the_fewest_axes_are_exchanged():
    square = ARRAY.reshape(-1)[:16].reshape(4, 4)
    first, *_ = relaid(square, np.full((4, 4), -1e9))
    assert np.array_equal(first, square)


def test_no_layout_leads_to_another_size():
    assert relaid(ARRAY, np.zeros((5, 5))) == []
    assert relaid(ARRAY, np.zeros(7)) == []


def test_two_layouts_at_most_unless_more_are_asked_for():
    cube = np.arange(27.0).reshape(3, 3, 3)
    assert len(relaid(cube, cube)) == 2
    every = relaid(cube, cube, 99)
    assert len(every) == 6 and len({each.tobytes() for each in every}) == 6


@pytest.mark.parametrize("axis, how", [
    (axis, how) for axis in range(3) for how in ("repeat", "tile")])
def test_what_is_repeated_is_taken_once(axis, how):
    many = np.repeat(ARRAY, 3, axis) if how == "repeat" else np.concatenate(
        [ARRAY] * 3, axis)
    assert np.array_equal(once(many, ARRAY.size), ARRAY)
    first, *_ = relaid(many, ARRAY)
    assert np.array_equal(first, ARRAY)


def test_what_is_no_repetition_is_left():
    assert once(ARRAY, 12) is ARRAY  # its halves differ
    assert once(ARRAY, 5) is ARRAY and once(ARRAY, 24) is ARRAY
    assert once(ARRAY, 0) is ARRAY


def test_spread_leaves_lone_axes_aside():
    row = np.arange(4.0)
    assert np.array_equal(spread(row.reshape(1, 1, 4, 1), (3, 4)),
                          np.tile(row, (3, 1)))
    assert np.array_equal(spread(np.float64(2), (2, 2)), np.full((2, 2), 2.0))
    assert spread(row, (4, 3)) is None


def test_a_distance_is_a_share_and_counts_what_is_not_finite():
    assert distance(ARRAY, ARRAY) == 0
    assert distance(1.1 * ARRAY, ARRAY) == pytest.approx(0.1)
    assert distance(np.zeros(3), np.zeros(3)) == 0
    assert distance(1e200 * ARRAY, 1e200 * ARRAY) == 0
    assert distance(2e200 * ARRAY, 1e200 * ARRAY) == pytest.approx(1)
    odd = ARRAY.copy()
    odd[0, 0, 0] = np.nan
    assert distance(odd, ARRAY) == 1 / 24 and distance(odd, odd) == 0
    assert distance(1j * ARRAY, ARRAY) == pytest.approx(np.sqrt(2))
