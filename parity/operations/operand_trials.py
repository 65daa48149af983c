"""Guesses of another constant or operand of an operation, or its order."""

import dataclasses
import math

import numpy as np

from parity.operations.align import ENDS, is_view
from parity.operations.layouts import distance, relaid
from parity.operations.program import OPERAND, PARAMETER, RESULT
from parity.operations.state import BETWEEN, OPPOSITES, State
from parity.operations.trial import (
    COMPUTED, ORDER, OTHER, SCALAR, Trial, lean, number_of)
from parity.operations.vocabulary import COMMUTATIVE

#: How many orders of one value are tried.
ORDERS = 6



class OperandTrials(State):
    """Trials with what an operation reads."""

    def alike(self, operation):
        """The same operation on the same values: a constant or an order."""
        arrays = self.two.arrays(operation)
        for other, pairs in self.partners(operation):
            if len(pairs) < max(len(arrays), len(self.one.arrays(other))):
                continue
            yield from self.constant(operation, other)
            yield from self.parts(operation, other)
            if other.name == operation.name:
                for slot, there in sorted(pairs, key=lambda pair: arrays[
                        pair[0]] not in self.tables["b"]):
                    yield from self.order(operation, slot, other, there)
        yield from self.absorbed(operation)

    def absorbed(self, operation):
        """A constant of a's in the place of b's, where a's is so small that
        what it is added to is the same within the limit: BERT's ε of 1e-12."""
        if not self.two.constants(operation):
            return
        for root in self.two.arrays(operation).values():
            for number in self.alignment.in_a.get(root, ()):
                for other in self.one.readers.get(self.one.root(number), ()):
                    if other.name == operation.name and not any(
                            self.is_lost("a", each)
                            for each in other.results):
                        yield from self.constant(operation, other)

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
        """All that is taken of a value, such as the parts of a split."""
        mine, theirs = (self.taken_of(skeleton, of) for skeleton, of in (
            (self.two, operation), (self.one, other)))
        sizes = [[program.values[each].signature.size for each in some]
                 for program, some in ((self.b, mine), (self.a, theirs))]
        if len(mine) < 2 or sizes[0] != sizes[1]:
            return
        laid = [relaid(self.a.values[one].array, self.b.values[two].array,
                       ORDERS) for one, two in zip(theirs, mine)]
        makers = [self.b.maker(each) for each in mine]
        ways = [{(RESULT, maker.number, maker.results.index(number)): array
                 for maker, number, array in zip(makers, mine, arrays)}
                for arrays in zip(*laid)]
        if ways:
            yield Trial(COMPUTED, operation, other, mine[0], theirs[0], ways)

    @staticmethod
    def taken_of(skeleton, operation):
        """What an operation gives; of a slice all that slices of the same
        give, in order."""
        if operation.name != "slice":
            return [*operation.results]
        return [result for each in skeleton.readers.get(skeleton.root(
            operation.operands[0]), ()) if each.name == operation.name
            for result in each.results]

    def order(self, operation, slot, other, there):
        """a's operand, in a's order, in the place of b's."""
        mine = self.b.values[operation.operands[slot]]
        theirs = self.a.values[other.operands[there]]
        laid = relaid(theirs.array, mine.array, ORDERS)
        if lean(theirs.shape) == lean(mine.shape):  # it lies as b's does
            laid = [theirs.array.reshape(mine.shape), *laid]
        leaf = self.b.values[self.two.root(mine.number)].kind == PARAMETER
        if not laid or not leaf and not self.apart(laid[0], mine.array):
            return
        ways = [{(OPERAND, operation.number, slot): array} for array in laid
                if self.apart(array, mine.array)]
        if ways:
            yield Trial(ORDER, operation, other, mine.number, theirs.number,
                        ways, slot)

    def reordered(self, operation, other, pairs):
        """A Trial for each operand that lies as a's does, in another order."""
        found = []
        for slot, there in pairs:
            mine = self.b.values[operation.operands[slot]]
            theirs = self.a.values[other.operands[there]]
            if lean(theirs.shape) == lean(mine.shape):
                array = theirs.array.reshape(mine.shape)
                if self.apart(array, mine.array):
                    found.append(Trial(
                        ORDER, operation, other, mine.number, theirs.number,
                        [{(OPERAND, operation.number, slot): array}], slot))
        return found

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

    def operands(self, operation, other):
        """a's operands of an operation in the place of b's, all at once, where
        those that differ are values that both have, or parts of such, or the
        same in another order."""
        if None in (operation, other) or operation.name != other.name or (
                is_view(operation)):
            return
        arrays, theirs = self.two.arrays(operation), self.one.arrays(other)
        pairs = self.shared(operation, other)
        left = [slot for slot in arrays if slot not in {
            slot for slot, _ in pairs}]
        there = [slot for slot in theirs if slot not in {
            slot for _, slot in pairs}]
        if len(left) != len(there):
            return
        trials = [] if left else self.reordered(operation, other, pairs)
        for slot, at in zip(left, there):
            source = self.source("a", theirs[at])
            if source is None or theirs[at] != source and not self.matches(
                    self.source("b", arrays[slot]), source):
                return
            laid = self.laid(other.operands[at], operation.operands[slot], 1)
            trials += [Trial(
                OTHER, operation, other, operation.operands[slot],
                other.operands[at],
                [{(OPERAND, operation.number, slot): array}], slot)
                for array in laid]
        if trials and len(trials) >= len(left):
            first, *more = trials
            yield dataclasses.replace(first, more=tuple(more), ways=[{
                edit: array for each in trials
                for edit, array in each.ways[0].items()}])

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

    def instead(self, kind, operation, slot, other, number):
        """Trials with a value of a as what an operation of b reads, and what
        else reads the same, or it alone."""
        mine, ways = self.b.values[operation.operands[slot]], []
        for array in self.laid(number, mine.number):
            if distance(array, mine.array) > ENDS:
                every = self.readers(mine.number, array)
                own = {edit: array for edit, array in every.items()
                       if edit[1] == operation.number}
                ways += [every, own] if own.keys() < every.keys() else [every]
        if any(ways):
            yield Trial(kind, operation, other, mine.number, number,
                        [*filter(None, ways)], slot)
