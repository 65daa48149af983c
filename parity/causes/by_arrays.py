"""How arrays of two dumps differ that hold no operations.

Nothing can be computed anew there. But an array of b is often made of a's of
the same name, or is another array of a, and that the numbers show.
"""

import itertools

import numpy as np

from parity.causes.explanation import Explanation
from parity.causes.formulas.family import LOWER, rounded
from parity.causes.related import ratios
from parity.comparison.sizes import cut
from parity.comparison.verdicts import (
    GRADIENT, INPUT, OUTPUT, PARAMETER)
from parity.matching.rearrangement import rearranged
from parity.numerics.dtypes import EPS
from parity.numerics.words import apart
from parity.tracing.trace import WHOLE

#: How many units of rounding of its largest number an array may be off.
UNITS = 64

#: What is said of the side that has nothing done to it.
AS_IT_IS = "as it is"

#: Larger arrays are not put in another order.
MOST = 1 << 24


def explanations(comparison, a, b):
    """Explanations of the first rows that differ and are seen to be related.

    Those are parameters; else, of the first step that differs, its outputs.

    Args:
        comparison: a Comparison of two Traces that diverges.
        a, b: the Traces.
    """
    rows = [row for row in comparison.rows if row.diverges]
    told = _told([row for row in rows if row.part == PARAMETER], a, b)
    steps = sorted((row for row in rows if row.part == OUTPUT),
                   key=lambda row: row.order)
    return told or _told([row for row in steps if row.a == steps[0].a], a, b)


def _told(rows, a, b):
    """An Explanation of each row whose arrays are related."""
    made = []
    for row in rows:
        found = of_row(row, a, b)
        if found:
            cause, in_a, in_b = found
            name = row.a_name if row.a == WHOLE else ""
            what = f"{cause} of {name}" if name and len(rows) > 1 else cause
            made.append(Explanation(
                row.a, row.b, what, in_a, in_b,
                f"{name or row.a} differs: {in_b} in b, {in_a} in a.",
                ["How it is computed is not known, so that this is seen in "
                 "its numbers alone."]))
    return made


def sentences(comparison, a, b):
    """How inner arrays and parameters of one name that differ are related, a
    sentence each, where all outputs agree."""
    for row in comparison.rows:
        if row.diverges and row.a == row.b != WHOLE and row.part != GRADIENT:
            yield _sentence(row.a if row.part != INPUT else
                            f"{row.a_name} of {row.a}", of_row(row, a, b))
    paired = {side: {getattr(pair, side) for pair in comparison.names.steps}
              for side in "ab"}
    others = {step.path: step for step in b.steps}
    for step in a.steps:
        if step.path in paired["a"] or step.path in paired["b"] or (
                step.path not in others):
            continue
        for name, array in step.outputs.items():
            other = others[step.path].outputs.get(name)
            if other is not None and other.shape == array.shape:
                name = like(other, {
                    each.path: held for each in a.steps
                    if each.path not in (step.path, WHOLE)
                    for held in each.outputs.values()})
                yield _sentence(step.path, (
                    "values", "its own", f"the values of a's {name}")
                    if name else made_of(array, other))


def _sentence(path, found):
    """That an array differs, and how it is related."""
    words = "." if not found else (
        f": {found[1]} in a." if found[2] == AS_IT_IS else
        f": {found[2]} in b.")
    return f"{path} differs although every output agrees{words}"


def of_row(row, a, b):
    """(the cause, what it is in a, in b) of a PairRow, or None."""
    arrays = [_array(trace, row, side)
              for trace, side in ((a, "a"), (b, "b"))]
    if any(each is None for each in arrays):
        return None
    one, two = arrays
    if one.size != two.size:
        words = cut(one, two)
        return ("shape", f"{[*one.shape]}",
                f"{[*two.shape]}{words and ', ' + words}")
    one, two = (rearranged(layout, each) for layout, each in (
        (row.a_layout, one), (row.b_layout, two)))
    if one.shape != two.shape or not one.size:
        return None
    if name := like(two, _siblings(row, a)):
        return "values", "its own", f"the values of a's {name}"
    if name := like(one, _siblings(row, b, "b")):
        return "values", "its own", f"others; a's are those of b's {name}"
    return made_of(one, two)


def _array(trace, row, side):
    """The array of a row in a trace, or None."""
    path, name = getattr(row, side), getattr(row, f"{side}_name")
    if row.part == PARAMETER:
        return trace.parameters.get(trace.aliases.get(path, path))
    step = trace.step(path)
    return (step.inputs if row.part == INPUT else step.outputs).get(name)


def _siblings(row, a, side="a"):
    """{name: array} of what the other side's array may be instead."""
    path, own = getattr(row, side), getattr(row, f"{side}_name")
    if row.part == PARAMETER:
        return {name: array for name, array in a.parameters.items()
                if name != path}
    if path == WHOLE:
        return {name: array for name, array in a.step(WHOLE).outputs.items()
                if name != own}
    return {step.path: array for step in a.steps if step.path not in (
        path, WHOLE) for array in step.outputs.values()}


