"""Training runs under every condition: compared, and faults that they catch."""

import itertools

import numpy as np
import pytest

import transformer_contract.config
import transformer_contract.training
from transformer_contract import packing
from transformer_contract.weights import probe_weights
from parity import ports
from parity.causes.faults.putting import rewritten
from parity.check import covering, lockstep, training_runs
from parity.check.workers import InProcessPort
from parity.numerics.comparator import DIVERGENCE


def diverging(engine, form="readable"):
    """Yield (run, step, kind, Difference) of what diverges in the runs."""
    for run in training_runs.varied():
        if not training_runs.makes(engine.NAME, form, run):
            continue
        for step, kind, _, _, found in lockstep.compared_run(
                run, None, {engine.NAME: InProcessPort(engine)}):
            if found[engine.NAME].verdict == DIVERGENCE:
                yield run, step, kind, found[engine.NAME]


# The conditions

def test_every_two_conditions_meet():
    axes, met = training_runs.AXES, set()
    for run in training_runs.varied():
        assert run.conditions.keys() == axes.keys()
        assert training_runs.go_together(run.conditions)
        met |= set(itertools.combinations(run.conditions.items(), 2))
    for a, b in itertools.combinations(axes, 2):
        for x, y in itertools.product(axes[a], axes[b]):
            assert ((a, x), (b, y)) in met or not training_runs.go_together(
                {a: x, b: y}), (a, x, b, y)


def test_a_word_is_covered_the_day_it_is_added():
    for choices in (transformer_contract.training.CHOICES,
                    transformer_contract.config.CHOICES):
        assert choices.items() <= training_runs.AXES.items()
    more = training_runs.AXES | {"optimizer": ("adam", "adamw", "lion")}
    words = {chosen["optimizer"] for chosen in covering.covering(
        more, training_runs.go_together)}
    assert words == {"adam", "adamw", "lion"}


def test_a_few_have_every_condition():
    met = {entry for run in training_runs.varied_few()
           for entry in run.conditions.items()}
    assert met == {(axis, word) for axis, words in training_runs.AXES.items()
                   for word in words}
    assert len(training_runs.varied_few()) < 8


@pytest.mark.long(8)
def test_the_conditions_are_met():
    """By what the runs do, not by what they are called."""
    for run in training_runs.varied():
        said, pad = run.conditions, run.config.pad_id
        kept = [(targets[:, :, 1:] != pad).sum(axis=(1, 2)).tolist()
                for _, targets in run.pairs]
        assert {len(counts) for counts in kept} == {said["accumulated"]}
        empty = [sum(counts) == 0 for counts in kept]
        word = said["tokens"]
        assert empty[0] == (word == training_runs.FIRST_STEP_OF_PADDING)
        if word == training_runs.BATCH_OF_PADDING:
            assert kept[1][-1] == 0 and kept[2][0] == 0
        if word == training_runs.UNEVEN and said["accumulated"] > 1 and (
                said["batches"] != "one pair"):
            assert all(len(set(counts)) > 1 for counts in kept)
        reference = lockstep.ReferenceRun(run, probe_weights(
            run.config, run.training.seed))
        if said["batches"] == "large":
            assert all(packing.level(
                run.config, sources, targets[:, :, 1:]) < packing.LEVELS
                for sources, targets in run.pairs)
        norms = [float(reference.step(*pairs).steps["norm"]["norm"])
                 for pairs in run.pairs]
        limit, norms = said["clip_norm"], [norm for norm in norms if norm]
        assert all(norm > limit for norm in norms) == (limit < 1)


@pytest.mark.long
def test_every_run_is_the_same_in_the_references_fast_form():
    """``parity check --wide`` asks every form of every port."""
    assert list(diverging(ports.engine("numpy", "fast"), "fast")) == []


# Proof by faults

