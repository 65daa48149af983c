"""What of two models' outputs is no array, or is in one of them alone."""

import ast
import math

from parity.comparison.result import OUTPUT, PairRow
from parity.matching.pairs import VALUES
from parity.matching.rearrangement import SAME
from parity.numerics.comparator import DIVERGENCE
from parity.tracing.holders import OPENED, holder_of, holders
from parity.tracing.trace import is_float

NOT_KEPT = "not kept: "


def leaves(step):
    """Name -> text of the parts of an output that are no arrays, nor None."""
    begin = "outputs."
    return {name.removeprefix(begin): text
            for name, text in step.others.items()
            if name.startswith(begin) and text != "None"
            and not text.startswith(OPENED)}


def equal(one, two, limit):
    """Whether two texts of plain values are of the same, or near, ones."""
    if one == two:
        return True
    try:
        first, second = ast.literal_eval(one), ast.literal_eval(two)
    except (ValueError, SyntaxError):  # such as nan
        return False
    numbers = all(type(value) in (int, float) for value in (first, second))
    return numbers and float in (type(first), type(second)) and math.isclose(
        first, second, rel_tol=limit)


def differing(pair, mine, other, limit, kind):
    """Yield a PairRow of each part of this name that is another one in b.

    Args:
        pair: the StepPair of the models' own calls.
        mine, other: their Steps.
        limit: the largest relative error of a number.
        kind: the kind of both.
    """
    def row(name, shape, dtype, reason):
        return PairRow(
            OUTPUT, pair.a, pair.b, name, name, SAME, SAME, pair.by, kind,
            shape, dtype, None, limit, DIVERGENCE, reason, mine.ended)
    both = mine.outputs.keys() & other.outputs.keys()
    for value in pair.outputs:
        if value.a != value.b and {value.a, value.b} <= both and (
                value.by == VALUES):
            array = mine.outputs[value.a]
            yield row(value.a, array.shape, array.dtype.name,
                      f"in b these are the values of {value.b}")
    one, two = leaves(mine), leaves(other)
    for name in one.keys() & two.keys():
        if not equal(one[name], two[name], limit):
            yield row(name, (), "", f"{two[name]} in b, {one[name]} in a")
    paired = [{getattr(value, side) for value in pair.outputs}
              for side in "ab"]
    for name, array in mine.outputs.items():
        there = other.outputs.get(name)
        if there is not None and name not in paired[0] | paired[1] and (
                is_float(array) == is_float(there)) and not cache(mine, name):
            yield row(name, array.shape, array.dtype.name, (
                f"shape {[*there.shape]} in b, {[*array.shape]} in a"))


def caches(pair, mine, other):
    """Yield a sentence on each cache that has no partner.

    A model gives one without being asked, so the verdict is of what else it
    gives.
    """
    for side, step in (("a", mine), ("b", other)):
        paired = {getattr(value, side) for value in pair.outputs}
        kinds = holders(step) | {
            name: text.removeprefix(NOT_KEPT)
            for name, text in leaves(step).items()}
        for name, kind in kinds.items():
            parts = {part for part in step.outputs
                     if cache(step, part) == name}
            if is_cache(kind) and not (parts and parts <= paired):
                yield (f"{name} of {side}, a {kind}, was not compared; call "
                       "the model with use_cache=False to be without it.")


def cache(step, name):
    """The cache that an output of a step is a part of, or ""."""
    holder = holder_of(step, name)
    return holder if holder and is_cache(holders(step)[holder]) else ""


def is_cache(kind):
    """Whether a class, or the text of what is not kept, is of a cache."""
    return kind.lower().endswith("cache")


def unlike(mine, other):
    """How the models' outputs are, of which none has the size of another."""
    gives = [", ".join(f"{name} {list(array.shape)}" for name, array in
                       step.outputs.items()) or "no array"
             for step in (mine, other)]
    return "a returns {}, b {}".format(*gives)


def not_compared(pair, mine, other):
    """Yield what of the models' outputs could not be compared, in words."""
    one, two = leaves(mine), leaves(other)
    for side, step, text, theirs in (("a", mine, one, two),
                                     ("b", other, two, one)):
        paired = {getattr(value, side) for value in pair.outputs}
        there = (other if side == "a" else mine).outputs
        for name in step.outputs:
            if cache(step, name):
                continue
            if name not in paired and name not in there:
                yield f"{name} of {side}, which has no partner"
            elif name not in paired and side == "a" and (
                    is_float(step.outputs[name]) != is_float(there[name])):
                yield f"{name}, which is of another kind in b"
        for name, value in text.items():
            if is_cache(value):
                continue
            if name not in theirs:
                yield f"{name} of {side}, which is no array"
            elif side == "a" and value.startswith(NOT_KEPT):
                yield (f"{name}, which is a "
                       f"{value.removeprefix(NOT_KEPT)} and no array")
