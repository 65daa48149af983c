"""What of a whole sequence's arrays belongs to some of its places."""

import numpy as np

from parity.numerics.distance import strict_distance
from parity.numerics.tolerances import model_limits
from parity.tracing.trace import is_float


def at_places(mine, other, start, stop, length):
    """What of a whole sequence's array belongs to some places.

    Args:
        mine: an array of all places.
        other: the same step's where it reads some alone.
        start, stop: these places.
        length: how many places there are.

    Returns:
        Both arrays, of one shape but for rows; None if that is not known. One
        without an axis of places is of the last that is read.
    """
    if mine.ndim == other.ndim + 1 and mine.shape[1] == length:
        other, start = other[:, None], stop - 1
    if mine.ndim != other.ndim:
        return None
    for axis in range(mine.ndim):
        sizes = mine.shape[axis], other.shape[axis]
        if sizes[0] == sizes[1] or not axis and sizes[0] != length:
            continue
        if sizes == (length, stop - start):
            at = slice(start, stop)
        elif sizes == (length, stop):
            at = slice(stop)
        else:
            return None
        mine = mine[(slice(None),) * axis + (at,)]
    return mine, other


def only_seen(mine, other, seen):
    """Two arrays, where tokens are padding with those of the first.

    Args:
        mine, other: of the same rows.
        seen: bool [rows places].
    """
    if seen.all() or mine.ndim < 2 or len(mine) != len(seen) or (
            mine.shape[1] != seen.shape[1]):
        if mine.ndim and len(mine) == len(seen) and not seen.all() and (
                seen.any(1).any()):
            rows = seen.any(1)  # a state, of rows that have a token here
            return mine[rows], other[rows]
        return mine, other
    there = seen.reshape(*seen.shape, *(1,) * (mine.ndim - 2))
    return mine, np.where(there, other, mine)


def elsewhere(path, mine, other, start, stop, length):
    """Sentences on other places of the whole that have what a step makes."""
    if not is_float(mine) or mine.ndim != other.ndim:
        return []
    limit, count = model_limits(mine.dtype.name)[0], stop - start
    for there in range(length - count + 1):
        both = at_places(mine, other, there, there + count, length)
        if there != start and both and both[0].shape == both[1].shape and (
                strict_distance(both[1], both[0]) <= limit):
            return [f"What {path} makes at place {start} is what it makes at "
                    f"place {there} of the whole."]
    return []
