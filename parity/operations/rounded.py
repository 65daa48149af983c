"""Tables and numbers of two programs that are the same but for float32.

A table of frequencies or positions that a model keeps in float32, or that was
made in it before the model was handed in, is exact in neither run. Where a's
and b's are the same numbers to float32's rounding, and one of them has no more
digits than float32, b is run with a's. So is a single number that a graph keeps
in float32, such as the √2 of TensorFlow's GELU.
"""

import itertools

import numpy as np

from parity.operations.folded_trials import FoldedTrials
from parity.operations.layouts import relaid
from parity.operations.program import LEAF, MADE, OPERAND, PARAMETER, RESULT
from parity.operations.skeleton import Skeleton
from parity.operations.state import OPPOSITES, State
from parity.operations.trial import number_of

#: How far a number in float32 may be from the one that it stands for, as a
#: share of it, or of what its table's numbers are: a power or a sine of float32
#: errs by a few units, and a sine near 0 by as much as any other.
UNIT = 8 * float(np.finfo(np.float32).eps)

#: How far the moments of such arrays are apart at most.
ROUGH = 100 * UNIT


def rounded_tables(alignment):
    """The pairs of tables that are the same but for float32.

    Args:
        alignment: an Alignment of two programs with all arrays.

    Returns:
        A list of (number in a, number in b, edits of b).
    """
    a, b = alignment.a, alignment.b
    two, found, done = Skeleton(b), [], set()
    for other, number in pairs_in_float32(alignment):
        value = b.values[number]
        maker = b.maker(number)
        if number in done:
            continue
        laid = laid_in_float32(a.values[other].array, value.array)
        edits = {(LEAF, value.name): laid} if (
            value.kind == PARAMETER) else {
            (RESULT, maker.number, maker.results.index(
                number)): laid} if value.kind == MADE else {
            (OPERAND, operation.number, slot): laid
            for operation in two.users.get(number, ())
            for slot, operand in enumerate(operation.operands)
            if operand == number}
        found.append((other, number, edits))
        done |= two.after([number])
    return found


def rounded_leaves(alignment):
    """Edits of a: its parameters in float32 of which b has the exact numbers,
    such as a grid that b computes. What a makes of them is then exact too."""
    a, b = alignment.a, alignment.b
    edits = {}
    for other, number in pairs_in_float32(alignment):
        mine, theirs = b.values[number].array, a.values[other]
        if theirs.kind == PARAMETER and is_float32(
                theirs.array) and not is_float32(mine):
            laid = laid_in_float32(mine, theirs.array)
            if laid is not None:
                edits[LEAF, theirs.name] = laid
    return edits


def pairs_in_float32(alignment):
    """Yield (number in a, number in b) of tables that are the same but for
    float32, those first that are used alike."""
    a, b = alignment.a, alignment.b
    one, two = Skeleton(a), Skeleton(b)
    meeting = {side: meeting_data(skeleton)
               for side, skeleton in (("a", one), ("b", two))}
    lost = {"a": alignment.lost["a"] & one.tables,
            "b": alignment.lost["b"] & two.tables
            | otherwise_read(alignment, meeting)}
    mine, theirs = (
        sorted(number for number in lost[side]
               if (program.values[number].signature.size > 1
                   or program.values[number].kind == PARAMETER)
               and program.values[number].signature.kind == "f")
        for side, program in (("a", a), ("b", b)))
    for number in theirs:
        for other in sorted(mine, key=lambda each: (
                one.root(each) in meeting["a"]) != (
                two.root(number) in meeting["b"])):
            if np.allclose(*(program.values[each].signature.moments
                             for program, each in ((a, other), (b, number))),
                           rtol=ROUGH, atol=ROUGH) and laid_in_float32(
                    a.values[other].array,
                    b.values[number].array) is not None:
                yield other, number


def meeting_data(skeleton):
    """The tables that are read, as they are or in a view, beside what follows
    from an input."""
    return {root for root, readers in skeleton.readers.items()
            if root in skeleton.tables and any(
                result not in skeleton.tables
                for each in readers for result in each.results)}


def otherwise_read(alignment, meeting):
    """The parameters of b that meet data and that a has as well, but only to
    make tables of them: a weight that a norm's factor was folded into, where
    it is 1 in float32."""
    return {number for number in meeting["b"]
            if alignment.b.values[number].kind == PARAMETER
            and number not in alignment.lost["b"]
            and any(result in alignment.lost["b"]
                    for each in alignment.b.users.get(number, ())
                    for result in alignment.b.operations[each].results)
            and meeting["a"].isdisjoint(alignment.in_a.get(number, ()))}


def laid_in_float32(array, like):
    """An array in the layout of another that has the same numbers but for
    float32, turned round where it is so; None where they are others."""
    if array.size % like.size and (
            array.size == 1 or like.size % array.size):
        return None
    if array.size == like.size and not same_in_float32(*(
            np.sort(each, None) for each in (array, like))):
        return None
    for count in range(like.ndim + 1):
        for turned in itertools.combinations(range(like.ndim), count):
            there = np.flip(like, turned)
            made = relaid(array, there, 1)
            if made and same_in_float32(made[0], there):
                return np.flip(made[0], turned)
    return None


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
                and is_float32(leaves[name].array)
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
    return any(map(is_float32, shorter or (one, two))
               ) and not np.array_equal(one, two)


def is_float32(array):
    """Whether float32 holds the numbers of an array, or a number."""
    return np.array_equal(array, np.asarray(array).astype(np.float32))
