"""What of a step's arrays must be the same in two batches."""

import numpy as np


def aligned(call, way, mine, other):
    """Two arrays of one step, cut to what must be the same in both.

    Args:
        call: the Call.
        way: the Way in which the second was made.
        mine, other: of the first run, and of the second.

    Returns:
        Both, of one shape, zero where a token is padding; None if the shapes
        do not follow from the way. Third, whether they have rows.
    """
    if not mine.ndim or not other.ndim:
        return (mine, other, False) if mine.shape == other.shape else None
    mine, other = _unfolded(call, way, mine, other)
    mine, other, batched = _by_row(call, way, mine, other)
    for axis, role in _grown(call, way, mine.shape, other.shape):
        start, sequence = way.pads[role][0], call.sequences[role]
        there = slice(start, start + sequence.length)
        other = other[(slice(None),) * axis + (there,)]
        if batched:
            mine, other = (_without_padding(x, axis, sequence.visible)
                           for x in (mine, other))
    return (mine, other, batched) if mine.shape == other.shape else None


def _unfolded(call, way, mine, other):
    """Two arrays with rows and places apart, which may have been one axis."""
    for role in way.pads:
        length = call.sequences[role].length
        more = length + sum(way.pads[role])
        if (len(mine), len(other)) == (
                call.rows * length, len(way.rows) * more):
            return (mine.reshape(call.rows, length, *mine.shape[1:]),
                    other.reshape(len(way.rows), more, *other.shape[1:]))
    return mine, other


def _by_row(call, way, mine, other):
    """Two arrays of the same rows, and whether their first axis is those.

    It may be heads of rows, row by row; one that is neither is given a first
    axis of one.
    """
    heads, rest = divmod(len(mine), call.rows)
    if not heads or rest or heads * len(way.rows) != len(other):
        return mine[None], other[None], False
    mine = mine.reshape(call.rows, heads, *mine.shape[1:])[list(way.rows)]
    other = other.reshape(len(way.rows), heads, *other.shape[1:])
    kept = list(way.kept) or slice(None)
    return mine[kept], other[kept], True


def _grown(call, way, mine, other):
    """Yield the axes of two shapes that padding made longer: (axis, role)."""
    for axis, sizes in enumerate(zip(mine, other)):
        for role, pad in way.pads.items():
            length = call.sequences[role].length
            if axis and sizes == (length, length + sum(pad)):
                yield axis, role


def _without_padding(array, axis, visible):
    """An array [B …] with zero at places [B T] that are no token."""
    shape = [1] * array.ndim
    shape[0], shape[axis] = visible.shape
    return np.where(visible.reshape(shape), array, np.zeros((), array.dtype))
