"""What is known of two programs at one state of b."""

import functools

from parity.operations.align import ENDS, is_view, moves
from parity.operations.layouts import (
    distance, relaid, relaid_as, reordered_as)
from parity.operations.program import OPERAND, RESULT
from parity.operations.roles import is_shift, tables_of
from parity.operations.trial import unlike

#: Pairs of operations of which one undoes what the other does.
OPPOSITES = {("multiply", "divide"): lambda c: 1 / c,
             ("divide", "multiply"): lambda c: 1 / c,
             ("add", "subtract"): lambda c: -c,
             ("subtract", "add"): lambda c: -c}

#: How many operations that only a does may stand between.
BETWEEN = 6

#: How far the moments of two values are apart that are likely each other's.
ALIKE = 0.3

#: How many lost values may stand between one and the values, of both
#: programs, that are held to be where it comes from.
NEAR_BY = 8

#: How many values of a are tried for one of b's.
TRIED = 3

#: Arrays whose signatures are alike within a limit are apart, number by number
#: in one order, by so many times that limit at most.
ROUNDED = 100


def given(program, number, array):
    """Edits by which a value is an array, and any that the same operation
    makes of the same is too.

    Args:
        program: b's.
        number: of a result.
        array: of the value's shape.
    """
    value, maker = program.values[number], program.maker(number)
    alike = [value.number] if not value.signature.telling else [
        each.number for each in program.values
        if each.signature.digest == value.signature.digest
        and each.shape == value.shape
        and program.maker(each.number) is not None
        and program.maker(each.number).name == maker.name]
    return {(RESULT, program.maker(each).number,
             program.maker(each).results.index(each)): array
            for each in alike}