#: Beside those of the catalogue, which its own tests put into every port.
FAULTS = {
    "clipping without a limit": (
        "train", "clip_by_global_norm", "if limit and norm > limit",
        "if norm > limit"),
    "clipping that lengthens": (
        "train", "clip_by_global_norm", "if limit and norm > limit",
        "if limit"),
    "tokens that are not 0 counted": (
        "train", "Trainer.train_step", "!= pad_id", "!= 0"),
    "a step of padding divided by 0": (
        "train", "Trainer.train_step", ", 1)\n", ", -1)\n"),
    "a loss that is not a sum": (
        "train", "Trainer.train_step", "loss = loss + share", "loss = share"),
    "another learning rate returned": (
        "train", "Trainer.train_step", "norm, settings[0]",
        "norm, training.learning_rate"),
    "native masks": (
        "train", "Trainer.draw", '== "native"', '!= "native"'),
    "padding's share of the smoothing forgotten": (
        "train", "cross_entropy", "(padding - other)", "0"),
    "id 0 taken for padding": (
        "train", "cross_entropy", "labels != pad_id", "labels != 0"),
    "the entropy forgotten": (
        "train", "cross_entropy", "negative_entropy - q_log_p", "-q_log_p"),
    "β₁ of the paper": (
        "optimizer", "Adam.update", "self.beta1 * m", "0.9 * m"),
    "steps counted from 0 when resumed": (
        "engine", "resume", "trainer.step = step", "trainer.step = 0"),
    "m resumed as v": (
        "engine", "resume", '{kind}.{weight.name}', 'm.{weight.name}'),
    "a batch that is changed": (
        "engine", "train_step", "    check_pairs(",
        "    sources[0, 0, 0] = sources[0, 0, 1]\n    check_pairs("),
}


#: Where a port has other words for it. JAX and MLX clip without asking for a
#: value: JAX so that it can be compiled, MLX so that nothing waits for it.
IN_OTHER_WORDS = {
    ("jax", "clipping without a limit"): (
        "train", "clip_by_global_norm", "if limit:", "if True:"),
    ("jax", "clipping that lengthens"): (
        "train", "clip_by_global_norm",
        "jnp.where(norm > limit, limit / norm, 1)", "limit / norm"),
    ("mlx", "clipping without a limit"): (
        "train", "clip_by_global_norm", "if limit:", "if True:"),
    ("mlx", "clipping that lengthens"): (
        "train", "clip_by_global_norm",
        "mx.where(norm > limit, limit / norm, 1)", "limit / norm"),
    ("keras", "a step of padding divided by 0"): (
        "train", "Trainer.train_step", "int(ops.sum(counts)), 1)",
        "int(ops.sum(counts)), -1)"),
}


def edited(port, fault):
    """The port with a fault in it, while this is open."""
    return rewritten(*IN_OTHER_WORDS.get(
        (port.NAME, fault), FAULTS[fault]))(port.NAME)


def test_every_fault_can_be_put_into_every_port(port):
    for fault in FAULTS:
        with edited(port, fault):
            pass


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("port", ["torch"], indirect=True)
def test_a_fault_parts_a_run(port, fault):
    """The runs are the same for each port, so that one has the faults."""
    with edited(port, fault):
        assert next(diverging(port), None) is not None


class Remembering:
    """An engine whose models answer as they first did."""

    def __init__(self, engine):
        self.engine, self.answers = engine, {}

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def predict(self, model, *inputs):
        """What the model first answered to arrays of these shapes."""
        key = id(model), *(array.shape for array in inputs)
        if key not in self.answers:
            self.answers[key] = self.engine.predict(model, *inputs)
        return self.answers[key]


def test_an_answer_from_before_the_training_is_noticed():
    run = training_runs.varied_few()[0]
    there = {"numpy": InProcessPort(Remembering(ports.engine("numpy")))}
    found = {(step, kind): differences["numpy"].verdict
             for step, kind, _, _, differences in lockstep.compared_run(
                 run, None, there)}
    assert [place for place, verdict in found.items()
            if verdict == DIVERGENCE] == [(run.steps, lockstep.ANSWER)]


def test_a_zero_is_compared_with_zero_alone():
    truth = lockstep.TrainingOracle({"m": {"a": np.zeros(3)}}, 0.1)
    for found, fits in ((np.zeros(3), True), (-np.zeros(3), True),
                        (np.full(3, 1e-300), False), (np.zeros(2), False),
                        (np.zeros(3, np.float32), False), (0.0, False),
                        (np.full(3, np.nan), False)):
        differs = truth.compare("m", {"a": found}).verdict == DIVERGENCE
        assert differs != fits, found
