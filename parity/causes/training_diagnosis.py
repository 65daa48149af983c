"""Why a training run diverges: which known fault trains just as the port did.

As in parity.causes.diagnose, the reference makes the run again with each fault
in it, and a cause is named only if every number of every step is then what the
port computed, and again in a second run, of other weights and batches.
"""

import contextlib
import dataclasses
import pathlib
import tempfile

import numpy as np

from contract.config import PRESETS
from contract.weights import probe_weights
from parity import ports
from parity.causes import catalogue, diagnose
from parity.causes.diagnose import MOST, Finding, put_into_reference
from parity.causes.faults.training_steps import CASE, TOPIC
from parity.check import cases, lockstep, training_runs
from parity.check.training_runs import (
    AXES, OWN, THROUGH, TrainingRun, varied_run)
from parity.numerics import zero_gradients
from parity.numerics.comparator import DIVERGENCE, compare
from parity.numerics.tolerances import LOCKSTEP_LIMIT

#: What shows a fault: all that a run can have, so that none stays hidden.
CONDITIONS = {axis: words[0] for axis, words in AXES.items()} | {
    "optimizer": "adamw", "seed": 2**32 + 5, "accumulated": 3,
    "dropout": 0.35, "clip_norm": 0.02, "resumed": OWN}

#: Of a run of a preset, divergences at later steps are not explained.
LATEST = 5

#: Topics whose faults a step of training can have.
TOPICS = (TOPIC, "optimiser", "loss")


def proof_run(changes):
    """The TrainingRun in which a fault of training shows."""
    return dataclasses.replace(
        varied_run(0, CONDITIONS | changes), name=CASE)


def run_of_row(row):
    """The TrainingRun of a Row in float64; None if it is of none, or late."""
    if row.dtype != "float64":
        return None
    if row.case.startswith("training, ") and row.preset in PRESETS:
        step = int(row.name.split()[1])
        return training_runs.usual(
            cases.test_size(row.preset), step) if step <= LATEST else None
    return next((run for run in training_runs.varied()
                 if (training_runs.TITLE, run.name)
                 == (row.preset, row.case)), None)


def of_row(row, engine):
    """What is wrong with a port, from a Row of parity.check.run that diverges.

    Nothing is found for what is neither a component, nor a step of a model or
    of training, in float64.
    """
    run = run_of_row(row)
    return (TrainingDiagnosis(run).findings(engine) if run
            else diagnose.of_row(row, engine))


def steps_of(engine, run, seed):
    """All that an engine computes in a run: {(step, kind): {name: array}}."""
    runner = lockstep.TrainingRunner(
        engine, run, probe_weights(run.config, seed))
    arrays_of = {}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "checkpoint"
        for step, pairs in enumerate(run.pairs, start=1):
            for kind, arrays in runner.step(*pairs).items():
                arrays_of[step, kind] = {
                    name: np.array(array) for name, array in arrays.items()
                    if not zero_gradients.is_zero(name)}
            if run.resumed != THROUGH and step == run.saved:
                runner.save(path)
                runner.resume(path, run.pairs[0])
    return arrays_of


def parted(actual, truth):
    """The first (step, kind) in which two runs differ, and a Difference."""
    for place in sorted(truth, key=lambda place: (
            place[0], lockstep.ALL_KINDS.index(place[1]))):
        for name, expected in truth[place].items():
            one = actual[place][name]
            if np.array_equal(one, expected, equal_nan=True):
                continue
            difference = compare(one, expected, LOCKSTEP_LIMIT)
            if difference.verdict == DIVERGENCE:
                return place, difference
    return None


def other(run):
    """The run on other batches: each in the order of another row."""
    return dataclasses.replace(run, pairs=tuple(
        tuple(np.roll(ids, 1, axis=1) for ids in pairs)
        for pairs in run.pairs))


class TrainingDiagnosis:
    """Looks for the causes of a run that diverges; as diagnose.Diagnosis."""

    def __init__(self, run: TrainingRun):
        self.run, self._replays = run, {}

    def findings(self, engine):
        """What is wrong with a port: a list of Findings, the first first."""
        findings, allowed = [], ()
        try:
            ours = [steps_of(engine, *probe) for probe in self._probes()]
        except Exception as error:
            words = f"{type(error).__name__}: {error}".splitlines()[0]
            return [Finding(self.run.name, "step 1 loss", None,
                            LOCKSTEP_LIMIT, words[:200], ())]
        while len(findings) < MOST:
            first = parted(ours[0], self._replay(0, allowed))
            if first is None:
                break
            (step, kind), difference = first
            causes = tuple(
                fault for fault in catalogue.faults()
                if fault.topic in TOPICS and fault not in allowed
                and all(self._same(number, mine, (*allowed, fault))
                        for number, mine in enumerate(ours)))
            findings.append(Finding(
                self.run.name, f"step {step} {kind}", difference.error,
                LOCKSTEP_LIMIT, difference.reason, causes))
            if not causes:
                break
            allowed += (causes[0],)
        return findings

    def _probes(self):
        return (self.run, 1), (other(self.run), 2)

    def _same(self, number, actual, faults):
        replayed = self._replay(number, faults)
        return replayed is not None and parted(actual, replayed) is None

    def _replay(self, number, faults):
        """The reference's run with faults; None if it fails."""
        key = number, tuple(fault.name for fault in faults)
        if key not in self._replays:
            self._replays[key] = None
            with (contextlib.suppress(Exception) if faults
                  else contextlib.nullcontext()):
                with put_into_reference(*faults), np.errstate(all="ignore"):
                    self._replays[key] = steps_of(
                        ports.engine("numpy"), *self._probes()[number])
        return self._replays[key]
