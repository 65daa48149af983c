"""What a program computes, as another would that is cut elsewhere.

Two sound programs may part only in how they are cut: one adds three numbers
from the left, another from the right; one turns the halves of a query, another
its whole; one gives each expert the rows that are its own, another all rows.
Here the run of one program is told in the other ways too, in values that it
never computed. Each is checked by numbers: it gives what the run gave.
"""

import dataclasses
import itertools

import numpy as np

from parity.operations.align import is_scalar
from parity.operations.equivalent_rows import TakenRows
from parity.operations.program import MADE, Value
from parity.operations.roles import terms
from parity.operations.signature import signature
from parity.operations.skeleton import Skeleton
from parity.operations.vocabulary import BINARY, UNARY

#: Operations that are done number by number.
PLAIN = UNARY | BINARY | {"where", "clip"}

#: Of more parts, or summands, no other way is told: each multiplies the rest.
PARTS, TERMS = 4, 4

#: So many numbers at most are added to a program.
MOST = 4_000_000


class Others:
    """A Program with values beside its own.

    Args:
        program: a Program with all arrays.

    Attributes:
        program: a copy to which ``added`` and ``equals`` are put.
        count: how many numbers were added.
    """

    def __init__(self, program):
        self.program = dataclasses.replace(
            program, values=[*program.values],
            operations=[*program.operations], equals=dict(program.equals),
            added={*program.added})
        self.count = 0

    def value(self, number):
        """A Value by its number."""
        return self.program.values[number]

    def array(self, number):
        """The array of a value."""
        return self.program.values[number].array

    def add(self, like, operands, array, **changed):
        """Add an Operation that is done as another; its result's number.

        Args:
            like: the Operation of whose line, module and name it is.
            operands: numbers.
            array: what it gives.
            changed: what it has otherwise than ``like``.
        """
        number, result = len(self.program.operations), len(self.program.values)
        self.count += array.size
        self.program.values.append(Value(
            result, MADE, "", array.shape, self.value(like.results[0]).dtype,
            array, signature(array), number))
        self.program.operations.append(dataclasses.replace(
            like, number=number, operands=tuple(operands), results=(result,),
            **changed))
        self.program.added.add(result)
        return result

    def same(self, like, number, operands, **changed):
        """Put down that a value is also what an operation makes of others."""
        operation = dataclasses.replace(
            like, number=len(self.program.operations),
            operands=tuple(operands), results=(number,), **changed)
        self.program.operations.append(operation)
        self.program.equals.setdefault(number, []).append(operation.number)

    @property
    def full(self):
        """Whether enough was added."""
        return self.count > MOST


def with_equivalents(program):
    """A Program with what it computes in other ways beside it.

    Args:
        program: a Program of which all arrays are kept.

    Returns:
        A Program whose ``added`` are the values that its run did not compute,
        and whose ``equals`` tells by which operations, not of the run, a value
        is made of them; the one that is given where there are none.
    """
    if program.added or any(
            value.array is None for value in program.values):
        return program
    if "equivalents" not in program.kept:
        others, own = Others(program), [*program.operations]
        for add in (sums, JoinedParts, TakenRows):
            add(others, own)
        program.kept["equivalents"] = others.program if (
            others.program.added) else program
    return program.kept["equivalents"]


def sums(others, own):
    """Sums of three or four of which one follows from no input, from any
    side."""
    skeleton = Skeleton(others.program)
    for operation in own:
        if others.full or operation.name != "add" or (
                len(skeleton.arrays(operation)) != 2):
            continue
        of = [each for term in terms(skeleton, operation)
              for each in parted(others, skeleton, term)]
        if not 2 < len(of) <= TERMS or not any(
                each in skeleton.tables for each in of):
            continue
        whole = others.array(operation.results[0])
        shaped = [_aligned(others.array(each), whole) for each in of]
        if any(each is None for each in shaped) or not np.allclose(
                sum(shaped), whole, rtol=1e-9, atol=1e-12):
            continue
        tables = [i for i, each in enumerate(of) if each in skeleton.tables]
        rest = [i for i in range(len(of)) if i not in tables]
        for chosen, left in (*((
                [i for i in range(len(of)) if i != one], [one])
                for one in range(len(of))), (rest, tables)):
            if chosen and left:
                others.same(operation, operation.results[0], [
                    added(others, operation, of, shaped, some)
                    for some in (chosen, left)])


def added(others, operation, of, arrays, places):
    """The number of the sum of some summands."""
    number, array = of[places[0]], arrays[places[0]]
    for place in places[1:]:
        array = array + arrays[place]
        number = others.add(operation, (number, of[place]), array)
    return number


