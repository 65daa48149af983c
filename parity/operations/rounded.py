"""Tables that are the same but for float32, in one of two programs.

A table of frequencies or positions that a model keeps in float32, or that was
made in it before the model was handed in, is exact in neither run. Where a's
and b's are the same numbers to float32's rounding, and one of them has no more
digits than float32, b is run with a's.
"""

import numpy as np

from parity.operations.layouts import relaid
from parity.operations.program import LEAF, MADE, OPERAND, PARAMETER, RESULT
from parity.operations.roles import tables_of
from parity.operations.skeleton import Skeleton

#: How far a number in float32 may be from the one that it stands for: a power
#: or a sine of float32 errs by a few units.
UNIT = 8 * float(np.finfo(np.float32).eps)


def rounded_tables(alignment):
    """The pairs of tables that are the same but for float32.

    Args:
        alignment: an Alignment of two programs with all arrays.

    Returns:
        A list of (number in a, number in b, edits of b).
    """
    a, b = alignment.a, alignment.b
    mine, theirs = (
        sorted(number for number in alignment.lost[side] & tables_of(program)
               if (program.values[number].signature.size > 1
                   or program.values[number].kind == PARAMETER)
               and program.values[number].signature.kind == "f")
        for side, program in (("a", a), ("b", b)))
    two, found, done = Skeleton(b), [], set()
    for number in theirs:
        value = b.values[number]
        maker = b.maker(number)
        if number in done:
            continue
        for other in mine:
            array = a.values[other].array
            if array.size % value.array.size:
                continue
            laid = relaid(array, value.array, 1)
            if laid and same_in_float32(laid[0], value.array):
                edits = {(LEAF, value.name): laid[0]} if (
                    value.kind == PARAMETER) else {
                    (RESULT, maker.number, maker.results.index(
                        number)): laid[0]} if value.kind == MADE else {
                    (OPERAND, operation.number, slot): laid[0]
                    for operation in two.users.get(number, ())
                    for slot, operand in enumerate(operation.operands)
                    if operand == number}
                found.append((other, number, edits))
                done |= two.after([number])
                break
    return found


def same_in_float32(one, two):
    """Whether two arrays of one shape are the same but for float32, which at
    least one of them is in."""
    if not (np.isfinite(one).all() and np.isfinite(two).all()):
        return False
    size = np.maximum(np.abs(one), np.abs(two))
    if not (np.abs(one - two) <= UNIT * size).all():
        return False
    return any(np.array_equal(each, each.astype(np.float32))
               for each in (one, two)) and not np.array_equal(one, two)
