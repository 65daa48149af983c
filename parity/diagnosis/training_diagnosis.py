"""Why a training run diverges: which known fault trains just as the port."""

import dataclasses
import pathlib
import tempfile

import numpy as np

from transformer_contract.config import PRESETS
from transformer_contract.weights import probe_weights
from parity.causes.faults.training_steps import CASE, TOPIC
from parity.diagnosis.run_diagnosis import RunDiagnosis
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
    if row.case.startswith("training, ") and row.preset in PRESETS:
        step = int(row.name.split()[1])
        return training_runs.usual(
            cases.test_size(row.preset), step) if step <= LATEST else None
    return next((run for run in training_runs.varied()
                 if (training_runs.TITLE, run.name)
                 == (row.preset, row.case)), None)


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
                    if not zero_gradients.is_zero(
                        name, run.config.positions)}
            if run.resumed != THROUGH and step == run.saved:
                runner.save(path)
                runner.resume(path, run.pairs[0])
    return arrays_of


def other(run):
    """The run on other batches: each in the order of another row."""
    return dataclasses.replace(run, pairs=tuple(
        tuple(np.roll(ids, 1, axis=1) for ids in pairs)
        for pairs in run.pairs))


class TrainingDiagnosis(RunDiagnosis):
    """Looks for the causes of a TrainingRun that diverges."""

    def __init__(self, run: TrainingRun):
        super().__init__(run.name, "step 1 loss", LOCKSTEP_LIMIT, TOPICS,
                         ((run, 1), (other(run), 2)))

    def answers(self, engine, probe):
        """All that an engine computes: {(step, kind): {name: array}}."""
        return steps_of(engine, *probe)

    def first_divergence(self, actual, truth):
        """The first step and kind in which two runs differ."""
        for place in sorted(truth, key=lambda place: (
                place[0], lockstep.ALL_KINDS.index(place[1]))):
            for name, expected in truth[place].items():
                one = actual[place][name]
                if np.array_equal(one, expected, equal_nan=True):
                    continue
                difference = compare(one, expected, LOCKSTEP_LIMIT)
                if difference.verdict == DIVERGENCE:
                    return "step {} {}".format(*place), difference
        return None
