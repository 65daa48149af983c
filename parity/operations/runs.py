"""Running b under edits, as often and as long as is allowed."""

import contextlib
import time

from parity_io.errors import InputError
from parity.operations.align import Alignment
from parity.operations.program import MADE
from parity.operations.replay import replayed
from parity.operations.skeleton import Skeleton

#: So often b is run at most, and for so many seconds of the processor, so that
#: what else a machine does changes no answer.
RUNS, SECONDS = 1000, 30.0


class Runs:
    """Runs b, and holds it against a.

    Args:
        a: a's Program, with all arrays.
        run: edits -> b's Program, with all arrays.
        near: as of Alignment.
        edits: of b that are no difference, such as tables in float32.
        runs, seconds: how often, and for how long, b is run at most.
        numpy: as of Replays.

    Attributes:
        edits: those that are in force.
        found: every ShownFault so far.
    """

    def __init__(self, a, run, near, edits=None, runs=RUNS, seconds=SECONDS,
                 numpy=True):
        self.a, self.near = a, near
        self.replays = Replays(run, numpy)
        self.most, self.until = runs, time.process_time() + seconds
        self.one = Skeleton(a)
        self.runs, self.edits = 0, dict(edits or {})
        self.found, self.groups, self.shrunk = [], [], (None, {})

    def aligned(self, edits, ends=None):
        """How b is aligned with a under some edits; None if it then fails."""
        self.runs += 1
        try:
            program = self.replays(edits)
        except Exception:  # a foreign model, given what it never has
            if not self.found and edits == self.edits:
                raise
            return None
        return Alignment(self.a, program, self.near, ends)

    def run(self, edits):
        """How b, run itself, is aligned with a under some edits."""
        self.runs += 1
        return Alignment(self.a, self.replays.keep(
            edits, self.replays.run(edits)), self.near)

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


class Replays:
    """b's Program under edits: what follows from them is computed anew with
    NumPy, which is many times quicker, and where NumPy does not do what b did,
    b is run.

    Args:
        run: edits -> b's Program, with all arrays.
        numpy: whether anything is computed with NumPy.
    """

    def __init__(self, run, numpy=True):
        self.run, self.numpy, self.checked = run, numpy, {}
        self.states = []  # (edits, b's Program under them)

    def __call__(self, edits):
        """b's Program under edits."""
        for had, program in reversed(self.states if self.numpy else ()):
            if had.keys() <= edits.keys():
                with contextlib.suppress(InputError):
                    return replayed(program, edits, self.checked, had)
                break
        return self.run(edits)

    def keep(self, edits, program):
        """Take a Program from which others are computed; it is returned."""
        self.states.append((dict(edits), program))
        return program


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
