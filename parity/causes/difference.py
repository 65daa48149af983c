"""A difference that a search has shown, and what it is made of in both."""

import dataclasses

from parity.operations import roles
from parity.operations.align import moves
from parity.operations.expressions import Names, cut, formula, shape
from parity.operations.program import LEAF, PARAMETER
from parity.operations.skeleton import Skeleton
from parity.operations.trial import (
    ARRAY, COMPUTED, EXTRA, FOLDED, MISSING, ORDER, OTHER, PACKED, SCALAR)

#: Of so many operations no single step is made, and of so many more a
#: difference is no cause.
STEPS, FAR = 12, 30


class FaultOfPrograms:
    """A ShownFault with the programs that it is of.

    Args:
        found: a ShownFault of parity.operations.found.

    Attributes:
        trial: what differs, an operand that one side makes a step of as that
            step.
        a, b: the Programs; one, two: their Skeletons.
        names: the Names of both.
    """

    def __init__(self, found):
        self.found, self.trial = found, found.trial
        self.alignment = found.before
        self.a, self.b = self.alignment.a, self.alignment.b
        self.one, self.two = Skeleton(self.a), Skeleton(self.b)
        self.names = Names(self.alignment)
        if self.trial.kind in (OTHER, COMPUTED):
            self._as_step()
        if self.trial.kind == OTHER:
            self._as_made_of_another()

    def _as_step(self):
        """Take another operand, or another end, for a step that one side does,
        if it is."""
        trial = self.trial
        if trial.kind == OTHER and self.twins("a", trial.value_a) and (
                self.twins("b", trial.value_b)):
            return  # both have both, and read another of them
        if self.made_of("a", trial.value_a, self.twins("b", trial.value_b)):
            self.trial = dataclasses.replace(
                trial, kind=MISSING, a=self.one.maker(trial.value_a))
        elif self.made_of("b", trial.value_b, self.twins("a", trial.value_a)):
            self.trial = dataclasses.replace(
                trial, kind=EXTRA, b=self.two.maker(trial.value_b), slot=None)

    def _as_made_of_another(self):
        """Take another operand for the parameter or table that it is made of
        otherwise, where b makes it as a does of another."""
        trial, seen = self.trial, set()
        a, b = self.one.root(trial.value_a), self.two.root(trial.value_b)
        if a in self.alignment.in_b:  # b has it, and reads another
            return
        while (a, b) not in seen:
            seen.add((a, b))
            mine, theirs = self.one.maker(a), self.two.maker(b)
            if None in (mine, theirs) or mine.name != theirs.name:
                break
            left = [[*skeleton.arrays(each).values()]
                    for skeleton, each in ((self.one, mine),
                                           (self.two, theirs))]
            pairs = [(one, two) for one, two in zip(*left)
                     if two not in self.alignment.in_b.get(one, ())]
            if len(left[0]) != len(left[1]) or len({*pairs}) != 1:
                break
            (a, b), = {*pairs}
        values = self.a.values[a], self.b.values[b]
        if all(value.kind == PARAMETER for value in values):
            self.trial = dataclasses.replace(
                trial, kind=ARRAY, value_a=a, value_b=b, slot=None,
                a=self._reader("a", a), b=self._reader("b", b),
                ways=[{(LEAF, values[1].name): values[0].array}])

    def _reader(self, side, number):
        """The first operation that reads a value."""
        return next(iter(self.skeleton(side).readers.get(number, ())), None)

    def skeleton(self, side):
        """The Skeleton of a side."""
        return self.one if side == "a" else self.two

    def twins(self, side, number):
        """The values of the other side with a value's numbers."""
        have = (self.alignment.in_b if side == "a" else self.alignment.in_a)
        return [twin for each in (number, self.skeleton(side).root(number))
                for twin in have.get(each, ())]

    def shared(self, side):
        """The roots of a side that the other has as well."""
        have = (self.alignment.in_b if side == "a" else self.alignment.in_a)
        return {self.skeleton(side).root(number) for number in have}

    def at(self, side):
        """The operation of a side that stands for the difference."""
        operation = getattr(self.trial, side)
        if operation is not None:
            return operation
        program = getattr(self, side)
        value = getattr(self.trial, f"value_{side}")
        return program.maker(value) or next((
            program.operations[each]
            for each in program.users.get(value, ())), None)

    def made_of(self, side, number, sources):
        """The operations by which a value is made of some that both have, if
        it is in a few; else []. What else both have is taken as it is, where
        the value can be made so."""
        skeleton = self.skeleton(side)
        sources = {skeleton.root(each) for each in sources}
        for stop in (self.shared(side), ()):
            steps = roles.between(skeleton, number, sources | {*stop})
            read = {root for each in steps
                    for root in skeleton.arrays(each).values()}
            if sources & read and len(steps) < STEPS:
                return steps
        return []

    def steps(self, side):
        """The operations that a side alone does to what both have, the last
        first: those of a missing or additional step, or of a computation."""
        trial = self.trial
        mine, theirs = ("a", "b") if side == "a" else ("b", "a")
        number = getattr(trial, f"value_{mine}")
        sources = self.twins(theirs, getattr(trial, f"value_{theirs}"))
        return self.made_of(side, number, sources) or roles.between(
            self.skeleton(side), number, self.shared(side))

    @property
    def is_cause(self):
        """Whether it says why b differs, and not only where: what is computed
        otherwise begins, a few operations before, at what both have."""
        return self.trial.kind != COMPUTED or all(len(roles.between(
            self.skeleton(side), getattr(self.trial, f"value_{side}"),
            self.shared(side), FAR)) < FAR for side in "ab")

    def label(self, side):
        """What the value that differs is called."""
        number = getattr(self.trial, f"value_{side}")
        return self.names.of(side, number) or self.written(
            side, number, reader=getattr(self.trial, side))

    def written(self, side, number, **keywords):
        """The formula of a value, shortened."""
        return cut(formula(self.names, side, number, **keywords), 60)

    def words(self, side):
        """The formula of what differs, shortened."""
        return cut(self.expressions["ab".index(side)], 60)

    def laid_out(self):
        """How the value of each side is taken from what both have, with the
        shapes on the way where the formulas do not differ otherwise."""
        made = [self.words(side) for side in "ab"]
        if made[0] != made[1]:
            return made
        return [", then ".join(
            f"{each.name} to {shape(getattr(self, side).values[result])}"
            for each in reversed(self.moves(side))
            for result in each.results[:1]) for side in "ab"]

    def of_one_source(self):
        """Whether both values are parts of one that both have, or that in
        another order."""
        return bool(self.moves("a"))

    def moves(self, side):
        """The operations that lay out the value of a side, or take it, from
        the nearest that both are of, the last first; [] without one."""
        ways = [self._laid_by(each) for each in "ab"]
        for i, one in enumerate(ways[0]):
            for j, two in enumerate(ways[1]):
                if one.operands[0] in self.twins("b", two.operands[0]):
                    return ways[0][:i + 1] if side == "a" else ways[1][:j + 1]
        return []

    def _laid_by(self, side):
        """All operations that only move numbers, back from a value."""
        program = getattr(self, side)
        maker = program.maker(getattr(self.trial, f"value_{side}"))
        found = []
        while maker is not None and moves(maker) and maker.operands:
            found.append(maker)
            maker = program.maker(maker.operands[0])
        return found

    @property
    def expressions(self):
        """The formula of each side."""
        trial = self.trial
        if trial.kind in (PACKED, FOLDED):
            return "", ""
        ends = {"a": trial.value_a, "b": trial.value_b}
        if trial.kind in (SCALAR, ORDER, OTHER) and trial.a is not None:
            ends = {"a": trial.a.results[0], "b": trial.b.results[0]}
        if trial.kind == ARRAY and trial.b is not None:
            ends = {"a": trial.a.results[0] if trial.a else trial.value_a,
                    "b": trial.b.results[0]}
        made = [formula(self.names, side, value)
                for side, value in ends.items()]
        if made[0] == made[1]:  # it is in which shape something is read
            made = [formula(self.names, side, value, shapes=True)
                    for side, value in ends.items()]
        return [*map(cut, made)]
