"""The values of a run, found again in whatever arrangement."""

import numpy as np

from parity.conversion.weights import owners
from parity.matching.rearrangement import best, candidates, rearranged
from parity.matching.values import NEAR, alike, far_apart, signature
from parity.numerics.distance import finite_distance
from parity.tracing.trace import is_float


def narrowed(array):
    """An array without a first axis along which it only repeats itself."""
    if array.ndim > 1 and array.shape[0] > 1 and np.array_equal(
            array, np.broadcast_to(array[:1], array.shape)):
        return array[:1]
    return array


def same(mine, other):
    """Whether two arrays hold the same numbers in some layout."""
    if mine.size != other.size:
        return False
    if mine.shape == other.shape and far_apart(mine, other) <= NEAR and (
            finite_distance(mine.reshape(-1), other.reshape(-1)) <= NEAR):
        return True
    layout, _ = best(mine, other, candidates(mine.shape, other.shape), NEAR)
    return layout is not None and finite_distance(
        rearranged(layout, mine).reshape(-1), other.reshape(-1)) <= NEAR


class Computed:
    """What a run of A saw.

    Args:
        run: a Trace.
        names: the parameters that are looked for.
    """

    def __init__(self, run, names):
        self.by_size, self.readers, self.outputs = {}, {}, {}
        known = {}
        owned = {}
        for name, path in owners(run, names).items():
            owned.setdefault(path, []).append(name)
        for step in run.steps:
            for array in step.inputs.values():
                if step.module in owned:
                    known[id(array)] = array
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
        """The ids of A's arrays that hold these numbers."""
        if array.size < 2:
            return []
        mark = signature(array)
        if mark[2] == mark[3]:
            return []
        if not is_float(array):
            return [key for each, _, key in self.by_size.get(array.size, ())
                    if not is_float(each) and np.array_equal(
                        each.reshape(-1), array.reshape(-1))]
        return [key for each, other, key in self.by_size.get(array.size, ())
                if is_float(each) and alike(mark, other)
                and same(array, each)]

    def has(self, array):
        """Whether A computed these numbers, perhaps without repeating them."""
        return bool(self.find(array) or self.find(narrowed(array)))

    def reading(self, arrays):
        """The modules of A with parameters that were given these arrays."""
        return {path for array in arrays for key in self.find(array)
                for path in self.readers.get(key, ())}
