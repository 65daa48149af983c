"""Two arrays of two models, compared: comparator.compare and four exceptions.
"""

import math

import numpy as np

from parity.numerics.comparator import (
    DIVERGENCE, MATCH, ROW_SLACK, ZERO, Difference, compare, relative_error)
from parity.numerics.distance import reals
from parity.tracing.trace import is_float

#: Larger arrays are measured piece by piece, which takes less memory.
CHUNK = 1 << 22

#: What is noted of two arrays that are alike and prove nothing.
NOT_FINITE = "NaN or infinite everywhere in both"

#: Of arrays without any number.
EMPTY = "empty in both"


def compare_values(actual, expected, limit, dtype):
    """Compare two arrays, as comparator.compare, with four exceptions.

    Integers may differ in width; two arrays that are alike and zero, NaN or
    infinite everywhere, or empty, are ZERO, for they prove nothing and are no
    fault; equality is checked first; complex numbers are compared as pairs.

    Returns:
        A Difference, and a note or "".
    """
    if actual.dtype == expected.dtype and actual.dtype.kind == "c":
        actual, expected = reals(actual), reals(expected)
        dtype = expected.dtype.name
    if actual.dtype.kind in "iu" and expected.dtype.kind in "iu":
        dtype = actual.dtype.name
    elif not is_float(expected):
        dtype = None
    if (actual.shape, actual.dtype) == (
            expected.shape, expected.dtype) and not expected.size:
        return Difference(0.0, limit, ZERO), EMPTY
    floating = is_float(actual) and is_float(expected)
    if (not floating or actual.shape != expected.shape
            or actual.dtype.name != dtype or not expected.size):
        if expected.dtype.kind == "c" or actual.dtype.kind == "c":
            return Difference(None, limit, DIVERGENCE, f"dtype "
                              f"{actual.dtype}, not {expected.dtype}"), ""
        return compare(actual, expected, limit, dtype), ""
    if not np.isfinite(expected).any() and np.array_equal(
            actual, expected, equal_nan=True):
        return Difference(0.0, limit, ZERO), NOT_FINITE
    note = ""
    holes = int(np.isnan(expected).sum())
    if holes and np.isnan(actual).any():
        note = f"NaN on both sides, {holes} of {expected.size} in a"
    zeros = not expected.any()
    if zeros:
        if not actual.any():
            return Difference(0.0, limit, ZERO), "zero everywhere in both"
        return Difference(None, limit, DIVERGENCE,
                          "zero everywhere in a and not in b"), note
    if (actual.dtype == expected.dtype and not note
            and np.array_equal(actual, expected)
            and np.isfinite(expected).all()):
        return Difference(0.0, limit, MATCH), note
    if (actual.size > CHUNK and np.isfinite(expected).all()
            and np.isfinite(actual).all()):
        error = _error_in_chunks(actual, expected)
        return Difference(error, limit, MATCH if error <= limit
                          else DIVERGENCE), note
    return compare(actual, expected, limit, dtype), note


def _error_in_chunks(actual, expected):
    """comparator.relative_error of finite arrays, in pieces of whole rows.

    The pieces' own errors do not suffice: a row is measured against an average
    row of the whole.
    """
    length = expected.shape[-1] if expected.ndim else 1
    if length > CHUNK:
        return relative_error(actual, expected)[0]
    rows = max(1, CHUNK // length)
    mine, other = expected.reshape(-1, length), actual.reshape(-1, length)
    scale = max(float(np.abs(mine[i:i + rows]).max())
                for i in range(0, len(mine), rows))
    gaps, squares = np.empty(len(mine)), np.empty(len(mine))
    for i in range(0, len(mine), rows):
        at = slice(i, i + rows)
        truth = mine[at].astype(np.float64) / scale
        gap = other[at].astype(np.float64) / scale - truth
        squares[at] = np.einsum("ij,ij->i", truth, truth)
        gaps[at] = np.einsum("ij,ij->i", gap, gap)
    whole = math.sqrt(gaps.sum() / squares.sum())
    worst = math.sqrt(float(
        (gaps / np.maximum(squares, squares.mean())).max()))
    return max(whole, worst / ROW_SLACK)
