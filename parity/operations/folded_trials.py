"""Guesses of a norm of a's that b has in the kernel and bias before it."""

import numpy as np

from parity.operations.align import ENDS
from parity.operations.layouts import distance, relaid
from parity.operations.program import LEAF, PARAMETER
from parity.operations.state import State
from parity.operations.trial import FOLDED, Trial

#: What a norm with averages that are kept does, number by number.
AFFINE = {"add", "subtract", "multiply", "divide"}

#: How near a straight line its numbers are, as a share.
NEAR = 1e-9


class FoldedTrials(State):
    """Trials with a kernel that has a norm's factors, and a bias with the
    rest."""

    def folded(self, operation):
        """a's kernel, times what follows it, in the place of b's."""
        kernel = self.kernel(self.two, operation)
        if kernel is None:
            return
        bias = next((self.b.values[root] for each in self.two.readers.get(
            self.two.root(operation.results[0]), ()) if each.name == "add"
            for root in self.two.arrays(each).values()
            if self.b.values[root].kind == PARAMETER), None)
        for other, pairs in self.partners(operation):
            mine = self.kernel(self.one, other)
            if mine is None or len(pairs) != 1:
                continue
            last, scaled = self.affine(other)
            if not scaled:
                continue
            for edits in self.ways(mine, other.results[0], last, kernel, bias):
                yield Trial(
                    FOLDED, operation, self.a.maker(last), kernel.number,
                    last, [edits])

    @staticmethod
    def kernel(skeleton, operation):
        """The parameter of a product or convolution, or None."""
        values = skeleton.program.values
        found = [values[root] for root in skeleton.arrays(operation).values()
                 if values[root].kind == PARAMETER and values[root].name]
        return found[0] if len(found) == 1 and operation.name in (
            "matmul", "convolution") else None

    def affine(self, operation):
        """The last value to which only tables are added, or by which it is
        multiplied; and whether any multiplies it."""
        value, scaled = self.one.root(operation.results[0]), False
        while True:
            readers = self.one.readers.get(value, ())
            after = [each for each in readers if each.name in AFFINE and all(
                root == value or root in self.tables["a"]
                for root in self.one.arrays(each).values())]
            if len(readers) != 1 or not after:
                return value, scaled
            scaled = scaled or after[0].name in ("multiply", "divide")
            value = self.one.root(after[0].results[0])

    def ways(self, mine, first, last, kernel, bias):
        """Yield edits of b: a's kernel times the slopes of a line by channel,
        and its offsets; of what differs alone."""
        for slopes, offsets in lines(
                self.a.values[first].array, self.a.values[last].array):
            if bias is None and np.abs(offsets).max() > ENDS or (
                    bias is not None and bias.array.size != offsets.size):
                continue
            for out, size in enumerate(mine.array.shape):
                if size != slopes.size:
                    continue
                shape = [1] * mine.array.ndim
                shape[out] = size
                for laid in relaid(mine.array * slopes.reshape(shape),
                                   kernel.array, 1):
                    edits = {(LEAF, kernel.name): laid} | (
                        {} if bias is None else {(LEAF, bias.name):
                         offsets.reshape(bias.array.shape)})
                    edits = {key: array for key, array in edits.items()
                             if distance(array, (kernel if key[1] ==
                                                 kernel.name else bias).array)
                             > ENDS}
                    if edits:
                        yield edits


def lines(one, two):
    """Yield of each axis along which an array is another by a line for each
    place: (slopes, offsets)."""
    if one.shape != two.shape:
        return
    for axis in range(1, one.ndim):
        x, y = (np.moveaxis(each, axis, 0).reshape(one.shape[axis], -1)
                for each in (one, two))
        spread = np.ptp(x, 1)
        if x.shape[1] < 3 or not spread.all():
            continue
        rows = np.arange(len(x))
        low, high = x.argmin(1), x.argmax(1)
        slopes = (y[rows, high] - y[rows, low]) / spread
        offsets = y[rows, low] - slopes * x[rows, low]
        if np.abs(slopes[:, None] * x + offsets[:, None] - y).max() <= (
                NEAR * np.abs(y).max()):
            yield slopes, offsets
