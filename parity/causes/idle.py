"""A module that hands on what it is given, in one of two models alone."""

import numpy as np

from parity.causes.cause import BETWEEN
from parity.causes.explanation import Explanation, give_names, sentence_of
from parity.causes.expressions import share_dropped
from parity.matching.values import NEAR

PART, WORKS, IDLE = "module", "at work", "left out"


def drops(side):
    """Whether a module is at work as dropout, which has a name of its own."""
    return all(seen.floats and share_dropped(seen.x, seen.output, NEAR)
               for seen in side.seen)


def idle(pair, sides):
    """An Explanation of a module that is an identity in b, or in a, alone.

    Args:
        pair: of two steps.
        sides: a fit.StepSide of each.

    Returns:
        An Explanation, or None.
    """
    handed_on = [all(seen.floats and seen.output.any()
                     and np.array_equal(seen.x, seen.output)
                     for seen in side.seen) for side in sides]
    if handed_on[0] == handed_on[1] or drops(sides[handed_on.index(False)]):
        return None
    words = [IDLE if each else WORKS for each in handed_on]
    told = Explanation(
        pair.a, pair.b, PART, *words, sentence_of(pair, PART, *words),
        errors={"a": 0.0, "b": 0.0, "without": float("inf")},
        inputs={name: len(side.seen) for name, side in zip("ab", sides)})
    give_names([told], BETWEEN, *({PART: word} for word in words))
    return told
