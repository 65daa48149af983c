"""Masks that a module is given, where they are no longer the same."""

import numpy as np

from parity.causes import catalogue
from parity.causes.explanation import Explanation, give_names
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
