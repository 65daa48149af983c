"""What differs between two programs, found and proved by running one.

b is run with one Trial after another applied. One is true if then the outputs
are a's, or values behind it that a had and b had not are the same. What is
left is looked into again, so that several faults are told one by one. In the
end each that is not needed for the outputs to agree is dropped.
"""

import dataclasses
import itertools
import time

import numpy as np

from parity.operations.align import Alignment, moves
from parity.operations.layouts import relaid
from parity.operations.program import LEAF, OPERAND, PARAMETER, RESULT
from parity.operations.refine import first_pairs
from parity.operations.skeleton import Skeleton
from parity.operations.trials import (
    ARRAY, COMPUTED, ORDER, SCALAR, Trial, Trials)

#: Of so many values that are lost, two are tried at once.
JOINED = 8

#: So often b is run at most to find less that explains one value, and so deep
#: it is looked into.
INSIDE, LEVELS = 40, 4

#: Where fewer values than this are lost, so few runs are spent on them.
FEW, ALONE = 3, 8

#: So often b is run at most, and for so many seconds.
RUNS, SECONDS = 150, 30.0


@dataclasses.dataclass
class ShownFault:
    """A difference that is shown by running b without it.

    Attributes:
        trial: what it is.
        also: further Trials that are the same at other places.
        before, after: the state of b in which it was found, and with it, an
            Alignment each.
        ends: whether with it, and those before it, all outputs are a's.
    """

    trial: Trial
    before: Alignment
    after: Alignment
    also: list = dataclasses.field(default_factory=list)
    ends: bool = False

    @property
    def trials(self):
        """The first and all like it."""
        return [self.trial, *self.also]


@dataclasses.dataclass
class SearchOutcome:
    """What a search found.

    Attributes:
        found: every ShownFault, in order.
        first: the Alignment of the two as they are.
        last: that of a and b with all that was found applied.
        runs, seconds: how often b was run, and how long it took.
    """

    found: list
    first: Alignment
    last: Alignment
    runs: int = 0
    seconds: float = 0.0

    @property
    def corrected(self):
        """Whether the outputs are a's once all that was found is applied."""
        return not self.last.different


