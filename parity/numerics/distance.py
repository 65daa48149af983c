"""Two measures of how far two arrays are apart, to search with, not to judge.

``comparator.compare`` judges; here nothing is refused, and what cannot be
alike is infinitely far apart.
"""

import math

import numpy as np

from parity.numerics.comparator import relative_error


def strict_distance(actual, expected):
    """comparator.relative_error, infinite where the two cannot be alike."""
    if actual.shape != expected.shape or not expected.size:
        return math.inf
    good = np.isfinite(expected)
    if not np.array_equal(np.isfinite(actual), good) or not good.any():
        return math.inf
    if not good.all():
        if not np.array_equal(actual[~good], expected[~good],
                              equal_nan=True):
            return math.inf
        actual, expected = actual[good], expected[good]
    if not expected.any():
        return math.inf if actual.any() else 0.0
    return float(relative_error(actual, expected)[0])


def finite_distance(actual, expected):
    """The relative L2 distance of two vectors where both are finite.

    It is infinite where they nowhere are.
    """
    actual = np.asarray(actual, np.float64)
    expected = np.asarray(expected, np.float64)
    good = np.isfinite(actual) & np.isfinite(expected)
    if not good.any():
        return math.inf
    actual, expected = actual[good], expected[good]
    scale = math.sqrt(float(np.square(expected).sum()))
    gap = math.sqrt(float(np.square(actual - expected).sum()))
    if scale == 0:
        return 0.0 if gap == 0 else math.inf
    return gap / scale
