"""Why a port differs: which known fault computes just what it computed.

At the first step that diverges, the reference is run again with each fault of
the catalogue in it. A cause is named only if every step of that case, as the
port computed it, is what the reference with the fault computes, to the rounding
floor, and again on a second input of another scale. If none is, it is said that
none was identified; a guess would be worse.

Nor is a cause named that would show where the port is right: it is then looked
for in one place of the model, such as one layer, and named with it.

Then the fault is allowed for, by leaving it in the reference, and the next one
is looked for in the same way.
"""

import contextlib
import dataclasses

import numpy as np

from parity import ports
from parity.causes import catalogue
from parity.causes.faults import generation, gradients, training_steps
from parity.diagnosis.places import PlacedCause, places_of
from parity.check import cases
from parity.check.run import EngineRunner, Oracle, Reference, compare_steps
from parity.numerics.comparator import DIVERGENCE, compare
from parity.numerics.tolerances import FLOAT64_LIMIT

#: How many faults are looked for in one port.
MOST = 3

#: Topics whose faults show in no component and no forward pass.
APART = (training_steps.TOPIC, gradients.TOPIC, generation.TOPIC)

#: What the inputs of the second probe are multiplied by.
SCALE = 0.125


@dataclasses.dataclass(frozen=True)
class Finding:
    """A divergence and what it was traced to.

    Attributes:
        case, step: where it shows first.
        error, limit, reason: of that step, as in comparator.Difference.
        causes: the faults that compute the same as the port; several, if no
            case can tell them apart, and none if it is not identified.
            Each is a Cause, or a PlacedCause if it is in one place alone.
    """

    case: str
    step: str
    error: float | None
    limit: float
    reason: str
    causes: tuple

    @property
    def cause(self):
        """The cause in words."""
        return (" or ".join(fault.name for fault in self.causes)
                or "not identified")


class KeptRunner(EngineRunner):
    """An EngineRunner that computes each case once."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._kept = {}

    def steps(self, case, inputs):
        """Every step of a case by name; as an EngineRunner's."""
        if case.name not in self._kept:
            self._kept[case.name] = super().steps(case, inputs)
        return self._kept[case.name]


class Diagnosis:
    """Looks for the causes of divergences in models of one config.

    What the reference computes, with a fault or without, is kept, so that
    several ports are diagnosed for little more than one.

    Args:
        config, weights: of the models, in float64.
        faults: the causes to look for; by default all that can be put there.
        batch: that models are run on; by default cases.padded_batch's.
    """

    def __init__(self, config, weights, faults=None, batch=None):
        self.config, self.weights = config, weights
        self.selection = faults
        self.batch = batch or cases.padded_batch(config)
        self.cases = list(self._cases())
        self._truths, self._replays, self._shown = {}, {}, {}

    def _cases(self):
        """The cases that are looked at, in float64."""
        every = (*cases.component_cases(self.config, self.batch),
                 cases.model_case(self.batch))
        return (case for case in every if "float64" in case.tiers)

    @property
    def faults(self):
        """The causes that are looked for."""
        if self.selection is not None:
            return self.selection
        return [fault for fault in catalogue.faults()
                if fault.topic not in APART]

    def findings(self, engine):
        """What is wrong with a port: a list of Findings, the first first.

        Empty if nothing is. The last has no cause if what is left could not be
        identified.
        """
        findings: list = []
        allowed: tuple = ()
        runner = KeptRunner(engine, self.config, self.weights, "float64")
        while len(findings) < MOST:
            first = self._first(runner, allowed)
            if first is None:
                break
            finding = self._explain(runner, first, allowed)
            findings.append(finding)
            if not finding.causes:
                break
            allowed += (finding.causes[0],)
        return findings

    def _first(self, runner, allowed):
        """The first case in which a port diverges, its steps, a Finding."""
        for case in self.cases:
            truth = self._truth(case, allowed)
            try:
                steps = runner.steps(case, case.inputs)
            except Exception as error:
                words = f"{type(error).__name__}: {error}".splitlines()[0]
                return case, None, Finding(
                    case.name, next(iter(truth.steps)), None, FLOAT64_LIMIT,
                    words[:200], ())
            if wrong := diverging(steps, truth):
                name, difference = wrong
                return case, steps, Finding(
                    case.name, name, difference.error, difference.limit,
                    difference.reason, ())
        return None

    def _explain(self, runner, first, allowed):
        """The Finding with the faults that compute the same as the port.

        They are those after which the fewest cases are left to explain.
        """
        case, steps, finding = first
        if steps is None:
            return finding
        every = len(self.cases)
        fitting = self._fitting(runner, case, steps, self.faults, allowed)
        causes, reached = self._furthest(runner, case, fitting, allowed)
        # Several parts in one case: only one of them may be wrong.
        if reached < every and (fitting or not case.nested
                                or case is self.cases[-1]):
            order, step = self._in_model(runner, allowed)
            likely = fitting or [
                fault for fault in self.faults if own_name(self._shows(
                    fault, allowed, order)) == own_name(step)]
            for place in places_of(step):
                placed = self._fitting(runner, case, steps, [
                    PlacedCause(cause, place) for cause in likely], allowed)
                nearer, far = self._furthest(runner, case, placed, allowed)
                if far > reached:
                    causes, reached = nearer, far
                if reached == every:
                    break
        return dataclasses.replace(finding, causes=tuple(causes))

    def _fitting(self, runner, case, steps, faults, allowed):
        """The faults with which a case is as the port computed it, twice."""
        causes = [fault for fault in faults if fault not in allowed
                  and self._same(steps, case, fault, allowed)]
        if causes:
            other = probe(case)
            again = runner.steps(other, other.inputs)
            causes = [fault for fault in causes
                      if self._same(again, other, fault, allowed)]
        return causes

    def _furthest(self, runner, case, causes, allowed):
        """Of some causes those with which most cases are right, and how many.

        A cause with which a case goes wrong that was right is none.
        """
        best: list = []
        reached = self.cases.index(case)
        for cause in causes:
            try:
                left = self._first(runner, (*allowed, cause))
            except Exception:  # a case that comes later cannot have it
                continue
            far = self.cases.index(left[0]) if left else len(self.cases)
            if far > reached:
                best, reached = [], far
            if far == reached and far > self.cases.index(case):
                best.append(cause)
        return best, reached

    def _in_model(self, runner, allowed):
        """The steps of the port's whole model in their order, and the first
        wrong one; "" if there is none."""
        case = self.cases[-1]
        try:
            steps = runner.steps(case, case.inputs)
        except Exception:  # it has said so
            return (), ""
        wrong = diverging(steps, self._truth(case, allowed))
        return tuple(steps), wrong[0] if wrong else ""

    def _shows(self, fault, allowed, order):
        """The first of a model's steps that a fault changes; "" if none."""
        key = fault.name, tuple(f.name for f in allowed)
        if key not in self._shown:
            case = self.cases[-1]
            steps = self._replay(case, fault, allowed) or {}
            truth = self._truth(case, allowed).steps
            self._shown[key] = next((
                name for name in order if name in steps and name in truth
                and not equal(steps[name], truth[name])), "")
        return self._shown[key]

    def _same(self, steps, case, fault, allowed):
        """Whether a fault computes each step of a case as the port did."""
        replayed = self._replay(case, fault, allowed)
        return replayed is not None and not diverging(
            steps, Oracle(replayed, {}))

    def _truth(self, case, allowed):
        key = case.name, tuple(fault.name for fault in allowed)
        if key not in self._truths:
            with put_into_reference(*allowed):
                self._truths[key] = Reference(
                    self.config, self.weights, "float64").truth(case)
        return self._truths[key]

    def _replay(self, case, fault, allowed):
        """A case's steps by the reference with faults; None if it fails."""
        key = case.name, fault.name, tuple(f.name for f in allowed)
        if key in self._replays:
            return self._replays[key]
        steps = None
        with contextlib.suppress(Exception):  # this case cannot have it
            with (put_into_reference(*allowed, fault),
                  np.errstate(all="ignore")):
                steps = EngineRunner(ports.engine("numpy"), self.config,
                                     self.weights, "float64").steps(
                    case, case.inputs)
        if not isinstance(fault, PlacedCause):  # too many to keep
            self._replays[key] = steps
        return steps


