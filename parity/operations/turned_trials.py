"""Guesses that the kernel of a convolution is turned round.

Some call a convolution what others call a correlation, and a transposed one
takes its kernel from either end.
"""

import itertools

import numpy as np

from parity.operations.operand_trials import OperandTrials
from parity.operations.program import OPERAND
from parity.operations.trial import ORDER, Trial

#: The place of a convolution's kernel among its operands.
KERNEL = 1


class TurnedTrials(OperandTrials):
    """Trials with a kernel from its other end."""

    def turned(self, operation):
        """b's kernel turned round along its places: all of them, or some."""
        if operation.name != "convolution" or self.is_lost(
                "b", operation.operands[KERNEL]):
            return
        kernel = operation.operands[KERNEL]
        array = self.b.values[kernel].array
        other = next((each for each, _ in self.partners(operation)
                      if each.name == operation.name), None)
        theirs = next(iter(self.alignment.in_a.get(
            self.two.root(kernel), ())), None)
        ways = [np.flip(array, axes) for places in _places(operation, array)
                for axes in _some(places)]
        ways = [{(OPERAND, operation.number, KERNEL): way} for way in ways
                if self.apart(way, array)]
        if ways and None not in (other, theirs):
            yield Trial(ORDER, operation, other, kernel, theirs, ways, KERNEL)


def _places(operation, kernel):
    """The axes along which a kernel is moved: as its layout has them, else
    behind its channels or before them."""
    if layout := operation.settings.get("layout"):
        return [tuple(layout[1][2:])]
    axes = tuple(range(kernel.ndim))
    return [axes[2:], axes[:-2]]


def _some(axes):
    """Yield all of some axes, then fewer."""
    for count in range(len(axes), 0, -1):
        yield from itertools.combinations(axes, count)
