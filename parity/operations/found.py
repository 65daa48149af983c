"""What a search found: differences that are shown, and what is left."""

import dataclasses

from parity.operations.align import Alignment
from parity.operations.layouts import relaid
from parity.operations.program import MADE, OPERAND, RESULT
from parity.operations.skeleton import Skeleton
from parity.operations.trial import COMPUTED, EXTRA, MISSING, OTHER, Trial


@dataclasses.dataclass
class ShownFault:
    """A difference that is shown by running b without it.

    Attributes:
        trial: what it is.
        also: further Trials that are the same at other places.
        before, after: the state of b in which it was found, and with it, an
            Alignment each.
        ends: whether with it, and those before it, all outputs are a's.
        alone: whether only what its own operation gives is a's then: of what
            is given to it that shows nothing yet.
    """

    trial: Trial
    before: Alignment
    after: Alignment
    also: list = dataclasses.field(default_factory=list)
    ends: bool = False
    alone: bool = False

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

    @property
    def told(self):
        """How much was found that is computed otherwise, in no step alone, and
        how much in all."""
        return (sum(each.trial.kind == COMPUTED and not (
            each.trial.b and each.trial.a
            and each.trial.b.name == each.trial.a.name == "slice")
            for each in self.found), len(self.found))


def as_whole(found):
    """Take what gives an operation all that it reads for its result.

    Nothing shows then which of its operands differs.
    """
    operation, a = found.trial.b, found.trial.a
    if None in (operation, a) or {each.kind for each in found.trials} != {
            OTHER}:
        return
    given = {edit for trial in found.trials for edit in trial.ways[0]}
    slots = Skeleton(found.before.b).arrays(operation)
    if len(slots) < 2 or given != {
            (OPERAND, operation.number, slot) for slot in slots}:
        return
    mine = found.before.b.values[operation.results[0]]
    laid = relaid(found.before.a.values[a.results[0]].array, mine.array, 1)
    if laid:
        found.also.clear()
        found.trial = Trial(
            COMPUTED, operation, a, mine.number, a.results[0],
            [{(RESULT, operation.number, 0): laid[0]}])


def as_computed(found, first):
    """Take a step more or less on a result that b's own never was, for one of
    how that result is computed."""
    trial = found.trial
    for what, number, *slot in trial.ways[0]:
        if what != RESULT or trial.kind not in (MISSING, EXTRA):
            continue
        operation = found.before.b.operations[number]
        value = operation.results[slot[0]]
        if value in found.before.in_a and value not in first.in_a:
            found.trial = dataclasses.replace(
                trial, kind=COMPUTED, b=operation, value_b=value)
            found.before = first


def stands(found, then):
    """Whether what a difference was found on is a's under other edits too."""
    operation = found.trial.b
    return operation is None or all(
        operand in then.in_a for operand in operation.operands
        if operand in found.before.in_a
        and found.before.b.values[operand].kind == MADE)
