"""A guess of what differs between two programs, and how b is mended by it."""

import dataclasses

import numpy as np

from parity.operations.program import Operation

#: What kinds of difference there are.
SCALAR, ARRAY, ORDER, OTHER, MISSING, EXTRA, COMPUTED, PACKED, FOLDED = (
    "constant", "array", "order", "operand", "missing", "extra", "computed",
    "packed", "folded")
EXCHANGED = "exchanged"


@dataclasses.dataclass
class Trial:
    """A guess of what differs, and the edits of b that would mend it.

    Attributes:
        kind: SCALAR: another number; ARRAY: another parameter, buffer or
            table; ORDER: the same numbers in another order; OTHER: another
            value is read; MISSING: a does more; EXTRA: b does more; COMPUTED:
            it is computed otherwise; PACKED: parts of a parameter stand in
            another order; FOLDED: a norm of a's is in b's kernel; EXCHANGED:
            parts of a value are taken for others of it.
        b, a: the operations, or None where there is none.
        value_b, value_a: numbers of the values that differ.
        ways: edits as of ``Runner.run``: where it is not known how a's axes
            lie in b, one for each way.
        slot: of b's operand, or the order of parts, or None.
        more: further Trials, without which it shows nothing.
        each: for ways that are not of the same values, a Trial for each.
    """

    kind: str
    b: Operation | None
    a: Operation | None
    value_b: int
    value_a: int
    ways: list
    slot: int | None = None
    more: tuple = ()
    each: tuple = ()

    def by(self, edits):
        """The Trial with one of its ways alone."""
        own = next((each for each in self.each if each.ways[0] is edits), self)
        return dataclasses.replace(own, ways=[edits], each=())


def number_of(value):
    """The number that a scalar Value is; None of one that is no number."""
    array = np.asarray(value.array)
    if array.dtype.kind not in "fiu" or array.size != 1:
        return None
    return float(array.reshape(-1)[0])


def unlike(one, two):
    """How far the numbers of two values are apart, in any order."""
    pairs = zip(one.signature.moments, two.signature.moments)
    return sum(abs(first - second) for first, second in pairs)


def lean(shape):
    """A shape without its axes of length 1."""
    return [size for size in shape if size != 1]
