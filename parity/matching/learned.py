"""Which names of two dumps go together, as the values of some layers show.

A dump of another program has no modules with parameters by which its steps are
known, and its names say little. What is equal in one layer says what is each
other's in the next: attn_out-0 is layers.0.self_attn.o_proj, and so on.
"""

import collections
import re

import numpy as np

from parity.matching.rearrangement import best, candidates
from parity.matching.values import alike, far_apart
from parity.tracing.trace import is_float

#: Values as near as this are the same ones, printed to four decimals or not.
EQUAL = 1e-3

#: What a pair gains if its names are known to go together, and loses if one
#: of them is known to go with another.
TOGETHER, APART = 4, -4

#: What a pair gains that is near but for an axis of one, and how near.
NEARBY, NEAR = 1, 0.3


def numberless(path):
    """(a path without its numbers, these); of the last row as of all."""
    path = re.sub(r" \(.*\)$", "", path)
    return re.sub(r"\d+", "#", path), [*map(int, re.findall(r"\d+", path))]


def learned(a, b, mains, fits, signatures):
    """What each pair of steps gains, a matrix [steps of a, steps of b].

    Args:
        a, b: the Traces.
        mains: of each, the main output of every step, or None.
        fits: which pairs are of one size.
        signatures: {id of an array: its signature}.
    """
    equal = np.zeros(fits.shape, bool)
    for i, j in zip(*np.nonzero(fits)):
        equal[i, j] = _equal(mains[0][i], mains[1][j], signatures)
    names = [[numberless(step.path) for step in trace.steps]
             for trace in (a, b)]
    votes = collections.Counter(
        _key(names[0][i], names[1][j]) for i, j in zip(*np.nonzero(equal)))
    most: list[collections.Counter] = [
        collections.Counter(), collections.Counter()]
    for key, count in votes.items():
        for side in (0, 1):
            most[side][key[side]] = max(most[side][key[side]], count)
    gain = np.zeros(fits.shape, np.float32)
    taken = [set(places.tolist()) for places in np.nonzero(equal)]
    for i, j in zip(*np.nonzero(fits & ~equal)):
        key = _key(names[0][i], names[1][j])
        if votes[key] and all(votes[key] == most[side][key[side]]
                              for side in (0, 1)):
            gain[i, j] = TOGETHER
        elif i in taken[0] or j in taken[1]:
            gain[i, j] = APART
        elif most[0][key[0]] or most[1][key[1]]:
            gain[i, j] = APART
        elif mains[0][i].shape != mains[1][j].shape and _near(
                mains[0][i], mains[1][j]):
            gain[i, j] = NEARBY
    return gain


def _key(one, two):
    """Two names without their numbers, and how these differ."""
    (first, ours), (second, theirs) = one, two
    apart = tuple(n - m for m, n in zip(ours, theirs)) if len(
        ours) == len(theirs) else None
    return first, second, apart


def _near(mine, other):
    """Whether two arrays are alike but for axes of one, and near."""
    shapes = [tuple(n for n in array.shape if n != 1)
              for array in (mine, other)]
    return shapes[0] == shapes[1] and is_float(mine) and is_float(
        other) and far_apart(other, mine) <= NEAR


def _equal(mine, other, signatures):
    """Whether two arrays have the same values, in whatever layout."""
    if not (is_float(mine) and is_float(other)) or not alike(
            signatures[id(mine)], signatures[id(other)]):
        return False
    if mine.shape == other.shape:
        return bool(far_apart(other, mine) <= EQUAL)
    return best(other, mine, candidates(other.shape, mine.shape),
                EQUAL)[0] is not None
