"""From which operation on a wrong read has not what the whole has.

A read shows where it goes wrong, and that may be long behind what made it so.
From there operations are followed back, into the read before where that kept
what is read, to the first that makes of the whole's numbers others.
"""

import dataclasses
import itertools

import numpy as np

from parity.conversion.activations import FILLED
from parity.operations.program import Operation, Program

#: So many operations are followed back at most.
OPERATIONS = 400


@dataclasses.dataclass(frozen=True)
class WrongOperation:
    """An operation that goes wrong, or cuts off.

    Attributes:
        program: of which read, or of one before it.
        operation: the Operation.
    """

    program: Program
    operation: Operation

    def __str__(self):
        """Its line, and the one from which a function that is no module's
        method was called."""
        place = self.operation.place
        called = place.caller if not place.module else None
        return f"{place} ← {called}" if called and (
            str(called) != str(place)) else str(place)


class WholesNumbers:
    """What a run of all tokens at once computed, looked up by places.

    Args:
        whole: its Program.
        length: how many places there are.
        same: whether two arrays are the same within rounding.
    """

    def __init__(self, whole, length, same):
        self.length, self.same = length, same
        self.arrays: dict = {}
        for value in whole.values:
            if value.array is not None:
                self.arrays.setdefault(sort_of(value.array), []).append(
                    value.array)

    def has(self, array, read):
        """Whether an array of a Read holds the whole's numbers.

        Args:
            array: of the places that are read, of those before, or of both;
                of a static cache there is room behind.
        """
        return array.size < 2 or any(
            self.same(*unfilled(
                mine[tuple(slice(*span) for span in spans)],
                array[tuple(slice(last - first) for first, last in spans)]))
            for mine in self.arrays.get(sort_of(array), ())
            for spans in self.spans(mine.shape, array.shape, read))

    def spans(self, whole, shape, read):
        """Yield, along each axis of one of the whole's arrays, the places
        that one of a Read may be of."""
        made = []
        for mine, size in zip(whole, shape):
            start, stop = read.start, read.stop
            if mine == size and (mine != self.length or size <= stop):
                made.append({(0, size)})
            elif mine != self.length or stop < size < mine:
                return
            else:
                made.append({span for span in (
                    (0, size), (start, start + size), (stop - size, stop),
                    (start - size, start)) if 0 <= span[0] < span[1] <= stop
                    } if size <= stop else {(0, start or stop), (0, stop)})
        yield from itertools.product(*made)


def sort_of(array):
    """Arrays of another sort are not the same, whatever they hold."""
    return array.ndim, array.dtype.kind


def unfilled(one, two):
    """Two arrays without what a mask filled in both: beside it, everything
    would be the same."""
    if one.dtype.kind != "f" or two.dtype.kind != "f":
        return one, two
    filled = (np.abs(one) >= FILLED) & (one == two)
    return np.where(filled, 0, one), np.where(filled, 0, two)


def wrong_from(numbers, program, read, before, value):
    """The operation that makes of what is the whole's something that is not.

    Args:
        numbers: WholesNumbers.
        program: of a wrong Read, ``read``.
        before: an iterator of (Program, Read) of those before it, the last
            first, of which what was kept is the output.
        value: the number of a Value that is wrong.

    Returns:
        A WrongOperation; None where nothing is found.
    """
    for _ in range(OPERATIONS):
        maker = program.maker(value)
        if maker is None:
            program, read, value = kept_by(before, program.values[value].array)
            if program is None:
                return None
            continue
        wrong = [operand for operand in maker.operands
                 if program.values[operand].array is not None
                 and not numbers.has(program.values[operand].array, read)]
        if not wrong:
            return WrongOperation(program, maker)
        value = min(wrong, key=lambda each: program.values[
            each].array.dtype.kind != "f")  # a mask may be so by its length
    return None


def kept_by(before, array):
    """(Program, Read, number of the Value) of the read that kept an array;
    None each if none did."""
    for program, read in before:
        for number in program.outputs.values():
            value = program.values[number]
            if value.made_by is not None and np.array_equal(
                    value.array, array):
                return program, read, number
    return None, None, None


def cut_from(before):
    """The WrongOperation at which the last read before that kept fewer places
    than it had cut them off; None where there is none.

    Args:
        before: as of ``wrong_from``.
    """
    for program, _ in before:
        for number in program.outputs.values():
            while maker := program.maker(number):
                shape, made = program.values[number].shape, None
                for operand in maker.operands:
                    other = program.values[operand].shape
                    if len(other) == len(shape) > 1 and sum(
                            map(int.__ne__, other, shape)) == 1 and (
                            sum(other) > sum(shape)):
                        return WrongOperation(program, maker)
                    if other == shape:
                        made = operand
                if made is None:
                    break
                number = made
    return None
