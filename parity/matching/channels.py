"""Where channels stand: after the batch in one model, last in another.

A framework keeps to one place, so two models of two frameworks differ in one
way. Arrays whose shapes and values show it settle it for those that do not:
where there are as many channels as rows, a shape shows nothing.
"""

import collections
import dataclasses
import math

from parity.matching.rearrangement import SAME, best, shapes
from parity.matching.values import NEAR
from parity.tracing.trace import WHOLE, is_float


def moves(rank):
    """The layouts that move channels: from last to second, and back."""
    axes = [*range(1, rank)]
    return tuple(f"transpose {' '.join(map(str, (0, *order)))}" for order in (
        (axes[-1], *axes[:-1]), (*axes[1:], axes[0])))


def far(layout, array, there):
    """How far b's array is from a's in a layout; infinite if it does not fit.
    """
    if array.ndim != there.ndim or shapes(
            layout, there.shape)[-1] != array.shape or not array.size:
        return math.inf
    return best(there, array, [layout], math.inf)[1]


def convention(steps, a, b):
    """How channels move from b to a.

    An array votes if its values are near in one layout alone. One of b that
    has a's shape as it is votes for a move only if it is given to the models,
    since both are given the same: elsewhere a transposition may be a fault.

    Args:
        steps: StepPairs, whose layouts were found array by array.
        a, b: the Traces.

    Returns:
        {number of axes: (layout, whether all such arrays move)}.
    """
    votes: dict[int, collections.Counter] = collections.defaultdict(
        collections.Counter)
    for pair in steps:
        mine, other = a.step(pair.a), b.step(pair.b)
        for values, one, two in (
                (pair.inputs, mine.inputs, other.inputs),
                (pair.outputs, mine.outputs, other.outputs)):
            for value in values:
                array, there = one[value.a], two[value.b]
                if array.ndim < 3 or not is_float(array):
                    continue
                given = pair.a == WHOLE and values is pair.inputs
                near = [layout for layout in (SAME, *moves(array.ndim))
                        if far(layout, array, there) <= NEAR]
                if len(near) == 1 and (near == [SAME] or given
                                       or array.shape != there.shape):
                    votes[array.ndim][near[0]] += 1
    found = {}
    for rank, count in votes.items():
        stay = count.pop(SAME, 0)
        if count:
            found[rank] = count.most_common(1)[0][0], not stay
    return found


def by_convention(values, one, two, found):
    """Pairs of arrays, in the convention where nothing speaks against it.

    An array is moved unless the layout found for it alone is near. One of
    a's shape may stay as it is: where others do, if that is nearer, and where
    all others move, if it is twice as near.

    Args:
        values: Pairs.
        one, two: a's and b's arrays by name.
        found: what ``convention`` returned.
    """
    for value in values:
        array, there = one[value.a], two[value.b]
        layout, all_move = found.get(array.ndim, (None, False))
        if layout and layout != value.b_layout and is_float(array):
            alone = far(value.b_layout, array, there)
            moved = far(layout, array, there)
            if alone > NEAR and moved < math.inf and (
                    value.b_layout != SAME
                    or moved < (1 + all_move) * alone):
                value = dataclasses.replace(value, b_layout=layout)
        yield value
