"""What was found in one layer, sought in all others."""

import dataclasses
import itertools

import numpy as np

from parity.operations.layouts import in_parts, relaid_as
from parity.operations.program import LEAF, OPERAND, PARAMETER, RESULT
from parity.operations.runs import Runs, broken, key, size
from parity.operations.trial import COMPUTED, EXCHANGED, EXTRA, SCALAR


class Repeats(Runs):
    """Looks for the same difference at the other places of its lines."""

    def in_turn(self, trials):
        """Yield Trials, those like what was found before first, each once."""
        seen = set()
        for trial in itertools.chain(self.found_before(trials), trials.every()):
            trial.ways = [edits for edits in trial.ways
                          if key(edits) not in seen]
            seen |= {*map(key, trial.ways)}
            if trial.ways:
                yield trial

    def found_before(self, trials):
        """What was found before, at the next place of the same lines."""
        for group in self.groups:
            steps = [step for each in group for step in itertools.islice(
                self.at_next_places(each, trials), 1)]
            if len(steps) == len(group) == 1:
                yield steps[0]
            elif len(steps) == len(group):
                first, *more = steps
                yield dataclasses.replace(first, more=tuple(more), ways=[{
                    edit: array for each in steps
                    for edit, array in each.ways[0].items()}])

    def at_next_places(self, trial, trials):
        """Yield Trials at the next places of the lines of another."""
        if trial.b is None or trial.a is None and trial.kind != EXTRA:
            return
        if trial.kind == EXCHANGED:
            yield from self.at_next_parts(trial, trials)
            return
        mine, theirs = (
            [other for other in program.operations
             if _line(other) == _line(of)] if of is not None else []
            for program, of in ((trials.b, trial.b), (self.a, trial.a)))
        if trial.a is not None:  # of the run, or both of another way
            theirs = [each for each in theirs if (
                {*each.results} <= self.a.added) == (
                {*trial.a.results} <= self.a.added)]
            if len(theirs) != len(mine):
                mine, theirs = (
                    [each for each in some if _makers(
                        program, each) == _makers(program, of)]
                    for program, some, of in (
                        (trials.b, mine, trial.b),
                        (self.a, theirs, trial.a)))
        at_b, at_a = _index(mine, trial.b), _index(theirs, trial.a)
        for other in mine[at_b + 1:]:
            if not any(result in trials.alignment.lost["b"]
                       for result in other.results):
                continue
            there = at_a + _index(mine, other) - at_b
            if trial.kind == EXTRA:
                root = trials.two.root(other.operands[trial.slot])
                yield from (each for number in trials.alignment.in_a.get(
                    root, ())[:1] for each in trials.without(
                        other, trial.slot, number))
            elif there < len(theirs):
                yield from self.at_operations(
                    trial, trials, other, theirs[there])

    def at_next_parts(self, trial, trials):
        """Yield Trials with the parts of other values in the same order, that
        are taken at the same line."""
        seen = set()
        for other in trials.b.operations:
            source = trials.two.root(other.operands[0]) if (
                other.operands) else None
            if _line(other) != _line(trial.b) or source in seen:
                continue
            seen.add(source)
            parts, steps = trials.parts_taken(source)
            if len(parts) == len(trial.slot) and not steps:
                made = trials.in_order(parts, trial.slot)
                if not made.ways[0].keys() <= self.edits.keys():
                    yield made

    def at_operations(self, trial, trials, b, a):
        """A Trial at two operations as another is at its two."""
        edits, source = {}, self.taken(trial, a)
        if source is None:
            return
        if trial.kind == COMPUTED and trial.b.name == "slice":
            for other, _ in trials.partners(b)[:1]:
                yield from trials.parts(b, other)
            return
        for (what, *at), array in trial.ways[0].items():
            if len(at) < 2:
                return
            operation = self.moved(trials.b, at[0], trial.b, b)
            if operation is None:
                return
            values = (operation.operands if what == OPERAND
                      else operation.results)
            if at[1] >= len(values):
                return
            value = values[at[1]]
            if trial.kind == SCALAR:
                edits[what, operation.number, at[1]] = array
                continue
            parts = what == RESULT and len(trial.ways[0]) > 1 and (
                at[1] < len(a.results) > 1)
            first, there = (trial.a.results[at[1]], a.results[at[1]]) if (
                parts) else (trial.value_a, source)
            made = relaid_as(self.a.values[there].array,
                             self.a.values[first].array, array)
            for laid in trials.laid(there, value, 1) if made is None else [
                    made]:
                edits[what, operation.number, at[1]] = laid
        if edits:
            yield dataclasses.replace(
                trial, b=b, a=a, ways=[edits], more=(),
                value_b=b.operands[trial.slot] if trial.slot is not None
                else b.results[0], value_a=source)

    def moved(self, program, number, one, two):
        """The operation that is to one of two as another is to the other, the
        two being of one line; or None."""
        if number == one.number:
            return two
        ranks = [[other for other in program.operations
                  if _line(other) == _line(each)]
                 for each in (one, program.operations[number])]
        place = _index(ranks[1], program.operations[number]) + _index(
            ranks[0], two) - _index(ranks[0], one)
        return ranks[1][place] if 0 <= place < len(ranks[1]) and len(
            ranks[0]) == len(ranks[1]) else None

    def taken(self, trial, a):
        """The value of a that a Trial takes, at another operation."""
        for mine, there in ((trial.a.operands, a.operands),
                            (trial.a.results, a.results)):
            if trial.value_a in mine and mine.index(
                    trial.value_a) < len(there):
                return there[mine.index(trial.value_a)]
        return None

    def in_all_places(self, trial, now, then):
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

    def in_copies(self, trial, now, then):
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

    def in_like_modules(self, trial, now, then):
        """The same order of parts in every parameter that is called like one
        of a Trial's and has its shape, such as of a cell in the other
        direction, if that is better."""
        leaves = {value.name: value for value in now.b.values
                  if value.kind == PARAMETER and value.name}
        alike = {}
        for (_, name), array in trial.ways[0].items():
            mine = leaves[name]
            axis = next(axis for axis in range(mine.array.ndim)
                        if mine.shape[axis] % len(trial.slot) == 0
                        and np.array_equal(array, in_parts(
                            mine.array, axis, trial.slot)))
            alike |= {(LEAF, other.name): in_parts(
                other.array, axis, trial.slot) for other in leaves.values()
                if other.shape == mine.shape and other.array is not None
                and (LEAF, other.name) not in trial.ways[0]
                and other.name.rpartition(".")[2] == name.rpartition(".")[2]}
        more = self.aligned(self.edits | alike) if alike else None
        if not more or more.different and (
                size(more) >= size(then) or broken(then, more)):
            return then
        self.edits |= alike
        self.found[-1].after = more
        for (_, name), array in alike.items():
            reader = now.b.users.get(leaves[name].number) or [0]
            self.found[-1].also.append(dataclasses.replace(
                trial, value_b=leaves[name].number, more=(),
                b=now.b.operations[reader[0]], ways=[{(LEAF, name): array}]))
        return more


def _makers(program, operation):
    """The names of the operations that made what another reads."""
    makers = (program.maker(each) for each in operation.operands)
    return [each.native for each in makers if each is not None]


def _line(operation):
    """What operations of one line have alike."""
    return operation.place, operation.native, operation.name


def _index(operations, operation):
    """The place of an operation among some, by its number; -1 of none."""
    return next((i for i, each in enumerate(operations) if operation is not (
        None) and each.number == operation.number), -1)
