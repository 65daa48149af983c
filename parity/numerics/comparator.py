"""The comparator: whether two arrays are equal, and how large the error is.

``np.allclose`` broadcasts, ``assert_allclose`` lets NaN equal NaN and an array
equal a scalar, and elementwise relative error is 1e-10 in correct float64 runs
wherever a value is near zero. So this checks, in this order:

1. the same shape and dtype, and at least one element;
2. NaN and infinities in the same places;
3. the relative L2 error of the whole, ‖y - y*‖ / ‖y*‖;
4. the relative L2 error of every row along the last axis, so that one wrong
   row cannot hide among many right ones. A row is measured against its own
   norm or, where that is smaller, against that of an average row, and its
   error may be ROW_SLACK times that of the whole.

The error reported is the larger of the whole's and the worst row's divided by
ROW_SLACK, so that one number is compared with one limit.
"""

import dataclasses
import math

import numpy as np

ROW_SLACK = 8

#: How the reason of an error in numbers begins; then its row is told.
WORST = "worst at row"

MATCH, DIVERGENCE, ZERO, FREE = "match", "divergence", "zero", "free"


@dataclasses.dataclass(frozen=True)
class Difference:
    """The result of compare.

    Attributes:
        error: the relative error, or None where none can be computed.
        limit: the largest error that is a match.
        verdict: MATCH, DIVERGENCE, ZERO for a tensor that is zero and must be
            by mathematics, or FREE for one that mathematics does not fix.
        reason: a few words on a divergence, else "".
    """

    error: float | None
    limit: float
    verdict: str
    reason: str = ""

    @property
    def share(self):
        """The error divided by its limit; None for a limit of 0 or infinity.
        """
        if self.error is None or not math.isfinite(self.error):
            return math.inf
        if not self.limit or not math.isfinite(self.limit):
            return None
        return self.error / self.limit


def relative_error(actual, expected, least=0.0):
    """The larger of the whole's relative L2 error and the worst row's.

    Args:
        actual, expected: finite arrays of one shape, not empty; ``expected``
            is not zero everywhere, or ``least`` is not.
        least: an L2 norm that is used where that of ``expected`` is smaller.

    Returns:
        The error, and the index of the worst row.
    """
    actual = np.asarray(actual, np.float64)
    expected = np.asarray(expected, np.float64)
    scale = max(np.abs(expected).max(), least)
    gap = np.atleast_1d((actual - expected) / scale)
    truth = np.atleast_1d(expected / scale)
    gap = gap.reshape(-1, gap.shape[-1])
    truth = truth.reshape(gap.shape)
    squares = np.einsum("ij,ij->i", truth, truth)
    gaps = np.einsum("ij,ij->i", gap, gap)
    total = max(squares.sum(), (least / scale)**2)
    whole = np.sqrt(gaps.sum() / total)
    rows = np.sqrt(gaps / np.maximum(squares, total / len(squares)))
    worst = int(rows.argmax())
    index = np.unravel_index(worst, expected.shape[:-1] or (1,))
    return max(whole, rows[worst] / ROW_SLACK), tuple(int(i) for i in index)


def _different(limit, reason):
    return Difference(None, limit, DIVERGENCE, reason)


def _elements(actual, expected, wrong):
    """How many whole numbers differ, in words, with the first of them."""
    first = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
    values = (f"{np.atleast_1d(actual)[first]}, not "
              f"{np.atleast_1d(expected)[first]}")
    place = f", first at {list(first)}: " if expected.ndim else ": "
    return (f"{int(wrong.sum())} of {expected.size} elements differ"
            f"{place}{values}")


def compare(actual, expected, limit, dtype=None, zero_scale=None, least=0.0):
    """Compare an array with the truth.

    Args:
        actual: what a port computed.
        expected: the truth; float64, or exact booleans or integers.
        limit: the largest relative error that is a match; 0 means equal.
        dtype: the name of the dtype that ``actual`` must have; by default that
            of ``expected``.
        zero_scale: for a tensor that is zero by mathematics, the scale that
            ``limit`` is relative to. The truth must then be negligible too.
        least: for a tensor that is a sum, the L2 norm of what is summed: an
            error is relative to that where more than half of it cancels.

    Returns:
        A Difference.
    """
    expected = np.asarray(expected)
    if not isinstance(actual, np.ndarray):
        return _different(limit, f"not an array but {type(actual).__name__}")
    dtype = dtype or expected.dtype.name
    if actual.shape != expected.shape:
        return _different(
            limit, f"shape {list(actual.shape)}, not {list(expected.shape)}")
    if actual.dtype.name != dtype:
        return _different(limit, f"dtype {actual.dtype.name}, not {dtype}")
    if expected.size == 0:
        return _different(limit, "no element to compare")
    if expected.dtype.kind in "biu":
        wrong = actual != expected
        if wrong.any():
            return Difference(
                float(wrong.mean()), 0.0, DIVERGENCE,
                _elements(actual, expected, wrong))
        return Difference(0.0, 0.0, MATCH)
    with np.errstate(over="ignore"):
        actual = np.asarray(actual, np.float64)
    expected = np.asarray(expected, np.float64)
    finite = np.isfinite(expected)
    if not finite.all():
        if not np.array_equal(
                actual[~finite], expected[~finite], equal_nan=True):
            return _different(limit, "NaN or infinity in other places")
        actual = np.where(finite, actual, 0)
        expected = np.where(finite, expected, 0)
    if not np.isfinite(actual).all():
        return _different(limit, "NaN or infinity where the truth is finite")
    if not finite.any():
        return _different(limit, "no finite element to compare")
    if zero_scale is not None:
        return _compare_zero(actual, expected, limit, zero_scale)
    if not expected.any() and not least:
        if finite.all():
            return _different(
                limit, "the truth is zero everywhere, so nothing is compared")
        if actual.any():
            return _different(
                limit, "not zero where the truth is, beside NaN or infinity")
        return Difference(0.0, limit, MATCH)  # such as a mask of 0 and -∞
    error, row = relative_error(actual, expected, least)
    if error <= limit:
        return Difference(error, limit, MATCH)
    return Difference(error, limit, DIVERGENCE,
                      f"{WORST} {list(row)}" if expected.ndim > 1 else "")


def within(actual, expected, bound, dtype=None):
    """Compare an array that mathematics does not fix, within a bound.

    The bias of a key affects no output, so only rounding moves it in training:
    two sound runs differ, each by no more than its steps allow.

    Returns:
        A Difference whose verdict is FREE, with the largest distance.
    """
    difference = compare(actual, expected, np.inf, dtype)
    if difference.verdict == DIVERGENCE:
        return difference
    error = float(np.abs(actual - expected).max())
    if error <= bound:
        return Difference(error, bound, FREE)
    return Difference(error, bound, DIVERGENCE, "more than steps allow")


def _compare_zero(actual, expected, limit, scale):
    largest = np.abs(actual).max()
    error = float(largest / scale) if largest else 0.0
    if not np.abs(expected).max() <= limit * scale:  # scale may be NaN
        return Difference(error, limit, DIVERGENCE, "the truth is not zero")
    if not error <= limit:
        return Difference(error, limit, DIVERGENCE, "not zero")
    return Difference(error, limit, ZERO)
