"""Whether two traces, and two inputs of their steps, belong together."""

import numpy as np

from parity_io.errors import InputError
from parity.inputs.cause import cause
from parity.matching.pairs import USER, VALUES
from parity.matching.rearrangement import SAME, rearranged
from parity.matching.values import NEAR, far_apart
from parity.matching.words import family, words_of
from parity.numerics.comparator import DIVERGENCE, compare
from parity.numerics.dtypes import EPS
from parity.tracing.trace import WHOLE, is_float


def check_comparable(a, b, dtype=None):
    """Raise InputError where two traces are of different precision."""
    if dtype is None and a.dtype != b.dtype:
        raise InputError(
            f"a was computed in {a.dtype or 'integers'} and b in "
            f"{b.dtype or 'integers'}; trace both in one precision, or give "
            "the dtype that b must have: a is then the truth.")


def check_inputs(a, b, names):
    """Raise InputError where two models had different inputs.

    Returns:
        Sentences on inputs that could not be compared.
    """
    pair = next((p for p in names.steps if p.a == p.b == WHOLE), None)
    if pair is None:
        return ["the models' own calls are not paired, so it was not checked "
                "that both had the same inputs."]
    checked = 0
    for value in pair.inputs:
        mine, other = a.inputs[value.a], b.inputs[value.b]
        if mine.dtype.kind == "b" or other.dtype.kind == "b":
            continue
        mine = rearranged(value.a_layout, mine)
        other = rearranged(value.b_layout, other)
        if is_float(mine):
            coarse = max(EPS.get(x.dtype.name, 0) for x in (mine, other))
            with np.errstate(over="ignore"):
                difference = compare(
                    other.astype(np.float64), mine.astype(np.float64), coarse)
            different = (difference.verdict == DIVERGENCE
                         and (mine.any() or other.any())
                         and not np.array_equal(mine, other, equal_nan=True))
        else:
            different = (mine.shape != other.shape
                         or not np.array_equal(mine, other))
        if different:
            raise _different(value.a, value.b, cause(
                mine, other, (a.raw, b.raw)))
        checked += 1
    left = [{name: array for name, array in trace.inputs.items()
             if name not in {getattr(each, side) for each in pair.inputs}}
            for side, trace in (("a", a), ("b", b))]
    for name in left[0].keys() & left[1].keys():
        mine, other = left[0][name], left[1][name]
        if mine.dtype.kind != "b" and (
                words := cause(mine, other, (a.raw, b.raw))):
            raise _different(name, name, words)
    if not checked:
        _check_sizes(a, b)
        return ["no input of a could be paired with one of b, so it was not "
                "checked that both had the same inputs."]
    return []


def _check_sizes(a, b):
    """Raise InputError where each has one floating input, of other sizes."""
    floats = [[(name, array) for name, array in side.inputs.items()
               if is_float(array)] for side in (a, b)]
    if [*map(len, floats)] != [1, 1]:
        return
    (one, first), (two, second) = (side[0] for side in floats)
    if first.size != second.size:
        why = cause(first, second, (a.raw, b.raw))
        raise _different(one, two, (
            f"shape {[*first.shape]} in a, {[*second.shape]} in b"
            f"{why and f', {why}'}"))


def _different(one, two, words):
    """The InputError that says of two inputs that they differ."""
    return InputError(
        f"a and b were run on different inputs: {one!r} of a and {two!r} of b "
        f"differ{words and f', {words}'}; trace both on the same ones.")


def surely(value, pair, mine, other):
    """Whether two inputs surely belong together.

    Modules that are paired by their outputs may begin at different places: a
    dropout after a block, and the block. So either the values are near, or
    the modules are of one kind.
    """
    if value.by in (VALUES, USER) or pair.a == pair.b == WHOLE:
        return True
    first = rearranged(value.a_layout, mine.inputs[value.a])
    second = rearranged(value.b_layout, other.inputs[value.b])
    if first.shape == second.shape and far_apart(second, first) <= NEAR:
        return True
    kinds = family(mine.kind), family(other.kind)
    if any(kinds):
        return kinds[0] == kinds[1]
    words = [words_of(step.kind)[0] + words_of(step.module)[0][-1:]
             for step in (mine, other)]
    return bool(set(words[0]) & set(words[1]))


def rearranged_back(layout, array, there):
    """The array that a layout turns into this one; None if unknown.

    Args:
        layout: a layout.
        array: the rearranged array.
        there: an array of the shape before the layout.
    """
    if layout == SAME:
        return array if array.shape == there.shape else None
    forward = rearranged(layout, np.arange(there.size).reshape(there.shape))
    if forward.size != there.size:
        return None
    original = np.empty(there.size, array.dtype)
    original[forward.reshape(-1)] = array.reshape(-1)
    return original.reshape(there.shape)
