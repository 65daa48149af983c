"""Tables and numbers of two programs that are the same but for float32.

A table of frequencies or positions that a model keeps in float32, or that was
made in it before the model was handed in, is exact in neither run. Where a's
and b's are the same numbers to float32's rounding, and one of them has no more
digits than float32, b is run with a's. So is a single number that a graph keeps
in float32, such as the √2 of TensorFlow's GELU.
"""

import numpy as np

from parity.operations.folded_trials import FoldedTrials
from parity.operations.layouts import relaid
from parity.operations.program import LEAF, MADE, OPERAND, PARAMETER, RESULT
from parity.operations.roles import tables_of
from parity.operations.skeleton import Skeleton
from parity.operations.state import OPPOSITES, State
from parity.operations.trial import number_of

#: How far a number in float32 may be from the one that it stands for, as a
#: share of it, or of what its table's numbers are: a power or a sine of float32
#: errs by a few units, and a sine near 0 by as much as any other.
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


def rounded_numbers(alignment):
    """The pairs of single numbers that are the same but for float32, in
    operations that read the same; as of ``rounded_tables``. What b has in
    one such operation it has in all, as in each layer."""
    a, b = alignment.a, alignment.b
    one, two, found = Skeleton(a), Skeleton(b), []
    state = State(alignment, one, two)
    for operation in b.operations:
        constants = two.constants(operation) if any(
            state.is_lost("b", each) for each in operation.results) else {}
        for other, _ in state.partners(operation) if constants else ():
            turn = OPPOSITES.get((operation.name, other.name), float)
            for slot, mine in constants.items():
                for theirs in one.constants(other).values():
                    numbers = [number_of(program.values[each]) for
                               program, each in ((a, theirs), (b, mine))]
                    if None in numbers or 0 in numbers:
                        continue
                    asked = turn(numbers[0])
                    if numbers[1] != asked and same_in_float32(
                            *map(np.asarray, (asked, numbers[1])),
                            shorter=numbers):
                        found.append((theirs, mine, {
                            (OPERAND, each.number, slot): np.asarray(asked)
                            for each in b.operations
                            if each.native == operation.native
                            and slot in two.constants(each) and number_of(
                                b.values[each.operands[slot]]) == numbers[1]}))
    return found


def rounded_kernels(alignment):
    """The kernels of b in which a norm of a's was folded in float32; as of
    ``rounded_tables``."""
    one, two = Skeleton(alignment.a), Skeleton(alignment.b)
    trials = FoldedTrials(alignment, one, two)
    leaves = {value.name: value for value in alignment.b.values if value.name}
    return [(trial.value_a, trial.value_b, trial.ways[0])
            for operation in alignment.b.operations if any(
                trials.is_lost("b", each) for each in operation.results)
            for trial in trials.folded(operation) if all(
                np.allclose(array, leaves[name].array, rtol=UNIT,
                            atol=UNIT * np.abs(array).max())
                and np.array_equal(leaves[name].array, leaves[
                    name].array.astype(np.float32))
                for (_, name), array in trial.ways[0].items())]


def same_in_float32(one, two, shorter=None):
    """Whether two arrays of one shape are the same but for float32, which at
    least one of them, or of ``shorter``, is in."""
    if not (np.isfinite(one).all() and np.isfinite(two).all()):
        return False
    size = np.maximum(np.abs(one), np.abs(two))
    if size.size > 1:
        size = np.maximum(size, min(1.0, float(np.median(size))))
    if not (np.abs(one - two) <= UNIT * size).all():
        return False
    return any(np.array_equal(each, each.astype(np.float32))
               for each in map(np.asarray, shorter or (one, two))
               ) and not np.array_equal(one, two)