def like(mine, siblings):
    """The name of the other side's array that is the same; "" if none is."""
    return next((name for name, array in siblings.items()
                 if array.shape == mine.shape and array.dtype.kind == (
                     mine.dtype.kind) and _near(array, mine)), "")


def made_of(mine, other):
    """(the cause, what it is in a, in b) of two arrays of one shape, or None.
    """
    if not {mine.dtype.kind, other.dtype.kind} <= {*"fiuV"} or not (
            np.isfinite(mine.astype(np.float64)).all()
            and np.isfinite(other.astype(np.float64)).all()):
        return None
    dtype = max((mine.dtype.name, other.dtype.name),
                key=lambda name: EPS.get(name, 0))
    one, two = (each.astype(np.float64) for each in (mine, other))
    if not two.any():
        return "values", "its own", "zero everywhere"
    for name in LOWER:
        for words, full, short in (((AS_IT_IS, f"rounded to {name}"), one,
                                    two), ((f"rounded to {name}", AS_IT_IS),
                                           two, one)):
            if not np.array_equal(full, short) and np.array_equal(
                    rounded(full, name), short):
                return "precision", *words
    near = EPS.get(dtype, EPS["float64"])
    return (_linear(one, two, near) or _turned(one, two, near)
            or _ordered(one, two, near) or _by_column(one, two))


def _near(one, two, eps=None):
    """Whether two arrays are the same but for rounding."""
    one, two = (np.asarray(each, np.float64) for each in (one, two))
    eps = EPS["float32"] / UNITS if eps is None else eps
    with np.errstate(all="ignore"):
        return bool(np.abs(one - two).max(initial=0.0)
                    <= UNITS * eps * np.abs(two).max(initial=0.0))


def _linear(one, two, eps):
    """b's array is a's times a number, or and one more everywhere."""
    factor = float((one * two).sum() / (one * one).sum()) if (
        one.any()) else 0.0
    if factor and _near(factor * one, two, eps):
        if np.isclose(factor, -1, rtol=UNITS * eps):
            return "sign", "its own", "the other one"
        return "scale", "1", f"{apart(factor, 1.0)[0]} times a's"
    more = float((two - one).mean())
    if one.size > 1 and more and _near(one + more, two, eps):
        return "summand", "none", f"{more:.6g} more everywhere"
    return None


def _turned(one, two, eps):
    """b's array has a's axes in another order."""
    for axes in [*itertools.permutations(range(one.ndim))][1:] if (
            one.ndim < 6) else []:
        turned = one.transpose(axes)
        if turned.shape == two.shape and _near(turned, two, eps):
            return ("axes", "as they are", "transposed" if one.ndim == 2 else
                    f"in the order {', '.join(map(str, axes))}")
    return None


def _ordered(one, two, eps):
    """b's array has a's numbers along one axis in another order."""
    for axis in range(one.ndim) if one.size <= MOST else ():
        first, second = (np.moveaxis(each, axis, 0).reshape(
            each.shape[axis], -1) for each in (one, two))
        along = np.random.default_rng(0).standard_normal(first.shape[1])
        places = np.empty(len(first), int)
        places[(second @ along).argsort(kind="stable")] = (
            first @ along).argsort(kind="stable")
        if _near(first[places], second, eps) and not _near(
                first, second, eps):
            return "order", f"axis {axis} in order", in_words(places, axis)
    return None


def in_words(places, axis):
    """An order of places along an axis in words."""
    count = len(places)
    if np.array_equal(places, np.arange(count)[::-1]) and count > 2:
        return f"axis {axis} turned round"
    for shift in range(1, count):
        if count > 2 and np.array_equal(places, np.roll(
                np.arange(count), shift)):
            return f"axis {axis} moved by {shift}"
    moved = np.flatnonzero(places != np.arange(count))
    if len(moved) == 2:
        return f"places {moved[0]} and {moved[1]} of axis {axis} exchanged"
    for size in range(count // 2, 1, -1):  # parts, such as heads
        if count % size == 0:
            parts = places.reshape(-1, size)
            if (parts == parts[:, :1] + np.arange(size)).all() and not (
                    parts[:, 0] % size).any():
                order = ", ".join(str(each // size) for each in parts[:8, 0])
                return (f"{count // size} parts of {size} along axis {axis} "
                        f"in the order {order}"
                        + ", …" * (count // size > 8))
    inner = next((size for size in range(2, count) if count % size == 0
                  and np.array_equal(places, np.arange(count).reshape(
                      -1, size).T.reshape(-1))), None)
    if inner:
        return (f"axis {axis} as [{inner} {count // inner}], which is "
                f"[{count // inner} {inner}] in a")
    order = ", ".join(map(str, places[:8]))
    return f"axis {axis} in the order {order}" + ", …" * (count > 8)


def _by_column(one, two):
    """b's array has a's columns each times a number of its own."""
    words = ratios(one, two)
    return ("scale", "1", words) if words else None
