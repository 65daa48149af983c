"""How one array is made of another, in words."""

import itertools

import numpy as np

from parity.causes.patterns import order_in_words
from parity.numerics.words import listed, number
from parity.operations.expressions import number_text
from parity.operations.roles import HIDDEN


def hides(scores):
    """At which places softmax gives scores no weight."""
    return ~(scores > HIDDEN)


def masked(truth, actual):
    """Which places of scores are hidden in one alone, in words, or ""."""
    one, two = map(hides, (truth, actual))
    if not (one.any() or two.any()) or np.array_equal(one, two):
        return ""
    more, less = int((two & ~one).sum()), int((one & ~two).sum())
    return "which hides " + listed([
        *([f"{more} places that a does not"] if more else []),
        *([f"{less} places fewer"] if less else [])])


def related(truth, actual):
    """How one array is made of another, in words, or ""."""
    truth, actual = np.asarray(truth), np.asarray(actual)
    kinds = truth.dtype.kind, actual.dtype.kind
    if kinds[0] not in "fiub" or truth.size != actual.size:
        return ""
    if "b" in kinds:
        return _of_booleans(truth, actual) if kinds == ("b", "b") else ""
    if words := _by_one_number(truth, actual):
        return words
    if not np.array_equal(*(np.sort(each.astype(np.float64), None)
                            for each in (truth, actual))):
        return ratios(truth, actual)
    return (_axes_exchanged(truth, actual) or _turned_or_moved(truth, actual)
            or _in_order(truth, actual) or "in another order")


def _of_booleans(truth, actual):
    """How often one is true where the other is not."""
    one, two = truth.reshape(-1), actual.reshape(-1)
    more, less = int((two & ~one).sum()), int((~two & one).sum())
    return listed([*([f"true at {more} places more"] if more else []),
                   *([f"at {less} places less"] if less else [])])


def _by_one_number(truth, actual):
    """That one is the other times, or plus, a number."""
    one, two = (each.reshape(-1).astype(np.float64)
                for each in (truth, actual))
    finite = np.isfinite(one) & np.isfinite(two) & (one != 0)
    if not finite.any():
        return ""
    ratio, apart_by = two[finite] / one[finite], two[finite] - one[finite]
    middle, step = float(np.median(ratio)), float(np.median(apart_by))
    if np.allclose(ratio, middle, rtol=1e-9, atol=0) and middle != 1 and (
            np.allclose(two[~finite], one[~finite], equal_nan=True)):
        return ("with the other sign" if middle == -1 else
                f"{number_text(middle)} times as large")
    if step and np.allclose(apart_by, step, rtol=1e-9, atol=0):
        return f"{number_text(step)} more at every place"
    return ""


def _axes_exchanged(truth, actual):
    """That the axes stand in another order."""
    if truth.ndim == 2 and truth.shape[0] == truth.shape[1] and (
            np.array_equal(truth.T, actual.reshape(truth.shape))):
        return "transposed"
    orders = [*itertools.permutations(range(truth.ndim))][1:] if (
        truth.ndim == actual.ndim and 2 <= truth.ndim <= 4) else []
    return next((f"with its axes in the order {plain_list(axes)}"
                 for axes in orders
                 if np.array_equal(truth.transpose(axes), actual)), "")


def _turned_or_moved(truth, actual):
    """That it is turned round along axes, or moved along one."""
    if truth.shape != actual.shape:
        return ""
    for count in range(1, min(truth.ndim, 3) + 1):
        for axes in itertools.combinations(range(truth.ndim), count):
            if np.array_equal(np.flip(truth, axes), actual):
                return f"turned round along axis {plain_list(axes)}"
    return next((f"moved by {shift} along axis {axis}"
                 for axis in range(truth.ndim)
                 for shift in range(1, min(truth.shape[axis], 64))
                 if np.array_equal(np.roll(truth, shift, axis), actual)), "")


def _in_order(truth, actual):
    """In which order parts of an axis stand."""
    if truth.shape != actual.shape or not truth.ndim:
        return ""
    return order_in_words(truth, actual).removeprefix(": ")


def sloped(truth, actual):
    """p of an array that is p · another + q everywhere, or None."""
    one, two = (np.asarray(each, np.float64).reshape(-1)
                for each in (truth, actual))
    if one.size != two.size or one.size < 3 or not np.ptp(one):
        return None
    low, high = one.argmin(), one.argmax()
    slope = (two[high] - two[low]) / (one[high] - one[low])
    fits = np.allclose(two - two[low], slope * (one - one[low]), rtol=1e-9,
                       atol=1e-12 * np.abs(two).max())
    return float(slope) if fits else None


def unlike(truth, actual):
    """How many numbers of an array are others, and by how much, in words."""
    one, two = np.asarray(truth), np.asarray(actual)
    if one.dtype.kind != "f" or one.size != two.size:
        return ""
    one, two = one.reshape(-1), two.reshape(-1)
    if lost := int((np.isfinite(one) & ~np.isfinite(two)).sum()):
        what = "NaN" if np.isnan(two).any() else "infinite"
        return f"{what} at {lost} of {two.size} places"
    by = np.abs(two - one)
    return (f"{int((by > 0).sum())} of {two.size} numbers are others, by up "
            f"to {number(float(np.nanmax(by, initial=0.0)))}"
            f"{_places(by.reshape(np.shape(truth)) > 0)}")


def _places(off):
    """At which few places of one axis all is that is off, in words, or ""."""
    for axis in range(off.ndim) if off.ndim > 1 else ():
        places = np.flatnonzero(off.any(tuple(
            other for other in range(off.ndim) if other != axis)))
        if len(places) * 3 <= off.shape[axis] and len(places) < 4:
            return f", all at {listed([*map(str, places)])} of axis {axis}"
    return ""


def plain_list(axes):
    """Axes in words."""
    return ", ".join(map(str, axes))


def ratios(truth, actual):
    """The factors of columns, where each has one of its own, in words."""
    columns = truth.shape[-1] if truth.ndim else 0
    if truth.shape != actual.shape or not 0 < 2 * columns <= truth.size:
        return ""  # of one row each number has a factor
    pairs = zip(truth.reshape(-1, columns).T, actual.reshape(-1, columns).T)
    factors = []
    for one, two in pairs:
        kept = one != 0
        ratio = two[kept] / one[kept]
        if two[~kept].any() or not ratio.size or not np.allclose(
                ratio, ratio[0], rtol=1e-9, atol=0):
            return ""
        factors.append(float(ratio[0]))
    shown = ", ".join(f"{factor:.4g}" for factor in factors[:6])
    more = ", …" if len(factors) > 6 else ""
    return f"its columns times {shown}{more}"
