"""What may differ between two programs where b's first values are lost.

A Trial is a guess with a reason in both programs: a constant of a's in an
operation of b's that reads the same, an operation that only one of them does,
another operand, another order of one. ``trials`` yields them, the likeliest
first. Whether one is true is for ``parity.operations.search`` to see by
running b with it.
"""

import dataclasses
import functools
import itertools
import math

import numpy as np

from parity.operations.align import ENDS, is_view, moves
from parity.operations.layouts import distance, relaid
from parity.operations.program import (
    CONSTANT, LEAF, MADE, OPERAND, PARAMETER, RESULT, Operation)
from parity.operations.roles import tables_of
from parity.operations.vocabulary import COMMUTATIVE

#: What kinds of difference there are.
SCALAR, ARRAY, ORDER, OTHER, MISSING, EXTRA, COMPUTED, PACKED = (
    "constant", "array", "order", "operand", "missing", "extra", "computed",
    "packed")

#: Pairs of operations of which one undoes what the other does.
OPPOSITES = {("multiply", "divide"): lambda c: 1 / c,
             ("divide", "multiply"): lambda c: 1 / c,
             ("add", "subtract"): lambda c: -c,
             ("subtract", "add"): lambda c: -c}

#: Operations that change nothing if they are done again: with one of a's
#: before it b's own is not seen.
IDEMPOTENT = {"where", "maximum", "minimum", "relu", "clip", "abs", "floor",
              "ceil", "round"}

#: How many operations that only a does may stand between.
BETWEEN = 6

#: Operations that every framework has alike, and which are tried first.
STABLE = {"matmul", "convolution"}

#: So many of the values that are lost first are tried before these.
EARLY = 4

#: How far the moments of two values are apart that are likely each other's.
ALIKE = 0.3

#: How many values of a are tried for one of b's, and orders of one of them.
TRIED, ORDERS = 3, 6


@dataclasses.dataclass
class Trial:
    """A guess of what differs, and the edits of b that would mend it.

    Attributes:
        kind: SCALAR: another number; ARRAY: another parameter, buffer or
            table; ORDER: the same numbers in another order; OTHER: another
            value is read; MISSING: a does more; EXTRA: b does more; COMPUTED:
            it is computed otherwise.
        b, a: the operations, or None where there is none.
        value_b, value_a: numbers of the values that differ.
        ways: edits as of ``Runner.run``: where it is not known how a's axes
            lie in b, one for each way.
        slot: of b's operand, or None.
        more: further Trials, without which it shows nothing.
    """

    kind: str
    b: Operation | None
    a: Operation | None
    value_b: int
    value_a: int
    ways: list
    slot: int | None = None
    more: tuple = ()