class State:
    """Both programs, what is lost in them, and who reads what.

    Args:
        alignment: an Alignment.
        one, two: the Skeletons of a and b.
        free: whether an operation that only one of them does is sought also
            where what reads it has another name.

    Attributes:
        lost_a, lost_b: the roots that are lost, those before others first.
        first: those of b before which none is lost.
        made_a: the operations that make what is lost in a.
    """

    def __init__(self, alignment, one, two, free=False):
        self.alignment, self.one, self.two = alignment, one, two
        self.free = free
        self.a, self.b = alignment.a, alignment.b
        lost, depth = alignment.lost, alignment.depth
        self.lost_a = sorted(
            {one.root(number) for number in lost["a"]},
            key=lambda number: (depth["a"].get(number, 0), number))
        self.lost_b = sorted(
            {two.root(number) for number in lost["b"]},
            key=lambda number: (depth["b"].get(number, 0), number))
        self.first = [number for number in self.lost_b
                      if depth["b"].get(number, 0) == 0]
        self.made_a = [maker for number in self.lost_a
                       for maker in self.a.makers(number)]

    def matches(self, number, other):
        """Whether a value of b has the numbers of one of a."""
        return other in self.alignment.in_a.get(number, ())

    def apart(self, one, two):
        """Whether two arrays of values that are the same up to order lie in
        another, and are not merely rounded otherwise."""
        return distance(one, two) > max(ENDS, ROUNDED * self.alignment.near)

    def is_lost(self, side, number):
        """Whether a value is lost."""
        return number in self.alignment.lost[side]

    def shared(self, b, a):
        """[(slot in b, slot in a)]: operands that are the same numbers."""
        left, pairs = dict(self.one.arrays(a)), []
        for slot, value in self.two.arrays(b).items():
            for other, number in left.items():
                if self.matches(value, number):
                    pairs.append((slot, other))
                    del left[other]
                    break
        return pairs

    def partners(self, operation):
        """Operations of a, lost as this one is, that read some of the same:
        (operation, pairs of operands), those of its name first."""
        found, near = [], {
            each.number for root in self.two.arrays(operation).values()
            for twin in self.alignment.in_a.get(root, ())
            for each in self.one.readers.get(twin, ())}
        for other in self.made_a:
            if other.number not in near or is_view(other):
                continue
            pairs = self.shared(operation, other)
            if pairs and (other.name == operation.name or (
                    operation.name, other.name) in OPPOSITES):
                found.append((other, pairs))
        return sorted(found, key=lambda each: (
            each[0].name != operation.name, -len(each[1]),
            self.alignment.depth["a"].get(each[0].results[0], 0)))

    def laid(self, number, other, most=2):
        """A value of a in the shape of one of b: in the layout in which b has
        what it has of a there, or else in the likeliest.

        Args:
            number: of a's value.
            other: of b's value, in whose place it is put.
            most: how many ways are returned.
        """
        theirs, mine = self.a.values[number], self.b.values[other]
        for way in (relaid_as, reordered_as):
            for twin in self.alignment.in_a.get(other, ()):
                made = way(theirs.array, self.a.values[twin].array,
                           mine.array)
                if made is not None:
                    return [made]
        return relaid(theirs.array, mine.array, most)

    def readers(self, number, array):
        """Edits by which all that is lost and reads a value, or a view of
        it, reads an array instead."""
        root, edits = self.two.root(number), {}
        for operation in self.two.readers.get(root, ()):
            if not any(result in self.alignment.lost["b"]
                       for result in operation.results):
                continue
            for slot, operand in enumerate(operation.operands):
                if self.two.root(operand) == root:
                    made = relaid(array, self.b.values[operand].array, 1)
                    if made:
                        edits[OPERAND, operation.number, slot] = made[0]
        return edits

    def source(self, side, number):
        """The root of a value that the other side has as well: its own, or
        that of which it is a part or another order; None without one."""
        skeleton = self.one if side == "a" else self.two
        program, root = skeleton.program, skeleton.root(number)
        while self.is_lost(side, root):
            maker = program.maker(root)
            if maker is None or not moves(maker) or len(maker.operands) != 1:
                return None
            root = skeleton.root(maker.operands[0])
        return root

    def read_by(self, number, name):
        """A value of a as an operation of some name reads it: in its shape;
        the value itself where none does."""
        return next((operand for each in self.one.readers.get(number, ())
                     if each.name == name for operand in each.operands
                     if self.one.root(operand) == number), number)

    def made_of(self, numbers):
        """Lost values of a that follow from some in a few operations."""
        now, seen = {*map(self.one.root, numbers)}, []
        for _ in range(BETWEEN):
            now = {self.one.root(result) for root in now
                   for operation in self.one.readers.get(root, ())
                   for result in operation.results
                   if self.is_lost("a", result)}
            seen += sorted(now - {*seen})
        return seen

    @functools.cached_property
    def tables(self):
        """{"a": …, "b": …}: the values that do not depend on any input."""
        return {side: tables_of(program) for side, program in (
            ("a", self.a), ("b", self.b))}

    @functools.cached_property
    def sources(self):
        """{"a": …, "b": …}: of each value that is lost near to what both have,
        the values that it follows from and that both have."""
        found, in_a, in_b = {}, self.alignment.in_a, self.alignment.in_b
        for side, program in (("a", self.a), ("b", self.b)):
            depth, mine = self.alignment.depth[side], {}
            for number in sorted(self.alignment.lost[side]):
                maker, of = program.maker(number), set()
                for each in () if maker is None else maker.operands:
                    twins = [each] if side == "a" else in_a.get(each, ())
                    of |= mine.get(each, set()) | {
                        in_b[twin][0] for twin in twins[:1] if twin in in_b}
                if depth.get(number, 0) <= NEAR_BY:
                    mine[number] = of
            found[side] = mine
        return found

    def elsewhere(self, a, b):
        """How much of what a lost value of a and one of b's follow from is not
        the same, in quarters: of another expert, or layer, it is all."""
        one = self.sources["a"].get(a, set())
        two = self.sources["b"].get(b, set())
        return 4 - round(4 * len(one & two) / len(one | two)) if (
            one and two) else 0

    def nearest(self, value, numbers, most=TRIED):
        """Those of some values of a that are most like one of b's."""
        found = []
        for number in numbers:
            theirs = self.a.values[number]
            if theirs.signature.kind == value.signature.kind and (
                    theirs.signature.size % value.signature.size == 0) and (
                    theirs.signature.size > 1) and not is_view(
                    self.a.maker(number)):
                found.append((unlike(theirs, value), number))
        return [number for *_, number in sorted(found)[:most]]

    def likely(self, mine, maker):
        """Lost values of a that may be one of b's."""
        found = []
        for number in self.lost_a:
            theirs, other = self.a.values[number], self.a.maker(number)
            if other is None or theirs.signature.kind != mine.signature.kind:
                continue
            if theirs.signature.size != mine.signature.size or (
                    other.name != maker.name and is_shift(self.one, other)):
                continue
            found.append((
                other.name != maker.name, not self.shared(maker, other),
                self.elsewhere(number, mine.number),
                unlike(theirs, mine) > ALIKE,
                self.alignment.depth["a"].get(number, 0),
                unlike(theirs, mine), number))
        return [number for *_, number in sorted(found)[:TRIED]]
