"""Modules that stand in one another's place, told by what they are given."""

import numpy as np

from parity.causes.cause import BETWEEN
from parity.causes.explanation import Explanation, give_names, sentence_of
from parity.matching.values import NEAR
from parity.numerics.distance import strict_distance

PLACE, OWN = "module's place", "its own"


def crossed(pair, row, joins):
    """An Explanation of a module of b that stands where a has another.

    The module in its place, in b, is the partner of the one where it stands
    in a's, is given what it is given in a, and runs before it, not after. Of
    what holds others, the first of these shows it.

    Args:
        pair: of two steps with the same parameters.
        row: of their input, which differs.
        joins: a joins.Joins.

    Returns:
        An Explanation, or None.
    """
    given = joins.a.step(pair.a).inputs[row.a_name]
    here = joins.b.step(pair.b).inputs[row.b_name]
    if not joins.belong(pair) or not far(given, here):
        return None
    for part in joins.names.steps:
        tail = part.a.removeprefix(pair.a)
        if not (part.a.startswith(pair.a) and part.b.startswith(pair.b)
                and joins.a.step(part.a).parameters and joins.belong(part)):
            continue
        instead = standing(part, given, joins)
        if instead and instead.a.endswith(tail):
            there = instead.a[:len(instead.a) - len(tail)]
            told = Explanation(
                pair.a, pair.b, PLACE, OWN, f"that of {there}",
                sentence_of(pair, PLACE, OWN, f"that of {there}"), [
                    f"{instead.b} of b stands in its place, with what "
                    f"{instead.a} has in a."],
                {"a": 0.0, "b": 0.0, "without": strict_distance(
                    here.astype(np.float64), given.astype(np.float64))},
                {"a": 1, "b": 1})
            give_names([told], BETWEEN, {}, {PLACE: "another's"})
            return told
    return None


def standing(pair, given, joins):
    """The pair of which b's step stands where a's of ``pair`` does, or None.

    Args:
        pair: of two steps with parameters of their own.
        given: what a's is given.
        joins: a joins.Joins.
    """
    a, b = joins.a, joins.b
    mine, other = a.step(pair.a), b.step(pair.b)
    if not same_as_one(given, mine):
        return None
    return next((each for each in joins.names.steps
                 for first, second in [(a.step(each.a), b.step(each.b))]
                 if first.kind == mine.kind and first.ended > mine.ended
                 and second.ended < other.ended and joins.belong(each)
                 and same_as_one(given, second)
                 and not alike(a, mine, first)), None)


def same_as_one(array, step):
    """Whether a step is given an array, but for rounding."""
    return any(not far(array, each) for each in step.inputs.values())


def far(one, two):
    """Whether two arrays are not the same but for rounding."""
    return one.shape != two.shape or strict_distance(
        two.astype(np.float64), one.astype(np.float64)) > NEAR


def alike(trace, *steps):
    """Whether two steps of a trace have equal parameters."""
    names = [{path.removeprefix(f"{step.module}."): array
              for path, array in trace.parameters.items()
              if path.startswith(f"{step.module}.")} for step in steps]
    return names[0].keys() == names[1].keys() and all(
        np.array_equal(array, names[1][name])
        for name, array in names[0].items())
