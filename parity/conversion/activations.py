"""The values of a run, found again in whatever arrangement."""

import math

import numpy as np

from parity.conversion.weights import owners
from parity.matching.rearrangement import best, candidates, rearranged
from parity.matching.values import NEAR, alike, far_apart, signature
from parity.numerics.distance import finite_distance
from parity.tracing.trace import WHOLE, is_float


#: From this size on, numbers equal in both models are a mask's.
FILLED = 1e4


def narrowed(array):
    """An array without a first axis along which it only repeats itself."""
    if array.ndim > 1 and array.shape[0] > 1 and np.array_equal(
            array, np.broadcast_to(array[:1], array.shape)):
        return array[:1]
    return array


def distance(mine, other):
    """The relative distance of two arrays of one order, without what is filled.

    A mask's -1e9 in both would hide every other number, and is left out.
    """
    mine, other = mine.reshape(-1), other.reshape(-1)
    largest = np.abs(other, where=np.isfinite(other),
                     out=np.zeros(other.shape, other.dtype))
    if largest.max(initial=0) >= FILLED:
        told = (largest < FILLED) | (mine != other)
        if told.any():
            mine, other = mine[told], other[told]
    return finite_distance(mine, other)


def least_distance(mine, other):
    """The relative distance of two arrays in the layout in which it is least;
    infinity where it is more than NEAR."""
    if mine.size != other.size:
        return math.inf
    found = math.inf
    if mine.shape == other.shape and far_apart(mine, other) <= NEAR:
        found = distance(mine, other)
    if found > NEAR:
        layout, _ = best(
            mine, other, candidates(mine.shape, other.shape), NEAR)
        if layout is not None:
            found = distance(rearranged(layout, mine), other)
    return found if found <= NEAR else math.inf


class Computed:
    """What a run of A saw.

    Args:
        run: a Trace.
        names: the parameters that are looked for.
    """

    def __init__(self, run, names):
        self.by_size: dict = {}
        self.readers: dict = {}
        self.outputs: dict = {}
        known = {}
        owned: dict = {}
        for name, path in owners(run, names).items():
            owned.setdefault(path, []).append(name)
        for step in run.steps:
            for array in step.inputs.values():
                if step.module in owned or step.module == WHOLE:
                    known[id(array)] = array
                if step.module in owned:
                    self.readers.setdefault(id(array), []).append(step.module)
            for array in step.outputs.values():
                known[id(array)] = array
                self.outputs.setdefault(step.module, []).append(array)
        for array in list(known.values()):
            small = narrowed(array)
            for each in (array, *([small] if small is not array else ())):
                if each.size > 1:
                    self.by_size.setdefault(each.size, []).append(
                        (each, signature(each), id(array)))

    def find(self, array):
        """The distance of A's arrays that hold these numbers: {id: distance}.
        """
        if array.size < 2:
            return {}
        mark = signature(array)
        if mark[2] == mark[3]:
            return {}
        if not is_float(array):
            return {key: 0.0 for each, _, key in self.by_size.get(
                array.size, ()) if not is_float(each) and np.array_equal(
                    each.reshape(-1), array.reshape(-1))}
        found = {key: least_distance(array, each) for each, other, key
                 in self.by_size.get(array.size, ())
                 if is_float(each) and alike(mark, other)}
        return {key: far for key, far in found.items() if far <= NEAR}

    def error(self, array):
        """How far the nearest of A's arrays is; infinity if none is near.

        It may be one that A did not repeat along the first axis.
        """
        found = self.find(array)
        if not found:
            small = narrowed(array)
            found = self.find(small) if small is not array else {}
        return min(found.values(), default=math.inf)

    def has(self, array):
        """Whether A computed these numbers."""
        return self.error(array) <= NEAR

    def reading(self, arrays):
        """The modules of A with parameters that were given these arrays."""
        return {path for array in arrays for key in self.find(array)
                for path in self.readers.get(key, ())}
