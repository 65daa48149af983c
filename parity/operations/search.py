"""What differs between two programs, found and proved by running one.

One Trial after another is applied to b. One is true if then the outputs are
a's, or values behind it that a had and b had not are the same. What is left is
looked into again, so that several faults are told one by one. In the end each
that is not needed for the outputs to agree is dropped, and b itself is run with
what is left: until then what follows from a Trial is computed anew alone.
"""

import dataclasses
import itertools
import time

from parity.operations.align import moves
from parity.operations.equivalents import with_equivalents
from parity.operations.found import (
    SearchOutcome, ShownFault, as_computed, as_whole, stands)
from parity.operations.narrowing import Narrowing
from parity.operations.program import LEAF, OPERAND
from parity.operations.repeats import Repeats
from parity.operations.runs import broken, size, together
from parity.operations.skeleton import Skeleton
from parity.operations.trial import (
    ARRAY, COMPUTED, ORDER, OTHER, PACKED, SCALAR)
from parity.operations.trials import Trials

#: Of so many values that are lost, two are tried at once.
JOINED = 8

#: For so many seconds of the processor a is told as it ran; most that is found
#: is found in two.
FIRST = 10.0


def find_faults(a, run, near, edits=None, **limits):
    """The SearchOutcome of two programs: of a as it ran, or of a in the ways
    that other programs are cut too.

    Those are asked where b's outputs are not a's at first, or where more is
    told than one step of one program, which it may be there; what they say is
    taken where it is no more, and more in single steps. At first it seeks
    for FIRST seconds at most. The arguments are those of Runs.
    """
    outcome = FaultSearch(
        a, run, near, edits, **{"seconds": FIRST, **limits}).find()
    if outcome.corrected and outcome.told == (0, 1):
        return outcome
    others = with_equivalents(a)
    if others is a:
        return outcome
    again = FaultSearch(others, run, near, edits, **limits).find()
    better = again.corrected and (not outcome.corrected or (
        again.told < outcome.told and again.told[1] <= outcome.told[1]))
    return again if better or not outcome.found else outcome


