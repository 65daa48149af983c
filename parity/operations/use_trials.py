"""Guesses by what is done with a value, and by how it lies."""

from parity.operations.align import moves
from parity.operations.operand_trials import OperandTrials
from parity.operations.program import MADE, RESULT
from parity.operations.state import OPPOSITES, given
from parity.operations.trial import COMPUTED, ORDER, Trial, lean

#: Of so many values at most it is asked what is done with them, and through so
#: many operations that only take parts.
USES, BEHIND = 200, 3

#: Of lost values before which so many others are it is not asked how what they
#: are made of lies.
EARLY = 3

#: How many orders are tried of one value.
ORDERS = 2


class UseTrials(OperandTrials):
    """Trials that ask neither what made a value nor of what."""

    def laid_otherwise(self):
        """What the first lost operations read, or is taken of, in the order
        that a has it in, whoever reads it there."""
        makers = [self.b.maker(number) for number in self.lost_b[:USES]
                  if self.alignment.depth["b"].get(number, 0) < EARLY]
        seen = set()
        for operand in (each for maker in makers if maker is not None
                        for each in maker.operands):
            number = operand
            while number is not None and number not in seen:
                seen.add(number)
                value, maker = self.b.values[number], self.b.maker(number)
                twins = [each for each in self.alignment.in_a.get(number, ())
                         if lean(self.a.values[each].shape) == lean(
                             value.shape)] if value.signature.telling else []
                arrays = [self.a.values[each].array.reshape(value.shape)
                          for each in twins]
                if twins:
                    if maker is not None and all(
                            self.apart(each, value.array) for each in arrays):
                        yield Trial(
                            ORDER, maker, self.a.maker(twins[0]), number,
                            twins[0], [{(RESULT, maker.number,
                                         maker.results.index(number)): array}
                                       for array in arrays[:ORDERS]])
                    break
                number = maker.operands[0] if maker is not None and (
                    moves(maker)) and len(maker.operands) == 1 else None

    def by_use(self):
        """A lost value of a in the place of one of b's, where both do the same
        with it and another value that both have."""
        for number in self.lost_b[:USES]:
            mine, maker = self.b.values[number], self.b.maker(number)
            if maker is None or moves(maker) or not mine.signature.telling:
                continue
            for theirs in self.used_alike(number):
                ways = [given(self.b, number, array)
                        for array in self.laid(theirs, number)]
                if ways:
                    yield Trial(COMPUTED, maker, self.a.maker(theirs), number,
                                theirs, ways)

    def used_alike(self, number):
        """Lost values of a, of one's size, with which a does what b does with
        it."""
        found, value = {}, self.b.values[number]
        for reader in self.behind(number):
            for root in self.two.arrays(reader).values():
                if root == number or not self.b.values[
                        root].signature.telling:
                    continue
                for twin in self.alignment.in_a.get(root, ()):
                    for other in self.one.readers.get(self.one.root(twin), ()):
                        if other.name != reader.name and (
                                other.name, reader.name) not in OPPOSITES:
                            continue
                        for each in self.one.arrays(other).values():
                            source = self.whole(each, value)
                            if source is not None:
                                found[source] = None
        return [*found]

    def whole(self, number, like):
        """The lost value of a, of another's size, that a value is or is taken
        of; or None."""
        while self.is_lost("a", number):
            value, maker = self.a.values[number], self.a.maker(number)
            if (value.signature.size, value.signature.kind) == (
                    like.signature.size, like.signature.kind):
                return number if value.kind == MADE else None
            if maker is None or not moves(maker) or len(maker.operands) != 1:
                return None
            number = self.one.root(maker.operands[0])
        return None

    def behind(self, number):
        """The operations that read a value of b, or parts of it."""
        now, found = [self.two.root(number)], []
        for _ in range(BEHIND):
            after = []
            for root in now:
                for reader in self.two.readers.get(root, ()):
                    if moves(reader):
                        after += [self.two.root(each)
                                  for each in reader.results]
                    else:
                        found.append(reader)
            now = after[:1]
        return found