class GradientDiagnosis(Diagnosis):
    """Looks for the causes of gradients that diverge."""

    def _cases(self):
        yield cases.gradients_case(self.batch, self.config.pad_id)

    @property
    def faults(self):
        """The causes that are looked for."""
        return [fault for fault in catalogue.faults()
                if fault.topic == gradients.TOPIC]

    def _in_model(self, runner, allowed):
        return (), ""


def own_name(step):
    """The last part of a step's name."""
    return step.rpartition(".")[2]


def diverging(steps, truth):
    """The first step that differs from the truth, and its Difference."""
    differences = compare_steps(steps, truth, "float64")
    for name, difference in differences.items():
        if difference.verdict == DIVERGENCE and not (
                name in steps and name in truth.steps
                and equal(steps[name], truth.steps[name])):
            return name, difference
    return None


def equal(actual, replayed):
    """Whether two arrays are one to the rounding floor.

    Zeros everywhere are equal to zeros, as comparator.compare would not have
    it: a fault may be that nothing is left.
    """
    if actual.shape != replayed.shape or actual.dtype != replayed.dtype:
        return False
    if replayed.dtype.kind in "biu":
        return np.array_equal(actual, replayed)
    if not replayed.any():
        return not actual.any()
    if not np.isfinite(replayed).any():
        return np.array_equal(actual, replayed, equal_nan=True)
    return compare(actual, replayed, FLOAT64_LIMIT).verdict != DIVERGENCE


def probe(case):
    """A case on other inputs: floats on another scale, ids in another order.

    Some causes show on one scale only, and some on two scales are different
    ones.
    """
    def other(x):
        x = np.asarray(x)
        if x.dtype.kind == "f":
            return x * SCALE + SCALE * np.roll(x, 1, axis=-1)
        if x.dtype.kind in "iu":
            return np.ascontiguousarray(x[:, ::-1])
        return x
    return dataclasses.replace(
        case, name=f"{case.name}, other inputs",
        inputs=tuple(map(other, case.inputs)))


@contextlib.contextmanager
def put_into_reference(*faults):
    """The reference, with faults in it."""
    with contextlib.ExitStack() as stack:
        for fault in faults:
            stack.enter_context(fault.put("numpy"))
        yield