class FaultSearch:
    """Looks for what differs.

    Args:
        a: a's Program, with all arrays.
        run: edits -> b's Program, with all arrays.
        near: as of Alignment.
        edits: of b that are no difference, such as tables in float32.
        runs, seconds: how often, and for how long, b is run at most.
    """

    def __init__(self, a, run, near, edits=None, runs=RUNS, seconds=SECONDS):
        self.a, self._run, self.near = a, run, near
        self.most, self.until = runs, time.perf_counter() + seconds
        self.one = Skeleton(a)
        self.runs, self.edits = 0, dict(edits or {})
        self.found, self.groups, self.shrunk = [], [], (None, {})

    def find(self):
        """The SearchOutcome."""
        began = time.perf_counter()
        first = now = self.aligned(self.edits)
        while now.different and (step := self.step(now)):
            now = step
        now = self.needed(now)
        return SearchOutcome(self.found, first, now, self.runs,
                             time.perf_counter() - began)

    def aligned(self, edits, ends=None):
        """How b is aligned with a under some edits; None if it then fails."""
        self.runs += 1
        try:
            program = self._run(edits)
        except Exception:  # a foreign model, given what it never has
            if not self.found and edits == self.edits:
                raise
            return None
        return Alignment(self.a, program, self.near, ends)

    def step(self, now):
        """Find one more difference; the Alignment with it, or None."""
        two, tried = Skeleton(now.b), []
        trials = Trials(now, self.one, two)
        for trial in self.unlike(trials):
            if then := self.tried(trial, now, two):
                return then
            if self.spent:
                return None
            tried.append(trial)
        for trial in joined(tried):
            if then := self.tried(trial, now, two):
                return then
            if self.spent:
                return None
        return None

    @property
    def spent(self):
        """Whether b was run often or long enough."""
        return self.runs >= self.most or time.perf_counter() > self.until

    def tried(self, trial, now, two):
        """The Alignment under the best way of a Trial; None if none helps."""
        best = None
        for edits in trial.ways:
            if self.spent:
                break
            then = self.aligned(self.edits | edits)
            if then and self.better(now, then, edits, two) and (
                    best is None or size(then) < size(best[0])):
                best = then, edits
            if best and not best[0].different:
                break
        if best is None:
            return None
        then, edits = best
        trial = dataclasses.replace(trial, ways=[edits])
        if trial.kind == COMPUTED and not trial.more:
            trial, then = self.smallest(trial, now, then)
            edits = trial.ways[0]
        self.edits |= edits
        others = {edit for each in trial.more for edit in each.ways[0]}
        own = {edit: array for edit, array in edits.items()
               if edit not in others}
        self.groups.append([
            dataclasses.replace(trial, more=(), ways=[own or edits]),
            *trial.more])
        for i, each in enumerate(self.groups[-1]):
            self.put_down(each, now, then, trial.kind == ARRAY and i > 0)
        if not then.different:
            return then
        if trial.kind == SCALAR:
            return self.everywhere(trial, now, then)
        if trial.kind == ARRAY:
            return self.copies(trial, now, then)
        return then

    def copies(self, trial, now, then):
        """The same array in the place of every leaf like that of a Trial."""
        value, alike = now.b.values[trial.value_b], {}
        for what, name, *_ in trial.ways[0]:
            if what == LEAF:
                alike |= {(LEAF, other.name): trial.ways[0][LEAF, name]
                          for other in now.b.values
                          if other.kind == PARAMETER and other.name != name
                          and other.shape == value.shape
                          and other.signature.digest == value.signature.digest}
        more = self.aligned(self.edits | alike) if alike else None
        if not more or more.different and size(more) >= size(then):
            return then
        self.edits |= alike
        for _, name in alike:
            other = next(each for each in now.b.values if each.name == name)
            self.found[-1].also.append(dataclasses.replace(
                trial, value_b=other.number, more=(),
                b=now.b.operations[(now.b.users.get(other.number) or [
                    0])[0]], ways=[{(LEAF, name): alike[LEAF, name]}]))
        return more

    def smallest(self, trial, now, then):
        """A Trial at the values where those of another begin to differ, and
        the Alignment with it; the other itself where none is found."""
        group = self.shrink((trial.value_a, trial.value_b), now,
                            self.runs + INSIDE)
        if group:
            edits = together(group)
            other = self.aligned(self.edits | edits)
            if other and size(other) <= size(then):
                first, *more = group
                return dataclasses.replace(
                    first, ways=[edits], more=tuple(more)), other
        return trial, then

    def shrink(self, pair, now, until, level=0):
        """What ``_shrink`` gives, once for each pair."""
        if self.shrunk[0] is not now:
            self.shrunk = now, {}
        if pair not in self.shrunk[1]:
            self.shrunk[1][pair] = self._shrink(pair, now, until, level)
        return self.shrunk[1][pair]

    def _shrink(self, pair, now, until, level):
        """Trials that give one value of b a's numbers by as little as can be
        found, or None.

        Args:
            pair: (number in a, number in b).
            now: the Alignment as b is.
            until: the number of the last run that may be spent on it.
            level: how deep in others this is.
        """
        part = Alignment(self.a, now.b, self.near, [pair])
        two = Skeleton(now.b)
        pairs, deep = first_pairs(part, self.one, two, pair)
        while pairs != [pair]:
            group = []
            for each in pairs:
                group += (self.shrink(each, now, until, level + 1)
                          or self.put_there(each, now))
            if self.gives(pair, group):
                return group
            deep = deep - 1 if deep < 6 else deep // 2  # they differ before
            pairs, _ = first_pairs(part, self.one, two, pair, deep)
        if level > LEVELS:
            return None
        maker = now.b.maker(pair[1])
        if len(part.lost["b"]) < FEW:
            until = min(until, self.runs + ALONE)
        for trial in Trials(part, self.one, two, free=True).every():
            if maker is not None and trial.kind == COMPUTED and (
                    trial.b is maker):
                continue
            for edits in trial.ways:
                if self.spent or self.runs >= until:
                    return None
                there = dataclasses.replace(trial, ways=[edits])
                if not self.gives(pair, [there]):
                    continue
                if trial.more:  # each has its own part of the edits
                    return [dataclasses.replace(trial, more=()), *trial.more]
                deeper = None
                if trial.kind == COMPUTED:
                    deeper = self.shrink((trial.value_a, trial.value_b), now,
                                         until, level + 1)
                return deeper or [there]
        return None

    def put_there(self, pair, now):
        """The Trial that puts a's value in the place of b's, if there is a
        way; in a list."""
        a, b = pair
        maker = now.b.maker(b)
        if maker is None:
            return []
        slot = maker.results.index(b)
        return [Trial(COMPUTED, maker, self.a.maker(a), b, a,
                      [{(RESULT, maker.number, slot): array}])
                for array in relaid(self.a.values[a].array,
                                    now.b.values[b].array, 1)]

    def gives(self, pair, group):
        """Whether with some Trials a value of b is a's."""
        if not group:
            return False
        then = self.aligned(self.edits | together(group), [pair])
        return bool(then) and not then.different

    def unlike(self, trials):
        """Yield Trials, those like what was found before first, each once."""
        seen = set()
        for trial in itertools.chain(self.again(trials), trials.every()):
            trial.ways = [edits for edits in trial.ways
                          if key(edits) not in seen]
            seen |= {*map(key, trial.ways)}
            if trial.ways:
                yield trial

    def again(self, trials):
        """What was found before, at the next place of the same lines."""
        for group in self.groups:
            steps = [step for each in group for step in itertools.islice(
                self.next_like(each, trials), 1)]
            if len(steps) == len(group):
                first, *more = steps
                yield dataclasses.replace(first, more=tuple(more), ways=[{
                    edit: array for each in steps
                    for edit, array in each.ways[0].items()}])

    def next_like(self, trial, trials):
        """Yield Trials at the next places of the lines of another."""
        if trial.b is None or trial.a is None:
            return
        mine, theirs = (
            [other for other in program.operations
             if (other.place, other.native, other.name) == (
                 of.place, of.native, of.name)]
            for program, of in ((trials.b, trial.b), (self.a, trial.a)))
        at_b, at_a = _index(mine, trial.b), _index(theirs, trial.a)
        for other in mine[at_b + 1:]:
            there = at_a + _index(mine, other) - at_b
            if there < len(theirs) and any(
                    result in trials.alignment.lost["b"]
                    for result in other.results):
                yield from self.likewise(
                    trial, trials, other, theirs[there])

    def likewise(self, trial, trials, b, a):
        """A Trial at two operations as another is at its two."""
        edits, source = {}, self.source(trial, a)
        for edit, array in trial.ways[0].items():
            if len(edit) < 3 or edit[1] != trial.b.number or source is None:
                return
            what, _, slot = edit
            value = (b.operands if what == OPERAND else b.results)[slot]
            if trial.kind == SCALAR:
                edits[what, b.number, slot] = array
                continue
            there = a.results[slot] if what == RESULT and len(
                trial.ways[0]) > 1 and slot < len(a.results) else source
            for made in relaid(self.a.values[there].array,
                               trials.b.values[value].array, 1):
                edits[what, b.number, slot] = made
        if edits:
            yield dataclasses.replace(
                trial, b=b, a=a, ways=[edits], more=(),
                value_b=b.operands[trial.slot] if trial.slot is not None
                else b.results[0], value_a=source)

    def source(self, trial, a):
        """The value of a that a Trial takes, at another operation."""
        for mine, there in ((trial.a.operands, a.operands),
                            (trial.a.results, a.results)):
            if trial.value_a in mine and mine.index(
                    trial.value_a) < len(there):
                return there[mine.index(trial.value_a)]
        return None

    def better(self, now, then, edits, two):
        """Whether b with some edits is a, or nearer to it.

        Nearer: a value that tells, that was lost, and that is computed of
        what was edited, and not only taken from it, is a's now.
        """
        if not then.different:
            return True
        if len(then.b.operations) != len(now.b.operations):
            return False
        touched, given = [], set()
        for what, number, *_ in edits:
            if what == OPERAND:
                touched.append(now.b.operations[number])
                continue
            given |= {value.number for value in now.b.values
                      if value.name == number} if what == LEAF else {
                *now.b.operations[number].results}
        follows = two.after(given | {
            result for operation in touched for result in operation.results})
        computed = two.after({
            result for operation in (*touched, *(
                operation for number in follows
                for operation in two.users.get(number, ())))
            if not moves(operation) for result in operation.results})
        return any(
            number in now.lost["b"] and number in then.in_a
            and then.b.values[number].signature.telling
            for number in computed - given)

    def everywhere(self, trial, now, then):
        """The same constant at all places of its line, if that is better."""
        operation, slot = trial.b, trial.slot
        had = now.b.values[trial.value_b].array
        asked = trial.ways[0][OPERAND, operation.number, slot]
        for wide in (True, False):
            alike = {
                (OPERAND, other.number, slot): asked
                for other in then.b.operations
                if other.number != operation.number
                and other.native == operation.native
                and (other.place == operation.place or wide and _makers(
                    then.b, other) == _makers(then.b, operation))
                and slot < len(other.operands) and np.array_equal(
                    then.b.values[other.operands[slot]].array, had)}
            more = self.aligned(self.edits | alike) if alike else None
            if more and (not more.different or size(more) < size(then)):
                break
        else:
            return then
        self.edits |= alike
        self.found[-1].after = more
        for (_, number, _) in alike:
            self.found[-1].also.append(dataclasses.replace(
                trial, b=then.b.operations[number],
                ways=[{(OPERAND, number, slot): asked}]))
        return more

    def put_down(self, trial, now, then, with_last=False):
        """Put a difference to those that were found, the same once."""
        ends = not then.different
        for each in self.found:
            first = each.trial
            if with_last and each is self.found[-1] or (
                    first.kind, *_lines(first)) == (
                    trial.kind, *_lines(trial)) or (
                    first.kind, first.value_a, first.value_b) == (
                    trial.kind, trial.value_a, trial.value_b):
                each.also.append(trial)
                each.ends, each.after = ends, then
                return
        self.found.append(ShownFault(trial, now, then, ends=ends))

    def needed(self, now):
        """Drop what the outputs agree without; the Alignment then."""
        if now.different or len(self.found) < 2:
            return now
        for each in [*self.found]:
            mine = {edit for trial in each.trials for edit in trial.ways[0]}
            less = {edit: array for edit, array in self.edits.items()
                    if edit not in mine}
            if self.runs >= self.most or len(self.found) == 1:
                break
            then = self.aligned(less)
            if then and not then.different:
                self.edits, now = less, then
                self.found.remove(each)
        return now


