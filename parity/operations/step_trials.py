"""Guesses of a step that one of two programs does more."""

from parity.operations.layouts import relaid
from parity.operations.program import RESULT
from parity.operations.state import TRIED
from parity.operations.operand_trials import OperandTrials
from parity.operations.trial import EXTRA, MISSING, Trial

#: Operations that change nothing if they are done again: with one of a's
#: before it b's own is not seen.
IDEMPOTENT = {"where", "maximum", "minimum", "relu", "clip", "abs", "floor",
              "ceil", "round"}


class StepTrials(OperandTrials):
    """Trials with an operation more, or one less."""

    def for_all_readers(self):
        """What a makes of a value that several of b's lost operations read,
        for all of them."""
        first = dict.fromkeys(
            root for number in self.first if self.b.maker(number) is not None
            for root in self.two.arrays(self.b.maker(number)).values())
        for root in first:
            maker, value = self.b.maker(root), self.b.values[root]
            operations = [each for each in self.two.readers.get(root, ())
                          if any(self.is_lost("b", result)
                                 for result in each.results)]
            if self.is_lost("b", root) or not value.signature.telling or (
                    len(operations) < 2 or maker is None):
                continue
            after = {each.name for each in operations}
            made = [number for number in self.made_of(
                self.alignment.in_a.get(root, ()))
                if self.a.values[number].signature.size == (
                    value.signature.size) and after <= {
                    each.name for each in self.one.readers.get(number, ())}]
            slot = next(slot for slot, each in self.two.arrays(
                operations[0]).items() if each == root)
            for number in made[:TRIED]:
                yield Trial(MISSING, operations[0], self.a.maker(number),
                            operations[0].operands[slot], number, [
                    {(RESULT, maker.number, maker.results.index(root)): array}
                    for array in self.laid(number, root, 1)], slot)

    def missing_freely(self, operation):
        """What a makes of a value, whatever it then does with it."""
        yield from self.missing(operation, True)

    def missing(self, operation, freely=False):
        """What a makes of a value before it does what b does with it.

        Where it is sought freely, it is no operation that b does with that
        value too: a shift or a limit before the same again shows nothing.
        """
        freely = freely or self.free
        for slot, root in self.two.arrays(operation).items():
            if self.is_lost("b", root) or not self.b.values[
                    root].signature.telling:
                continue
            done = {each.name for each in self.two.readers.get(root, ())}
            sizes = [self.b.values[each].signature.size
                     for each in (root, operation.operands[slot])]
            for number in self.made_of(self.alignment.in_a.get(root, ())):
                maker, there = self.a.maker(number), self.read_by(
                    number, operation.name)
                if self.a.values[number].signature.size in sizes and (
                        freely and maker.name not in IDEMPOTENT | done
                        or operation.name in {
                            each.name
                            for each in self.one.readers.get(number, ())}):
                    yield from self.instead(
                        MISSING, operation, slot, maker, there)

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
            for there in self.alignment.in_a.get(root, ())[:1]:
                yield from self.without(operation, slot, there)

    def without(self, operation, slot, there):
        """What an operation of b reads in the place of what it gives.

        Args:
            slot: of the operand.
            there: the value of a that the operand is.
        """
        made = self.b.values[operation.results[0]]
        mine = self.b.values[operation.operands[slot]]
        for array in relaid(mine.array, made.array, 1):
            yield Trial(EXTRA, operation, None, made.number, there,
                        [{(RESULT, operation.number, 0): array}], slot)
