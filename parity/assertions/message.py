"""What an assertion that fails says: where, how much, and a likely cause."""

import dataclasses
import math

import numpy as np

from parity_io.errors import plural
from parity.numerics import dtypes
from parity.numerics.comparator import (
    DIVERGENCE, WORST, Difference, relative_error)
from parity.numerics.words import number

#: Between these an error in float64 has the size of float32's rounding.
LEAK = 1e-9, 1e-6

#: How many divergences a message lists.
LISTED = 10


@dataclasses.dataclass(frozen=True)
class NamedDifference(Difference):
    """A Difference of a named array.

    Attributes:
        name: the path of the array in the nest.
        shape, dtype: of the expected array.
        framework: of the actual array: "torch", "keras", "jax" or "numpy".
        index: of the worst element, if there is one.
        values: that element, (actual, expected).
        hint: a likely cause of the divergence, or "".
    """

    name: str = ""
    shape: tuple = ()
    dtype: str = ""
    framework: str = "numpy"
    index: tuple | None = None
    values: tuple = ()
    hint: str = ""


def worst_index(actual, expected):
    """The index of the element with the largest error in the worst row."""
    if actual.shape != expected.shape or not expected.size:
        return None
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    for wrong in (np.isnan(a) != np.isnan(e),
                  (a != e) & ~(np.isfinite(a) & np.isfinite(e))
                  & ~(np.isnan(a) & np.isnan(e))):
        if wrong.any():
            return _index(wrong.argmax(), wrong.shape)
    finite = np.isfinite(e)
    gap = np.abs(np.where(finite, a, 0) - np.where(finite, e, 0))
    if not gap.any():
        return None
    truth = np.where(finite, e, 0)
    if not truth.any() or not e.ndim:
        return _index(gap.argmax(), gap.shape)
    _, row = relative_error(np.where(finite, a, 0), truth)
    if e.ndim == 1:
        return _index(gap.argmax(), gap.shape)
    return (*row, int(gap[row].argmax()))


def _index(flat, shape):
    return tuple(int(i) for i in np.unravel_index(flat, shape))


def hint_of(actual, expected, difference, required, given_dtype, framework):
    """A likely cause of a divergence in a few words; "" if none is known."""
    if actual.dtype.name != required and actual.shape == expected.shape:
        if framework == "jax" and required in ("float64", "int64"):
            return "JAX has no 64 bits until jax_enable_x64 is set"
        if given_dtype is None and actual.dtype.name in dtypes.EPS and (
                required in dtypes.EPS):
            return (f"dtype={actual.dtype.name!r} would compare it at that "
                    "precision")
        return ""
    from parity.causes import hint
    if not actual.size or actual.size > hint.MOST_SEARCHED:
        return ""
    if expected.dtype.kind == "b":
        return hint.of_masks(actual, expected)
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    if not (np.isfinite(a).all() and np.isfinite(e).all() and e.any()):
        return ""
    return "; ".join(filter(None, (
        "" if expected.dtype.kind in "iu"
        else _leak(a, e, difference, required),
        hint.Hint(a, e, difference.error, difference.limit).text())))


def _leak(a, e, difference, required):
    if required != "float64" or difference.error is None or not (
            LEAK[0] <= difference.error <= LEAK[1]):
        return ""
    size = "an error of the size of float32's rounding: "
    with np.errstate(over="ignore"):
        if np.array_equal(e.astype(np.float32), e):
            return size + "every expected value is a float32 number"
        if np.array_equal(a.astype(np.float32), a):
            return size + "every value of actual is a float32 number"
    return size + "something was computed in float32"


def _pair(values):
    """Two values with as many digits as show their difference, at least six.
    """
    if not values:
        return "", ""
    if values[1].dtype.kind in "biu":
        return tuple(str(value) for value in values)
    for digits in range(6, 18):
        words = tuple(f"{float(value):.{digits}g}" for value in values)
        if words[0] != words[1]:
            break
    return words


class Differences(list):
    """NamedDifferences that print as one line: match, 5.8e-08 of 1.9e-06."""

    def __repr__(self):
        if not self:
            return "nothing compared"
        wrong = [one for one in self if one.verdict == DIVERGENCE]
        if wrong:
            return f"divergence, {headline(wrong)}"
        worst = max(self, key=lambda one: one.share or 0.0)
        of = (f"{number(worst.error)} of {number(worst.limit)}"
              if worst.limit else "equal")
        return f"match, {of}" + (
            f" at {worst.name}, the worst of {len(self)}"
            if len(self) > 1 else "")

    __str__ = __repr__


def headline(wrong):
    """The worst divergence in a line, its likely cause in a few words."""
    worst = max(wrong, key=lambda one: math.inf if one.error is None
                else one.share if one.share is not None else one.error)
    if worst.error is None or not worst.dtype:
        words = worst.reason
    else:
        words = f"{number(worst.error)} > {number(worst.limit)}"
    hint = worst.hint.partition("; ")[0].rpartition(": ")[2]
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    return f"{worst.name}: " + ", ".join(filter(None, (
        words, hint.removeprefix("actual is ")))) + more


def table(wrong, count):
    """The message: the worst, then a line a divergence with its likely cause.
    """
    rows = [("name", "shape", "error", "limit", "worst at", "actual",
             "expected")]
    notes = [""]
    for one in wrong[:LISTED]:
        shape, allowed = "–", "–"
        if one.dtype:  # an array, not something of the nest
            shape = "×".join(map(str, one.shape)) or "scalar"
            allowed = number(one.limit)
        rows.append((
            one.name, shape, number(one.error), allowed,
            "" if one.index is None else str(list(one.index)),
            *_pair(one.values)))
        reason = "" if one.reason.startswith(WORST) else one.reason
        notes.append("; ".join(filter(None, (reason, one.hint))))
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = [headline(wrong),
             f"{len(wrong)} of {plural(count, 'comparison')} "
             f"{'diverges' if len(wrong) == 1 else 'diverge'}:"]
    for row, note in zip(rows, notes):
        lines.append("  " + "  ".join(
            word.ljust(width) for word, width in zip(row, widths)).rstrip())
        if note:
            lines.append(f"    {note}")
    if len(wrong) > LISTED:
        lines.append(f"  and {len(wrong) - LISTED} more")
    return "\n".join(lines)
