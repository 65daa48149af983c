"""Two distances between arrays, for searching; comparator.compare judges.

Any two arrays have a distance; it is infinite where they cannot be equal.
"""

import math

import numpy as np

from parity.numerics.comparator import relative_error

#: How many numbers finite_distances looks at together.
AT_ONCE = 2**20


def reals(array):
    """Complex numbers as [… 2], the real and the imaginary part; others as
    they are."""
    if array.dtype.kind != "c":
        return array
    return np.stack([array.real, array.imag], -1)


def strict_distance(actual, expected):
    """comparator.relative_error, infinite where the two cannot be equal."""
    if actual.shape != expected.shape or not expected.size:
        return math.inf
    finite = np.isfinite(expected)
    if not np.array_equal(np.isfinite(actual), finite) or not finite.any():
        return math.inf
    if not finite.all():
        if not np.array_equal(actual[~finite], expected[~finite],
                              equal_nan=True):
            return math.inf
        actual, expected = actual[finite], expected[finite]
    if not expected.any():
        return math.inf if actual.any() else 0.0
    return float(relative_error(actual, expected)[0])


def finite_distance(actual, expected):
    """The relative L2 distance of two vectors where both are finite.

    It is infinite if no element is finite in both.
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    kind = np.complex128 if "c" in (
        actual.dtype.kind, expected.dtype.kind) else np.float64
    actual, expected = (reals(array.astype(kind))
                        for array in (actual, expected))
    finite = np.isfinite(actual) & np.isfinite(expected)
    if not finite.any():
        return math.inf
    actual, expected = actual[finite], expected[finite]
    scale = math.sqrt(float(np.square(expected).sum()))
    gap = math.sqrt(float(np.square(actual - expected).sum()))
    if scale == 0:
        return 0.0 if gap == 0 else math.inf
    return gap / scale


def finite_distances(several, expected):
    """finite_distance of each of several vectors of one length: a list."""
    if not several or any(each.dtype.kind == "c"
                          for each in (*several, expected)):
        return [finite_distance(each, expected) for each in several]
    found, most = [], max(1, AT_ONCE // max(1, expected.size))
    for first in range(0, len(several), most):
        actual = np.stack(several[first:first + most]).astype(np.float64)
        finite = np.isfinite(actual) & np.isfinite(expected)
        gap, scale = (np.sqrt(np.square(np.where(finite, each, 0)).sum(-1))
                      for each in (actual - expected, expected))
        found += np.where(
            ~finite.any(-1), math.inf, np.where(
                scale > 0, gap / np.where(scale > 0, scale, 1), np.where(
                    gap > 0, math.inf, 0.0))).tolist()
    return found