def parted(others, skeleton, term):
    """Of a part of what a row was added to: that part, and the row; of any
    other summand itself."""
    maker = skeleton.program.maker(term)
    source = skeleton.maker(maker.operands[0]) if maker is not None and (
        maker.name == "slice") else None
    roots = [*skeleton.arrays(source).values()] if source is not None and (
        source.name == "add") else []
    if len(roots) != 2 or (roots[0] in skeleton.tables) == (
            roots[1] in skeleton.tables):
        return [term]
    whole, row = sorted(roots, key=skeleton.tables.__contains__)
    array, more = others.array(term), others.array(row)
    if more.size != more.shape[-1:][0] or array.shape[-1:] != (more.size,):
        return [term]
    return [others.add(maker, (whole,), array - more.reshape(-1)), row]


def _aligned(array, whole):
    """An array as it meets another in a sum, or None: its lone axes aside."""
    made = array.reshape(whole.shape) if array.size == whole.size else array
    try:
        return made if np.broadcast_shapes(
            made.shape, whole.shape) == whole.shape else None
    except ValueError:
        return None


class JoinedParts:
    """What is done to what was joined, done to each piece of it.

    Args:
        others: an Others, to which it is put.
        own: the operations of the run.
    """

    def __init__(self, others, own):
        self.others = others
        self.pieces = {}  # value -> axis from the end, sizes, numbers
        self.slices = {}
        for operation in own:
            if len(operation.results) != 1 or others.full:
                continue
            if operation.name == "concatenate":
                self.joined(operation)
            elif operation.name in PLAIN or operation.name in (
                    "reshape", "broadcast"):
                self.done(operation)

    def joined(self, operation):
        """Put down the pieces of a value."""
        array = self.others.array(operation.results[0])
        axis = operation.settings.get("axis", 0)
        axis = axis[0] if isinstance(axis, tuple) else axis
        if not isinstance(axis, int) or not array.ndim or not (
                2 <= len(operation.operands) <= PARTS):
            return
        axis = axis % array.ndim - array.ndim
        arrays = [self.others.array(each) for each in operation.operands]
        if any(each.ndim != array.ndim for each in arrays):
            return
        sizes = [each.shape[axis] for each in arrays]
        if sum(sizes) == array.shape[axis]:
            self.pieces[operation.results[0]] = (
                axis, sizes, operation.operands)

    def done(self, operation):
        """Put down an operation piece by piece, if it is done to pieces."""
        result = operation.results[0]
        array = self.others.array(result)
        mine = [self.pieces[each] for each in operation.operands
                if each in self.pieces]
        if not mine or not array.ndim:
            return
        axis, sizes, numbers = mine[0]
        if operation.name == "reshape":
            axis = self.moved(operation.operands[0], result, axis)
        if axis is None or -axis > array.ndim or (
                array.shape[axis] != sum(sizes)):
            return
        ends = [0, *itertools.accumulate(sizes)]
        made = []
        for i, (first, last) in enumerate(itertools.pairwise(ends)):
            part = cut(array, axis, first, last)
            operands = [numbers[i]] if operation.name == "reshape" else [
                self.piece(each, axis, sizes, i, first, last, operation)
                for each in operation.operands]
            made.append(self.others.add(operation, operands, part))
        self.pieces[result] = axis, sizes, made
        self.others.same(operation, result, made, name="concatenate",
                         settings={"axis": axis % array.ndim})

    def moved(self, source, result, axis):
        """The axis of a value that one of what it is a view of is, if only
        lone axes are put in or left out; or None."""
        one, two = (self.others.array(each).shape for each in (source, result))
        lean = [[i for i, size in enumerate(shape) if size != 1]
                for shape in (one, two)]
        place = axis % len(one)
        if place not in lean[0] or [one[i] for i in lean[0]] != [
                two[i] for i in lean[1]]:
            return None
        return lean[1][lean[0].index(place)] - len(two)

    def piece(self, number, axis, sizes, i, first, last, operation):
        """The number of an operand's piece: a scalar, and what is alike along
        the axis, is its own."""
        array = self.others.array(number)
        if is_scalar(self.others.value(number)) or array.ndim < -axis or (
                array.shape[axis] == 1):
            return number
        have = self.pieces.get(number)
        if have and have[:2] == (axis, sizes):
            return have[2][i]
        key = number, axis, first, last
        if key not in self.slices:
            self.slices[key] = self.others.add(
                operation, (number,), cut(array, axis, first, last),
                name="slice", native="slice", settings={
                    "axis": axis % array.ndim, "start": first, "stop": last})
        return self.slices[key]


def cut(array, axis, first, last):
    """Some places of an axis, which is counted from the end."""
    return array[(..., slice(first, last), *[slice(None)] * (-axis - 1))]