class Trials:
    """The guesses at one state of b.

    Args:
        alignment: an Alignment.
        one, two: the Skeletons of a and b.
        free: whether an operation that only one of them does is sought also
            where what reads it has another name.
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
        self.made_a = [self.a.maker(number) for number in self.lost_a
                       if self.a.maker(number) is not None]

    def every(self):
        """Yield each Trial, the likeliest first."""
        yield from self.at_source()
        yield from self.at_first(self.alike, self.leaf)
        yield from self.leaves(PARAMETER)
        yield from self.all_tables()
        yield from self.leaves(CONSTANT)
        yield from self.packed()
        if not self.free:
            yield from self.computed(most=EARLY)
        yield from self.computed(STABLE)
        yield from self.at_first(self.swapped, self.missing, self.extra,
                                 self.other)
        for number in self.first:
            if self.b.values[number].kind != MADE:
                yield from self.leaf_alone(number)
        yield from self.computed()

    def leaves(self, kind):
        """Yield those of lost parameters, or of tables, that tell."""
        for number in self.first:
            value = self.b.values[number]
            if value.kind == kind and value.signature.telling:
                yield from self.leaf_alone(number)

    def inside(self):
        """Yield those of one place where few operations are in question."""
        yield from self.at_first(self.alike, self.leaf, self.swapped,
                                 self.missing, self.extra, self.other)
        for number in self.first:
            if self.b.values[number].kind != MADE:
                yield from self.leaf_alone(number)
        yield from self.computed()

    def at_first(self, *passes):
        """Yield what some passes say of the first operations that are lost."""
        first = [self.b.maker(number) for number in self.first]
        first = sorted((each for each in first if each is not None),
                       key=lambda each: each.number)
        for each in passes:
            for operation in first:
                yield from each(operation)

    def matches(self, number, other):
        """Whether a value of b has the numbers of one of a."""
        return other in self.alignment.in_a.get(number, ())

    def shared(self, b, a):
        """[(slot in b, slot in a)]: operands that are the same numbers."""
        left, pairs = self.one.arrays(a), []
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
        found = []
        for other in self.made_a:
            if is_view(other):
                continue
            pairs = self.shared(operation, other)
            if pairs and (other.name == operation.name or (
                    operation.name, other.name) in OPPOSITES):
                found.append((other, pairs))
        return sorted(found, key=lambda each: (
            each[0].name != operation.name, -len(each[1]),
            self.alignment.depth["a"].get(each[0].results[0], 0)))

    def alike(self, operation):
        """The same operation on the same values: a constant or an order."""
        arrays = self.two.arrays(operation)
        for other, pairs in self.partners(operation):
            if len(pairs) < max(len(arrays), len(self.one.arrays(other))):
                continue
            yield from self.constant(operation, other)
            yield from self.parts(operation, other)
            if other.name == operation.name:
                for slot, there in pairs:
                    yield from self.order(operation, slot, other, there)

    def constant(self, operation, other):
        """A constant of a's in the place of b's."""
        theirs = self.one.constants(other)
        opposite = OPPOSITES.get((operation.name, other.name))
        for slot, value in self.two.constants(operation).items():
            for there, number in theirs.items():
                if other.name == operation.name and slot != there and (
                        operation.name not in COMMUTATIVE):
                    continue
                mine = number_of(self.b.values[value])
                asked = number_of(self.a.values[number])
                if mine is None or asked is None:
                    continue
                if opposite:
                    asked = opposite(asked) if asked or (
                        operation.name in ("add", "subtract")) else asked
                if not math.isclose(mine, asked, rel_tol=1e-12):
                    yield Trial(
                        SCALAR, operation, other, value, number,
                        [{(OPERAND, operation.number, slot): np.asarray(
                            asked)}], slot)

    def parts(self, operation, other):
        """All that an operation gives, such as the parts of a split."""
        mine = [self.b.values[each] for each in operation.results]
        theirs = [self.a.values[each] for each in other.results]
        if len(mine) < 2 or [each.signature.size for each in mine] != [
                each.signature.size for each in theirs]:
            return
        laid = [relaid(one.array, two.array, ORDERS)
                for one, two in zip(theirs, mine)]
        ways = [{(RESULT, operation.number, slot): array
                 for slot, array in enumerate(arrays)}
                for arrays in zip(*laid)]
        if ways:
            yield Trial(COMPUTED, operation, other, operation.results[0],
                        other.results[0], ways)

    def order(self, operation, slot, other, there):
        """a's operand, in a's order, in the place of b's."""
        mine = self.b.values[operation.operands[slot]]
        theirs = self.a.values[other.operands[there]]
        ways = [{(OPERAND, operation.number, slot): array}
                for array in relaid(theirs.array, mine.array, ORDERS)
                if distance(array, mine.array) > ENDS]
        if ways:
            yield Trial(ORDER, operation, other, mine.number, theirs.number,
                        ways, slot)

    def swapped(self, operation):
        """Another value of a's in the place of one that b reads."""
        arrays = self.two.arrays(operation)
        for other, pairs in self.partners(operation):
            if other.name != operation.name or len(pairs) == len(arrays):
                continue
            used = {there for _, there in pairs}
            for slot in arrays.keys() - {slot for slot, _ in pairs}:
                for there in self.one.arrays(other).keys() - used:
                    yield from self.instead(
                        OTHER, operation, slot, other, other.operands[there])

    def instead(self, kind, operation, slot, other, number):
        """Trials with a value of a as what an operation of b reads."""
        mine = self.b.values[operation.operands[slot]]
        theirs = self.a.values[number]
        ways = [self.readers(mine.number, array)
                for array in relaid(theirs.array, mine.array)
                if distance(array, mine.array) > ENDS]
        if any(ways):
            yield Trial(kind, operation, other, mine.number, number,
                        [*filter(None, ways)], slot)

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

    def leaf(self, operation):
        """A parameter or table of a's in the place of b's."""
        for slot, root in self.two.arrays(operation).items():
            value = self.b.values[root]
            if value.kind == MADE or not self.is_lost("b", root):
                continue
            for other, pairs in self.partners(operation):
                used = {there for _, there in pairs}
                for there in self.one.arrays(other).keys() - used:
                    yield from self.table(
                        value, operation, slot, other,
                        self.a.values[other.operands[there]])

    def leaf_alone(self, number):
        """A lost leaf, and lost leaves of a of its size."""
        value = self.b.values[number]
        for other in self.nearest(value, sorted(self.tables["a"])):
            yield from self.table(
                value, None, None, self.a.maker(other), self.a.values[other])

    def packed(self):
        """The parts of a packed projection, or a cell's gates, in another
        order: all parameters of the module that holds what is lost first."""
        operations = sorted(
            (self.b.maker(number) for number in self.first
             if self.b.maker(number) is not None),
            key=lambda each: each.number)
        for path in dict.fromkeys(each.module for each in operations):
            for count, width, owner in self.parts_of(path):
                values = [value for value in self.b.values
                          if value.kind == PARAMETER
                          and value.name.rpartition(".")[0] == owner
                          and width in value.shape]
                reader = next(each for each in operations
                              if each.module == path)
                for order in [*itertools.permutations(range(count))][1:]:
                    theirs = self.made_a[0] if self.made_a else None
                    yield Trial(
                        PACKED, reader, theirs, values[0].number,
                        theirs.results[0] if theirs else 0, [{
                            (LEAF, value.name): in_parts(
                                value.array, value.shape.index(width), order)
                            for value in values}], order)

    def parts_of(self, path):
        """Yield (how many, width, owner) of packed parts that a module, or
        what it is in, takes apart."""
        seen = set()
        for operation in self.b.operations:
            if operation.module != path or operation.name != "slice":
                continue
            whole = self.b.values[operation.operands[0]].shape
            part = self.b.values[operation.results[0]].shape
            for long, short in zip(whole, part):
                count = long // short if short else 0
                if long == short or count * short != long or not (
                        2 <= count <= 4):
                    continue
                for value in self.b.values:
                    owner = value.name.rpartition(".")[0]
                    if value.kind == PARAMETER and long in value.shape and (
                            owner == path or path.startswith(owner)
                            or owner.startswith(path)) and (
                            count, long, owner) not in seen:
                        seen.add((count, long, owner))
                        yield count, long, owner

    def all_tables(self):
        """Every lost table of a that meets data, in the place of b's."""
        left = {number: self.a.values[number]
                for number in self.meeting("a", self.one)}
        made = []
        for number in self.meeting("b", self.two):
            value = self.b.values[number]
            found = [(unlike(theirs, value), other)
                     for other, theirs in left.items()
                     if theirs.signature.kind == value.signature.kind]
            for _, other in sorted(found)[:TRIED]:
                ways = [self.readers(number, array) for array in relaid(
                    self.a.values[other].array, value.array, 1)]
                if ways and ways[0]:
                    made.append(Trial(
                        ARRAY, self.b.maker(number), self.a.maker(other),
                        number, other, ways[:1]))
                    break
        if made:
            together = {}
            for each in made:
                together |= each.ways[0]
            yield dataclasses.replace(
                made[0], ways=[together], more=tuple(made[1:]))

    def meeting(self, side, skeleton):
        """The lost tables that something computed of the inputs is joined
        with."""
        lost, tables = (self.lost_a if side == "a" else self.lost_b,
                        self.tables[side])
        values = getattr(self, side).values
        return [number for number in lost if number in tables
                and values[number].signature.telling and any(
            not {*operation.results} & tables
            for operation in skeleton.readers.get(number, ()))]

    @functools.cached_property
    def tables(self):
        """{"a": …, "b": …}: the values that do not depend on any input."""
        return {side: tables_of(program) for side, program in (
            ("a", self.a), ("b", self.b))}

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

    def table(self, value, operation, slot, other, theirs):
        """Trials with an array of a's as a leaf of b."""
        ways = [{(LEAF, value.name): array} if value.name and (
                    value.kind == PARAMETER) else self.readers(
                    value.number, array)
                for array in relaid(theirs.array, value.array)
                if distance(array, value.array) > ENDS]
        if any(ways):
            yield Trial(ARRAY, operation, other, value.number, theirs.number,
                        [*filter(None, ways)], slot)

    def is_lost(self, side, number):
        """Whether a value is lost."""
        return number in self.alignment.lost[side]

    def missing(self, operation):
        """What a makes of a value before it does what b does with it."""
        for slot, root in self.two.arrays(operation).items():
            if self.is_lost("b", root) or not self.b.values[
                    root].signature.telling:
                continue
            for number in self.made_of(self.alignment.in_a.get(root, ())):
                if self.a.values[number].signature.size == self.b.values[
                        root].signature.size and (
                        self.free and self.a.maker(
                            number).name not in IDEMPOTENT
                        or operation.name in {
                            each.name
                            for each in self.one.readers.get(number, ())}):
                    yield from self.instead(
                        MISSING, operation, slot, self.a.maker(number), number)

    def at_source(self):
        """What a makes of a value that several of b's first lost operations
        read, for all who read it."""
        read = {}
        for number in self.first:
            operation = self.b.maker(number)
            for root in () if operation is None else dict.fromkeys(
                    self.two.arrays(operation).values()):
                if not self.is_lost("b", root) and self.b.values[
                        root].signature.telling:
                    read.setdefault(root, []).append(operation)
        for root, operations in read.items():
            maker, value = self.b.maker(root), self.b.values[root]
            if len(operations) < 2 or maker is None:
                continue
            after = {each.name for each in operations}
            made = [number for number in self.made_of(
                self.alignment.in_a.get(root, ()))
                if self.a.values[number].signature.size == (
                    value.signature.size) and after <= {
                    each.name for each in self.one.readers.get(number, ())}]
            for number in made[:TRIED]:
                slot = next(slot for slot, each in self.two.arrays(
                    operations[0]).items() if each == root)
                yield Trial(MISSING, operations[0], self.a.maker(number),
                            operations[0].operands[slot], number, [
                    {(RESULT, maker.number, maker.results.index(root)): array}
                    for array in relaid(
                        self.a.values[number].array, value.array, 1)], slot)

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

    def extra(self, operation):
        """What b reads, in the place of what it makes of it."""
        made = self.b.values[operation.results[0]]
        for slot, root in self.two.arrays(operation).items():
            mine = self.b.values[root]
            if self.is_lost("b", root) or (
                    mine.signature.size != made.signature.size):
                continue
            after = {each.name for each in self.two.readers.get(
                self.two.root(made.number), ())}
            if not self.free and not any(each.name in after and any(
                    result in self.alignment.lost["a"]
                    for result in each.results)
                    for number in self.alignment.in_a.get(root, ())
                    for each in self.one.readers.get(
                        self.one.root(number), ())):
                continue
            for array in relaid(mine.array, made.array, 1):
                yield Trial(EXTRA, operation, None, made.number, root,
                            [{(RESULT, operation.number, 0): array}], slot)

    def other(self, operation):
        """Another value of a's, where nothing that is read is shared."""
        arrays = self.two.arrays(operation)
        for there in self.made_a:
            if there.name != operation.name or self.alignment.depth["a"].get(
                    there.results[0], 0) > BETWEEN:
                continue
            theirs = self.one.arrays(there)
            if len(theirs) != len(arrays):
                continue
            for slot, number in theirs.items():
                if slot in arrays and self.a.values[number].signature.size == (
                        self.b.values[arrays[slot]].signature.size):
                    yield from self.instead(
                        OTHER, operation, slot, there, there.operands[slot])

    def computed(self, names=None, most=None):
        """A lost value of a in the place of one of b: of operations of some
        names or of any, of the first so many or of all."""
        numbers = self.lost_b
        if most is not None:
            numbers = [number for number in numbers
                       if self.b.values[number].signature.telling
                       and self.b.maker(number) is not None
                       and not moves(self.b.maker(number))][:most]
        for number in numbers:
            mine, maker = self.b.values[number], self.b.maker(number)
            if maker is None or names and maker.name not in names:
                continue
            place = maker.results.index(number)
            few = 1 if most else TRIED
            for theirs in self.likely(mine, maker)[:few]:
                ways = [{(RESULT, maker.number, place): array}
                        for array in relaid(self.a.values[theirs].array,
                                            mine.array, 1 if most else 4)]
                if ways:
                    yield Trial(COMPUTED, maker, self.a.maker(theirs),
                                number, theirs, ways)

    def likely(self, mine, maker):
        """Lost values of a that may be one of b's."""
        found = []
        for number in self.lost_a:
            theirs, other = self.a.values[number], self.a.maker(number)
            if other is None or theirs.signature.kind != mine.signature.kind:
                continue
            if theirs.signature.size != mine.signature.size:
                continue
            found.append((
                other.name != maker.name, not self.shared(maker, other),
                unlike(theirs, mine) > ALIKE,
                self.alignment.depth["a"].get(number, 0),
                unlike(theirs, mine), number))
        return [number for *_, number in sorted(found)[:TRIED]]


def in_parts(array, axis, order):
    """An array with the equal parts of an axis in another order."""
    parts = np.split(array, len(order), axis)
    return np.concatenate([parts[i] for i in order], axis)


def unlike(one, two):
    """How far the numbers of two values are apart, in any order."""
    pairs = zip(one.signature.moments, two.signature.moments)
    return sum(abs(first - second) for first, second in pairs)


def number_of(value):
    """The number that a scalar Value is; None of one that is no number."""
    array = np.asarray(value.array)
    if array.dtype.kind not in "fiu" or array.size != 1:
        return None
    return float(array.reshape(-1)[0])
