"""As little of b as explains that one value of it differs."""

import dataclasses
import itertools

from parity.operations.align import Alignment
from parity.operations.layouts import relaid
from parity.operations.refine import first_pairs
from parity.operations.runs import Runs, key, size, together
from parity.operations.skeleton import Skeleton
from parity.operations.state import given
from parity.operations.trial import COMPUTED, Trial
from parity.operations.trials import Trials

#: So often b is run at most to find less that explains one value, and so deep
#: it is looked into.
INSIDE, LEVELS = 40, 4

#: Where fewer values than this are lost, so few runs are spent on them.
FEW, ALONE = 3, 8


class Narrowing(Runs):
    """Replaces a value that was put into b by what made it differ."""

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
                          or self.in_place(each, now))
            if self.gives(pair, group):
                return group
            deep = deep - 1 if deep < 6 else deep // 2  # they differ before
            pairs, _ = first_pairs(part, self.one, two, pair, deep)
        if level > LEVELS:
            return None
        maker = now.b.maker(pair[1])
        if len(part.lost["b"]) < FEW:
            until = min(until, self.runs + ALONE)
        trials, seen = Trials(part, self.one, two, free=True), set()
        for trial in itertools.chain(
                trials.operands(maker, self.a.maker(pair[0])),
                trials.every()):
            if maker is not None and trial.kind == COMPUTED and (
                    trial.b is maker):
                continue
            for edits in trial.ways:
                if key(edits) in seen:
                    continue
                if self.spent or self.runs >= until:
                    return None
                seen.add(key(edits))
                there = trial.by(edits)
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

    def in_place(self, pair, now):
        """The Trial that puts a's value in the place of b's, if there is a
        way; in a list."""
        a, b = pair
        maker = now.b.maker(b)
        if maker is None:
            return []
        return [Trial(COMPUTED, maker, self.a.maker(a), b, a,
                      [given(now.b, b, array)])
                for array in relaid(self.a.values[a].array,
                                    now.b.values[b].array, 1)]
