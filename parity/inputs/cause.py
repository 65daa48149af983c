"""Why two inputs differ: the nearest thing to the user first.

Texts, images and sounds that differ themselves are told before what was made of
them. Nothing is told that does not come out on the arrays.
"""

import ml_dtypes
import numpy as np

from parity.inputs import raw as kinds
from parity.inputs.ids import parting
from parity.inputs.pixels import is_image, pixels_parting
from parity.inputs.spectra import spectra_parting
from parity.inputs.texts import text_parting
from parity.tracing.trace import is_float

#: Of the size of an array, what may be rounding in float32.
NEAR = 2e-6


def cause(mine, other, before=({}, {})):
    """Why an input of b is not a's, in words; "" where it is not shown.

    Args:
        mine, other: a's and b's array, which differ.
        before: of a and of b, what ``raw.kept`` returned.
    """
    if words := raw_parting(*before):
        return words
    whole = {mine.dtype.kind, other.dtype.kind} <= {"i", "u"}
    if whole:
        return parting(mine, other, [each.get(kinds.PIECES, {})
                                     for each in before])
    if not (is_float(mine) and is_float(other)):
        return ""
    image, audio, rate = (before[0].get(key, before[1].get(key)) for key in (
        kinds.IMAGE, kinds.AUDIO, kinds.RATE))
    words = ""
    if audio is not None and rate is not None:
        words = spectra_parting(mine, other, audio, int(rate))
    elif is_image(mine) and is_image(other) and (
            image is not None or mine.shape == other.shape):
        words = pixels_parting(mine, other, image)
    if words:
        return words
    if mine.shape == other.shape:
        return relation(mine, other)
    return length_parting(mine, other)


def raw_parting(a, b):
    """Where what two models' inputs were made of differs, in words."""
    if kinds.TEXT in a and kinds.TEXT in b:
        if words := text_parting(a[kinds.TEXT], b[kinds.TEXT]):
            return words
    for key, what in ((kinds.IMAGE, "images"), (kinds.AUDIO, "sounds")):
        if key not in a or key not in b:
            continue
        one, two = np.asarray(a[key]), np.asarray(b[key])
        if one.shape != two.shape:
            return (f"the {what} are of shapes {[*one.shape]} in a and "
                    f"{[*two.shape]} in b")
        if not np.array_equal(one, two):
            why = relation(one, two) if is_float(one) and is_float(
                two) else ""
            return f"the {what} differ before they are processed" + (
                why and f": {why}")
    if kinds.RATE in a and kinds.RATE in b and a[kinds.RATE] != b[kinds.RATE]:
        return (f"the samples a second are {a[kinds.RATE]} in a and "
                f"{b[kinds.RATE]} in b")
    return ""


def relation(mine, other):
    """How b's array is made of a's, in words; "" where it is not shown.

    Args:
        mine, other: floating arrays of one shape.
    """
    one, two = (np.asarray(each, np.float64) for each in (mine, other))
    if not one.size or not (np.isfinite(one).all()
                            and np.isfinite(two).all()):
        return _swapped(mine, other)
    size = np.abs(two).max()

    def is_it(made):
        return np.abs(made - two).max() <= NEAR * size
    for name, kind in (("float16", np.float16),
                       ("bfloat16", ml_dtypes.bfloat16)):
        for side, full, short in (("b", mine, other), ("a", other, mine)):
            with np.errstate(over="ignore"):
                cast = full.astype(kind).astype(np.float64)
            if np.array_equal(cast, short.astype(np.float64)):
                return f"{side}'s numbers are rounded to {name}"
    if words := _swapped(mine, other):
        return words
    if is_it(one):
        return (f"by rounding alone, {np.abs(one - two).max() / size:.1e} of "
                "the largest number")
    for side, x, y in (("b", one, two), ("a", two, one)):
        rows = x.reshape(len(x), -1) if x.ndim > 1 else x.reshape(1, -1)
        made = (rows - rows.mean(1, keepdims=True)) / np.sqrt(
            rows.var(1, keepdims=True) + 1e-7)
        if np.abs(made.reshape(x.shape) - y).max() <= 1e-5 * np.abs(y).max():
            name = "a" if side == "b" else "b"
            return f"{side} is {name} with mean 0 and variance 1 of each row"
    spread = ((one - one.mean()) ** 2).sum()
    if spread:
        slope = ((one - one.mean()) * (two - two.mean())).sum() / spread
        shift = two.mean() - slope * one.mean()
        if slope and is_it(slope * one + shift):
            times = "" if abs(slope - 1) < 1e-6 else f" times {slope:.7g}"
            plus = "" if abs(shift) < 1e-6 * size else f" {shift:+.6g}"
            return f"b is a{times}{plus}"
    for side, x, y in (("b", one, two), ("a", two, one)):
        name = "a" if side == "b" else "b"
        low, high = y.min(), y.max()
        if (low > x.min() or high < x.max()) and np.array_equal(
                np.clip(x, low, high), y):
            return f"{side} is {name} clipped to {low:.6g} … {high:.6g}"
        whole = np.rint(y * 32768)
        if np.abs(y * 32768 - whole).max() < 1e-3 and np.abs(
                x - y).max() <= 1.001 / 32768 and np.abs(
                x * 32768 - np.rint(x * 32768)).max() > 0.1:
            return f"{side}'s numbers are rounded to 16 bits"
    return _delayed(one, two)


def _swapped(mine, other):
    """That b's bytes are a's in the other order."""
    if mine.dtype == other.dtype and mine.dtype.itemsize > 1 and (
            np.array_equal(np.ascontiguousarray(mine).byteswap(), other,
                           equal_nan=True)):
        return "b's numbers are a's with their bytes in the other order"
    return ""


def _delayed(one, two):
    """That one begins some places later along the last axis."""
    length = one.shape[-1]
    for count in range(1, min(length // 2, 2000)):
        if np.array_equal(one[..., count:], two[..., :-count]):
            return f"b begins {count} places later than a"
        if np.array_equal(two[..., count:], one[..., :-count]):
            return f"b begins {count} places earlier than a"
    return ""


def length_parting(mine, other):
    """What one array has more at an end of its last axis, in words."""
    for side, longer, shorter in (("a", mine, other), ("b", other, mine)):
        count = longer.shape[-1] - shorter.shape[-1]
        if count <= 0 or longer.shape[:-1] != shorter.shape[:-1]:
            continue
        for end, kept, rest in (
                ("end", longer[..., :-count], longer[..., -count:]),
                ("beginning", longer[..., count:], longer[..., :count])):
            if np.array_equal(kept, shorter):
                what = ("zeros" if not rest.any() else
                        f"numbers of {rest.flat[0]:.6g}"
                        if np.ptp(rest) == 0 else "numbers")
                return f"{side} has {count} {what} more at its {end}"
    return ""
