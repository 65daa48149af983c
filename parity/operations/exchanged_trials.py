"""Guesses that the parts of one value are taken for each other."""

import dataclasses
import itertools

from parity.operations.program import RESULT
from parity.operations.state import State
from parity.operations.trial import EXCHANGED, Trial

#: How many operations before one that is lost a part may be taken.
BEFORE = 3

#: Of more parts no order is tried; of more that are a single place each, such
#: as the steps of a sequence, neither.
PARTS, PLACES = 6, 4


class ExchangedTrials(State):
    """Trials with parts in the places of others of the same value."""

    def exchanged(self, operation):
        """Two parts of a value exchanged that an operation reads, or the
        first half of its parts and the second, whichever is best; the steps of
        a sequence from its other end."""
        for parts, steps in self.parts_before(operation):
            made = [self.in_order(parts, order)
                    for order in _orders(len(parts), steps)]
            yield dataclasses.replace(made[0], each=tuple(made), ways=[
                each.ways[0] for each in made])

    def in_order(self, parts, order):
        """The Trial with parts in the places of others.

        Args:
            parts: numbers of b's values.
            order: of each place, which part is put there.
        """
        edits = {}
        for part, other in zip(parts, order):
            maker = self.b.maker(part)
            if parts[other] != part:
                edits[RESULT, maker.number, maker.results.index(part)] = (
                    self.b.values[parts[other]].array)
        first = next(i for i, each in enumerate(order) if each != i)
        theirs = self.alignment.in_a[parts[order[first]]][0]
        return Trial(EXCHANGED, self.b.maker(parts[first]),
                     self.a.maker(theirs), parts[first], theirs, [edits],
                     order)

    def parts_before(self, operation):
        """Yield of each value that is taken apart shortly before an operation
        the numbers of its parts, as they stand in it, and whether they are the
        steps of a sequence."""
        now, sources = [operation], {}
        for _ in range(BEFORE):
            before = []
            for each in now:
                for number in each.operands:
                    maker = self.b.maker(number)
                    if maker is None:
                        continue
                    before.append(maker)
                    if maker.name == "slice" and maker.operands and (
                            not self.is_lost("b", maker.operands[0])):
                        sources[self.two.root(maker.operands[0])] = None
            now = before
        for source in sources:
            parts, steps = self.parts_taken(source)
            if parts:
                yield parts, steps

    def parts_taken(self, source):
        """The numbers of the parts of a value as they stand in it, and whether
        they are the steps of a sequence; none where they are not alike."""
        parts = [result for each in self.two.readers.get(source, ())
                 if each.name == "slice" for result in each.results]
        parts = [part for part in parts if part in self.alignment.in_a
                 and self.b.values[part].signature.telling]
        shapes = {self.b.values[part].shape for part in parts}
        whole = self.b.values[source].shape
        steps = len(parts) in whole and len(parts) > PLACES
        if len(shapes) != 1 or len(parts) < 2 or not (
                steps or len(parts) <= PARTS):
            return [], False
        return sorted(parts, key=lambda part: _start(
            self.b.maker(part), part)), steps


def _orders(count, steps):
    """The orders of so many parts that are tried."""
    if steps:
        return [(*reversed(range(count)),)]
    half = count // 2
    return [(*range(half, count), *range(half))] * (
        count % 2 == 0 and half > 1) + [
        tuple(two if i == one else one if i == two else i
              for i in range(count))
        for one, two in itertools.combinations(range(count), 2)]


def _start(maker, part):
    """Where a part begins in what it is taken of, for the order of parts."""
    start = maker.settings.get("start")
    start = start if isinstance(start, tuple) else (start,)
    return (sum(each for each in start if isinstance(each, int)),
            maker.results.index(part))
