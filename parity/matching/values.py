"""Whether arrays hold the same values, in whatever arrangement."""

import math

import numpy as np

from parity.matching.pairs import NAMES, ORDER, VALUES, Pair
from parity.matching.rearrangement import SAME, best, candidates, probes
from parity.numerics.distance import finite_distance, reals
from parity.tracing.trace import is_float

#: Values as near as this, relatively, are taken for the same ones.
NEAR = 1e-2


def signature(array):
    """Numbers that no rearrangement changes: rms, mean, min and max, of those
    that are finite."""
    if not array.size:
        return np.zeros(4)
    if array.dtype.kind not in "fiubc":
        array = array.astype(np.float32)
    array = reals(array)
    if array.dtype.kind == "b":
        array = array.astype(np.int8)
    flat = array.reshape(-1)
    if is_float(flat) and not np.isfinite(flat.max() - flat.min()):
        flat = flat[np.isfinite(flat)]
        if not flat.size:
            return np.zeros(4)
    square = np.dot(flat.astype(np.float64), flat) if flat.size < 1 << 22 \
        else float(np.square(flat, dtype=np.float64).sum())
    return np.array([math.sqrt(abs(float(square)) / flat.size),
                     float(flat.mean(dtype=np.float64)),
                     float(flat.min()), float(flat.max())])


def alike(first, second):
    """Whether two signatures may be those of the same values.

    The second may be several, [n 4]; then so is the answer, [n].
    """
    scale = np.maximum(np.abs(first).max(), np.abs(second).max(-1))
    return (np.abs(first - second) <= NEAR * scale[..., None]).all(-1)


def is_constant(signature):
    return signature[2] == signature[3]


def pair_values(mine, others):
    """Pair the arrays of two steps' inputs, or outputs.

    By name, then by values, then by order; only where one shape can be made
    of the other. Arrays of equal shape are never rearranged. A mask of booleans
    and one of zeros and ones are a pair by their values alone.

    Args:
        mine, others: name -> array, a's and b's.

    Returns:
        A Pair each.
    """
    pairs, left, free = [], list(mine), list(others)

    def kind(array):
        return "f" if is_float(array) else array.dtype.kind.replace("u", "i")

    def layout_of(name, other, need):
        array, there = mine[name], others[other]
        kinds = {kind(array), kind(there)}
        if len(kinds) > 1 and not (need and kinds == {"b", "i"}):
            return None, math.inf
        if array.shape == there.shape:
            far = far_apart(there, array)
            return (None, far) if need and far > NEAR else (SAME, far)
        if array.size != there.size or not array.size:
            return None, math.inf
        layout, far = best(there, array, candidates(there.shape, array.shape),
                          0.3)
        if layout is None and not need:
            layout = next(candidates(there.shape, array.shape), None)
        return (None, far) if need and far > NEAR else (layout, far)

    def take(name, other, layout, by):
        pairs.append(Pair(name, other, SAME, layout, by))
        left.remove(name)
        free.remove(other)

    for name in list(left):
        if name in free:
            layout, _ = layout_of(name, name, False)
            if layout:
                take(name, name, layout, NAMES)
    for name in list(left):
        choices = [(far, i, other, layout) for i, other in enumerate(free)
                   for layout, far in [layout_of(name, other, True)] if layout]
        if choices:
            _, _, other, layout = min(choices)
            take(name, other, layout, VALUES)
    for name in list(left):
        for other in list(free):
            layout, _ = layout_of(name, other, False)
            if layout:
                take(name, other, layout, ORDER)
                break
    place = {name: i for i, name in enumerate(mine)}
    return sorted(pairs, key=lambda pair: place[pair.a])


def far_apart(actual, expected):
    """The relative distance of some elements of two arrays of one shape."""
    places = probes(expected.size)
    return finite_distance(
        actual.reshape(-1)[places], expected.reshape(-1)[places])
