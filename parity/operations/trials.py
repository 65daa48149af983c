"""What may differ between two programs where b's first values are lost.

A Trial is a guess with a reason in both programs: a constant of a's in an
operation of b's that reads the same, an operation that only one of them does,
another operand, another order of one. ``trials`` yields them, the likeliest
first. Whether one is true is for ``parity.operations.search`` to see by
running b with it.
"""

from parity.operations.align import moves
from parity.operations.layouts import relaid
from parity.operations.program import CONSTANT, MADE, PARAMETER, RESULT
from parity.operations.state import TRIED, given
from parity.operations.exchanged_trials import ExchangedTrials
from parity.operations.folded_trials import FoldedTrials
from parity.operations.step_trials import StepTrials
from parity.operations.table_trials import TableTrials
from parity.operations.trial import COMPUTED, ORDER, Trial
from parity.operations.turned_trials import TurnedTrials
from parity.operations.use_trials import UseTrials

#: Operations that every framework has alike, and which are tried first.
STABLE = {"matmul", "convolution"}

#: So many of the values that are lost first are tried before these.
EARLY = 4


class Trials(ExchangedTrials, FoldedTrials, TableTrials, TurnedTrials,
             StepTrials, UseTrials):
    """The guesses at one state of b; its arguments are those of State."""

    def every(self):
        """Yield each Trial, the likeliest first."""
        yield from self.outputs()
        yield from self.for_all_readers()
        yield from self.at_first(self.folded, self.alike, self.leaf)
        yield from self.leaves(PARAMETER)
        yield from self.all_tables()
        yield from self.leaves(CONSTANT)
        yield from self.laid_otherwise()
        yield from self.at_first(self.exchanged, self.turned)
        yield from self.packed()
        if self.a.added:  # where each of b's steps has its like in a
            yield from self.steps()
        if not self.free:
            yield from self.computed(most=EARLY)
        yield from self.by_use()
        yield from self.computed(STABLE)
        yield from self.steps()
        for number in self.first:
            if self.b.values[number].kind != MADE:
                yield from self.leaf_alone(number)
        yield from self.computed()

    def steps(self):
        """Yield those of one step, and of what it reads."""
        yield from self.at_first(self.swapped, self.missing, self.extra,
                                 self.other, self.missing_freely)

    def at_first(self, *passes):
        """Yield what some passes say of the first operations that are lost."""
        first = [self.b.maker(number) for number in self.first]
        first = sorted((each for each in first if each is not None),
                       key=lambda each: each.number)
        for each in passes:
            for operation in first:
                yield from each(operation)

    def outputs(self):
        """An output of a's in the place of one of b's that has its numbers
        elsewhere."""
        for number, mine in self.alignment.different:
            maker = self.b.maker(mine)
            if maker is None or not self.matches(mine, number):
                continue
            theirs, other = self.a.values[number], self.b.values[mine]
            laid = [theirs.array] if theirs.shape == other.shape else relaid(
                theirs.array, other.array, 1)
            ways = [{(RESULT, maker.number, maker.results.index(mine)): array}
                    for array in laid if self.apart(array, other.array)]
            if ways:
                yield Trial(ORDER, maker, self.a.maker(number), mine, number,
                            ways)

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
            few = 1 if most else TRIED
            for theirs in self.likely(mine, maker)[:few]:
                ways = [given(self.b, number, array)
                        for array in relaid(self.a.values[theirs].array,
                                            mine.array, 1 if most else 4)]
                if ways:
                    yield Trial(COMPUTED, maker, self.a.maker(theirs),
                                number, theirs, ways)
