"""Running b under edits, as often and as long as is allowed."""

import time

from parity.operations.align import Alignment
from parity.operations.program import MADE
from parity.operations.skeleton import Skeleton

#: So often b is run at most, and for so many seconds of the processor, so that
#: what else a machine does changes no answer.
RUNS, SECONDS = 150, 30.0


class Runs:
    """Runs b, and holds it against a.

    Args:
        a: a's Program, with all arrays.
        run: edits -> b's Program, with all arrays.
        near: as of Alignment.
        edits: of b that are no difference, such as tables in float32.
        runs, seconds: how often, and for how long, b is run at most.

    Attributes:
        edits: those that are in force.
        found: every ShownFault so far.
    """

    def __init__(self, a, run, near, edits=None, runs=RUNS, seconds=SECONDS):
        self.a, self._run, self.near = a, run, near
        self.most, self.until = runs, time.process_time() + seconds
        self.one = Skeleton(a)
        self.runs, self.edits = 0, dict(edits or {})
        self.found, self.groups, self.shrunk = [], [], (None, {})

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

    @property
    def spent(self):
        """Whether b was run often or long enough."""
        return self.runs >= self.most or time.process_time() > self.until

    def gives(self, pair, group):
        """Whether with some Trials a value of b is a's."""
        if not group:
            return False
        then = self.aligned(self.edits | together(group), [pair])
        return bool(then) and pair[1] < len(then.b.values) and (
            not then.different)


def together(group):
    """The edits of some Trials, as one."""
    return {edit: array for trial in group
            for edit, array in trial.ways[0].items()}


def key(edits):
    """What edits share that do the same."""
    return tuple(sorted((*map(str, edit), array.tobytes())
                        for edit, array in edits.items()))


def size(alignment):
    """How much is lost, to choose the better of two."""
    return bool(alignment.different), len(alignment.lost["b"])


def broken(now, then):
    """Whether values of b that were a's before an edit are no longer."""
    return any(value.number not in then.in_a and value.kind == MADE
               and now.b.values[value.number].signature.telling
               for value in then.b.values if value.number in now.in_a)