def _lines(trial):
    """The lines of both programs that a Trial is of."""
    return tuple(each and (each.place, each.native)
                 for each in (trial.a, trial.b))


def _makers(program, operation):
    """The names of the operations that made what another reads."""
    makers = (program.maker(each) for each in operation.operands)
    return [each.native for each in makers if each is not None]


def _index(operations, operation):
    """The place of an operation among some, by its number."""
    return next((i for i, each in enumerate(operations)
                 if each.number == operation.number), -1)


def together(group):
    """The edits of some Trials, as one."""
    return {edit: array for trial in group
            for edit, array in trial.ways[0].items()}


def key(edits):
    """What edits share that do the same."""
    return tuple(sorted((*map(str, edit), array.tobytes())
                        for edit, array in edits.items()))


def joined(trials):
    """Yield pairs of Trials as one, for what shows only if both are right:
    both tables of a rotation, both operands of a product."""
    first = {}
    for trial in trials:
        if trial.kind in (ARRAY, COMPUTED, ORDER):
            first.setdefault(trial.value_b, []).append(trial)
    best = [each[0] for each in first.values()][:JOINED]
    for one, two in sorted(itertools.combinations(range(len(best)), 2),
                           key=sum):
        mine, other = best[one], best[two]
        if mine.value_a != other.value_a:
            yield dataclasses.replace(
                mine, more=(other,), ways=[
                    left | right for left in mine.ways[:2]
                    for right in other.ways[:2]])


def size(alignment):
    """How much is lost, to choose the better of two."""
    return bool(alignment.different), len(alignment.lost["b"])
