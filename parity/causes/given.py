"""Why masks, positions, ids and buckets differ that two modules were given."""

import math

import numpy as np

from parity.causes import catalogue, relative
from parity.causes.cause import BETWEEN
from parity.causes.explanation import Explanation, give_names, sentence_of
from parity.causes.formulas import masks
from parity.causes.formulas.attention import LOW
from parity.numerics.distance import strict_distance


def masked(row, mine, other):
    """What b's mask hides otherwise, where an input of both is added to scores.

    Args:
        row: of an input.
        mine, other: a's and b's arrays: 0 where a query may attend, and low
            or -∞ where it may not.

    Returns:
        An Explanation, or None where they are no such masks, or hide the same.
    """
    if mine.shape != other.shape or mine.ndim < 2 or not all(
            np.where(array > LOW, array == 0, True).all()
            and not np.isnan(array).any() for array in (mine, other)):
        return None
    kept = [array > LOW for array in (mine, other)]
    if np.array_equal(*kept) or not any(map(np.any, kept)):
        return None
    words = masks.in_words(*kept, catalogue.functions("mask", "mask"))
    cause, in_a, in_b, word = "mask", "", words, words.removesuffix(" in b")
    sentence = words
    if windows := masks.windows_apart(*kept):
        cause = "sliding window"
        in_a, in_b, word = windows
        sentence = f"{in_b} in b, {in_a} in a"
    at = row.a if row.a == row.b else f"{row.a} ({row.b} in b)"
    each = Explanation(
        row.a, row.b, cause, in_a, in_b,
        f"In the input {row.a_name} of {at}, {cause}: {sentence}.", [],
        {"a": 0.0, "b": 0.0, "without": strict_distance(
            kept[1].astype(np.float64), kept[0].astype(np.float64))},
        {"a": 1, "b": 1})
    give_names([each], "attention", {}, {cause: word})
    return each


def told(row, cause, in_a, in_b, of, settings):
    """An Explanation of integers, which are equal or not."""
    each = Explanation(
        row.a, row.b, cause, str(in_a), str(in_b),
        sentence_of(row, cause, str(in_a), str(in_b)),
        errors={"a": 0.0, "b": 0.0, "without": math.inf},
        inputs={"a": 1, "b": 1})
    give_names([each], of, *settings)
    return each


def counted(row, mine, other):
    """An Explanation of integers that are all off by one number, or None."""
    if mine.size != other.size or mine.size < 2:
        return None
    mine = mine.astype(np.int64).reshape(-1, mine.shape[-1])
    gap = other.astype(np.int64).reshape(mine.shape) - mine
    if np.ptp(gap) or not gap.flat[0]:
        return None
    runs = (np.diff(mine) == 1).all() and mine.shape[1] > 1
    cause, one, two = "first position", mine[0, 0], other.flat[0]
    settings = {cause: int(one)}, {cause: int(two)}
    if not runs:
        cause, one, two = "numbers", "", f"{gap.flat[0]:+d} in b"
        settings = {}, {cause: "off"}
    return told(row, cause, one, two, BETWEEN, settings)


def moved(row, mine, other):
    """An Explanation of ids that are all a place later or earlier, or None.

    What comes in at the end is not looked at: it may be a begin token.
    """
    if mine.shape != other.shape or mine.ndim < 2 or mine.shape[-1] < 3:
        return None
    for one, two, words in (
            (mine[..., :-1], other[..., 1:], "one place later"),
            (mine[..., 1:], other[..., :-1], "one place earlier")):
        if np.array_equal(one, two) and not np.array_equal(mine, other):
            cause = "ids"
            return told(row, cause, "as they are", words, BETWEEN,
                        ({}, {cause: words}))
    return None


def hidden(row, mine, other):
    """An Explanation of masks of 0 and 1, [rows, keys], or None."""
    if "mask" not in row.a_name or mine.ndim != 2 or not all(
            np.isin(array, (0, 1)).all() for array in (mine, other)):
        return None
    return masked(row, *(np.where(array[:, None, None] > 0, 0.0, -np.inf)
                         for array in (mine, other)))


def bucketed(row, a, b, arrays):
    """An Explanation of which buckets distances were put into, or None."""
    steps = (a, a.step(row.a)), (b, b.step(row.b))
    counts = {len(trace.parameters[trace.aliases.get(path, path)])
              for trace, step in steps for path in step.parameters[:1]}
    mine, other = arrays
    if mine.ndim != 2 or mine.shape != other.shape or len(counts) != 1:
        return None
    difference = relative.difference(
        mine, other, *counts, [greatest_distance(*each) for each in steps])
    if difference is None:
        return None
    cause, one, two = difference
    return told(row, cause, one, two, "relative positions",
                ({cause: one}, {cause: two}))


def greatest_distance(trace, step):
    """What the module around a table of buckets says of it, or None."""
    around = [each for each in trace.steps
              if each.began < step.began and each.ended > step.ended]
    return next((value for each in around
                 for name, value in each.settings.items()
                 if "max_distance" in name and isinstance(value, int)), None)