class FaultSearch(Narrowing, Repeats):
    """Looks for what differs; its arguments are those of Runs."""

    def find(self):
        """The SearchOutcome."""
        began, given = time.perf_counter(), dict(self.edits)
        first = now = self.run(given)
        while now.different and (step := self.step(now)):
            now = step
            self.replays.keep(self.edits, now.b)
        now = self.needed(now, first)
        if self.found and not self.proves(now):
            return FaultSearch(
                self.a, self.replays.run, self.near, given, self.most,
                self.until - time.process_time(), numpy=False).find()
        for each in self.found:
            as_whole(each)
        return SearchOutcome(self.found, first, now, self.runs,
                             time.perf_counter() - began)

    def proves(self, now):
        """Whether b itself does under all that was found what NumPy says that
        it does."""
        if not self.replays.numpy:
            return True
        try:
            return bool(self.run(self.edits).different) <= bool(now.different)
        except Exception:  # a foreign model, given what it never has
            return False

    def step(self, now):
        """Find one more difference; the Alignment with it, or None."""
        two, tried = Skeleton(now.b), []
        trials = Trials(now, self.one, two)
        for trial in self.in_turn(trials):
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

    def tried(self, trial, now, two):
        """The Alignment under the best way of a Trial; None if none helps."""
        best = None
        for edits in trial.ways:
            if self.spent:
                break
            then = self.aligned(self.edits | edits)
            if self.helps(now, then, edits, two) and (
                    best is None or size(then) < size(best[0])):
                best = then, edits
            if best and not best[0].different:
                break
        if best is None:
            return None
        then, edits = best
        trial, then = self.fewest(trial.by(edits), then)
        edits = trial.ways[0]
        if trial.kind == COMPUTED and not trial.more:
            trial, then = self.smallest(trial, now, then)
            edits = trial.ways[0]
        earlier = self.edited(edits)
        self.edits |= edits
        if earlier:
            earlier.trial = dataclasses.replace(
                earlier.trial, kind=COMPUTED, a=trial.a or earlier.trial.a,
                value_a=trial.value_a, ways=[edits], more=())
            earlier.after, earlier.ends = then, not then.different
            return then
        others = {edit for each in trial.more for edit in each.ways[0]}
        own = {edit: array for edit, array in edits.items()
               if edit not in others}
        self.groups.append([
            dataclasses.replace(trial, more=(), ways=[own or edits]),
            *trial.more])
        alone = bool(then.different) and self.shown(
            now, then, edits, two) <= results_of(edits, now.b)
        for i, each in enumerate(self.groups[-1]):
            self.put_down(each, now, then, trial.kind == ARRAY and i > 0,
                          alone)
        if not then.different:
            return then
        if trial.kind == SCALAR:
            return self.in_all_places(trial, now, then)
        if trial.kind == ARRAY:
            return self.in_copies(trial, now, then)
        if trial.kind == PACKED:
            return self.in_like_modules(trial, now, then)
        return then

    def helps(self, now, then, edits, two):
        """Whether some edits make b's outputs a's, or values behind them."""
        return bool(then) and (not then.different or bool(
            self.shown(now, then, edits, two)) and not broken(now, then))

    def fewest(self, trial, then):
        """A Trial without those of its parts that b is no nearer to a with,
        and the Alignment then: not every parameter of a width has the parts,
        and not every table that differs is a fault."""
        edits = trial.ways[0]
        others = {edit for each in trial.more for edit in each.ways[0]}
        first = dataclasses.replace(trial, more=(), ways=[{
            edit: array for edit, array in edits.items()
            if edit not in others} or edits])
        parts = [first, *trial.more] if trial.more else [
            dataclasses.replace(trial, ways=[{edit: array}])
            for edit, array in edits.items()] if trial.kind == PACKED else []
        for part in [*parts] if len(parts) > 1 else ():
            rest = [each for each in parts if each is not part]
            less = together(rest)
            other = self.aligned(self.edits | less) if rest else None
            if other and size(other) <= size(then):
                parts, edits, then = rest, less, other
        if not parts:
            return trial, then
        first, *more = parts
        return dataclasses.replace(first, ways=[edits], more=tuple(
            more if trial.more else ())), then

    def edited(self, edits):
        """The fault that gave b something for all that these edits give it.

        What is found there once more does not stand alone: the two are one
        computation, of which the second gives all.
        """
        return next((each for each in self.found if edits.keys() <= {
            edit for trial in each.trials for edit in trial.ways[0]}), None)

    def shown(self, now, then, edits, two):
        """The values of b by which it is nearer to a with some edits.

        Such a value tells, that was lost, and that is computed of
        what was edited, and not only taken from it, is a's now, and in a
        nothing comes before it that b still has not, but through what b had
        already: it is no like value of a later layer. A table comes before
        nothing, since layers share it; and what is computed of an input is
        not a's for being a table: a bias is what a product of zeros gives.
        """
        if len(then.b.operations) != len(now.b.operations):
            return set()
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
        late = self.one.after({
            number for number in then.lost["a"] - self.one.tables
            - self.a.added if self.a.values[number].signature.telling
            }, now.in_b)
        taken = {each for number in given for each in then.in_a.get(number, ())}
        return {
            number for number in computed - given
            if number in now.lost["b"]
            and {*then.in_a.get(number, ())} - late - taken - (
                set() if number in two.tables else self.one.tables)
            and then.b.values[number].signature.telling}

    def put_down(self, trial, now, then, with_last=False, alone=False):
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
        self.found.append(ShownFault(trial, now, then, ends=ends,
                                     alone=alone))

    def needed(self, now, first):
        """Drop what the outputs agree without; the Alignment then.

        What was found behind another difference may hide it, since it gives b
        values of a. It stands without that only if what it was found on is
        then still a's; without another array, whose part it tells as well,
        always, and without what only its own operation shows.
        """
        if now.different or len(self.found) < 2:
            return now
        count = len(self.found)
        for each in [*self.found]:
            mine = {edit for trial in each.trials for edit in trial.ways[0]}
            less = {edit: array for edit, array in self.edits.items()
                    if edit not in mine}
            if self.runs >= self.most or len(self.found) == 1:
                break
            then = self.aligned(less)
            if then and not then.different and (
                    each.alone or each.trial.kind == ARRAY or all(
                        stands(other, then) for other in self.found
                        if other is not each)):
                self.edits, now = less, then
                self.found.remove(each)
                for other in self.found:
                    as_computed(other, first)
                    if each.alone and other.before is each.after:
                        other.before = each.before
        if len(self.found) < count:
            self.without_others()
        return now

    def without_others(self):
        """Take for what a value was found on what it is with only the others
        applied that are still told."""
        for each in self.found:
            mine = {edit for trial in each.trials for edit in trial.ways[0]}
            if each.trial.kind == OTHER and self.runs < self.most:
                each.before = self.aligned({
                    edit: array for edit, array in self.edits.items()
                    if edit not in mine}) or each.before


def results_of(edits, program):
    """What the operations give whose operands are edited, in any shape."""
    results = {
        result for what, number, *_ in edits if what == OPERAND
        for result in program.operations[number].results}
    for operation in program.operations:
        if moves(operation) and {*operation.operands} & results:
            results |= {*operation.results}
    return results


def _lines(trial):
    """The lines of both programs that a Trial is of."""
    return tuple(each and (each.place, each.native)
                 for each in (trial.a, trial.b))


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
