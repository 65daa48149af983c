"""Training: runs that stay equal, accumulation, and what parts them."""

import numpy as np
import pytest

from transformer_contract import weights
from parity_io.errors import InputError
from parity import ports
from parity.causes.faults.putting import replaced
from parity.check import cases, lockstep, training_runs
from parity.check.workers import InProcessPort
from parity.numerics.comparator import DIVERGENCE, FREE, relative_error
from parity_tests.support.engines import uncompiled
from parity_tests.support.runs import TRAINING


def small(**changes):
    """A model that compiles quickly."""
    return cases.test_size("vaswani2017_base").replace(
        n_encoder_layers=1, n_decoder_layers=1, **changes)


def trainer(engine, config, settings=TRAINING, dtype="float64"):
    arrays = {name: array.astype(dtype)
              for name, array in weights.initial_weights(config).items()}
    model = engine.build("transformer", config, arrays, dtype)
    return model, engine.trainer(model, settings)


@pytest.mark.long(2000)  # minutes each
def test_a_hundred_steps_are_the_same(port):
    """With dropout, smoothing, schedule, clipping and accumulation."""
    config = small()
    assert config.dropout == 0.1
    clipped = 0
    run = training_runs.usual(config, 3)
    runner = lockstep.TrainingRunner(
        ports.engine("numpy"), run, weights.initial_weights(run.config))
    for pairs in run.pairs:
        norm = runner.step(*pairs)["norm"]["norm"]
        clipped += norm > run.training.clip_norm
    assert clipped == 3
    run = lockstep.compared(
        config, weights.initial_weights(config),
        {port.NAME: InProcessPort(port)}, 100)
    worst = dict.fromkeys(lockstep.KINDS, 0.0)
    for step, kind, _, found in run:
        difference = found[port.NAME]
        assert difference.verdict != DIVERGENCE, (step, kind, difference)
        worst[kind] = max(worst[kind], difference.error)
    assert step == 100
    assert worst["loss"] < 1e-12 and worst["weights"] < 1e-11


def uneven(config):
    """Two batches [2 B S] and [2 B T], one with far fewer tokens to predict.

    Of the shapes that other runs here have, which JAX compiles once.
    """
    sources, targets = training_runs.batches(config, 1)
    targets[1, :, 2:] = sources[0, 1, 3:] = config.pad_id
    return sources, targets


def reshaped(ids, batches):
    """Ids [A B T] as so many batches."""
    return ids.reshape(batches, -1, ids.shape[-1])


@pytest.mark.long(32)
def test_accumulation_equals_the_large_batch(engine):
    config = small(dropout=0.0)
    source, target = uneven(config)
    found = []
    for batches in (1, 2):
        model, run = trainer(engine, config)
        with uncompiled(engine):
            for _ in range(2):
                result = engine.train_step(
                    run, reshaped(source, batches), reshaped(target, batches))
        found.append((result, engine.export(model)))
    (large, exported), (small_, accumulated) = found
    for name in ("loss", "norm"):
        assert abs(small_[name] / large[name] - 1) < 1e-13
    for name, array in exported.items():
        if not name.endswith(".key.bias"):
            assert relative_error(accumulated[name], array)[0] < 1e-12, name


def test_a_mean_over_batches_would_be_another():
    """The effect that weighing by tokens prevents."""
    engine, config = ports.engine("numpy"), small(dropout=0.0)
    source, target = uneven(config)
    losses = []
    for pairs in ((reshaped(source, 1), reshaped(target, 1)),
                  (source[:1], target[:1]), (source[1:], target[1:])):
        _, run = trainer(engine, config)
        losses.append(engine.train_step(run, *pairs)["loss"])
    assert abs((losses[1] + losses[2]) / 2 / losses[0] - 1) > 1e-3


@pytest.mark.long(12)
def test_padding_alone_moves_nothing(engine):
    config = small()
    model, run = trainer(engine, config)
    before = {name: array.copy()
              for name, array in engine.export(model).items()}
    nothing = [np.full_like(ids[:1], config.pad_id)
               for ids in training_runs.batches(config, 1)]
    with uncompiled(engine):
        found = engine.train_step(run, *nothing)
    assert found["loss"] == 0 and found["norm"] == 0
    for name, array in engine.export(model).items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.long(16)
def test_native_masks_train_too(engine):
    config, settings = small(), TRAINING.replace(masks="native")
    _, run = trainer(engine, config, settings)
    with uncompiled(engine):
        losses = [float(engine.train_step(run, *training_runs.batches(
            config, 1))["loss"]) for _ in range(8)]
    assert np.isfinite(losses).all() and losses[-1] < losses[0]


WRONG_PAIRS = {
    "three axes": (lambda s, t: (s[0], t), "batches"),
    "as many": (lambda s, t: (s[:, :2], t), "as many"),
    "two tokens": (lambda s, t: (s, t[:, :, :1]), "two"),
    "vocabulary": (lambda s, t: (s, t + 99), "vocabulary"),
    "empty": (lambda s, t: (s[:, :, :0], t), "empty"),
}


@pytest.mark.parametrize("how", WRONG_PAIRS)
def test_wrong_pairs_are_refused(how):
    engine, config = ports.engine("numpy"), small()
    _, run = trainer(engine, config)
    change, words = WRONG_PAIRS[how]
    with pytest.raises(InputError, match=words):
        engine.train_step(run, *change(*training_runs.batches(config, 1)))
    assert run.step == 0


# Proof by faults

def test_free_is_not_said_of_anything_else():
    """In lockstep the bias of a key alone may wander."""
    config = small()
    run = lockstep.compared(config, weights.initial_weights(config), {}, 1)
    assert {kind for _, kind, _, _ in run} == set(lockstep.KINDS)
    truth = lockstep.TrainingOracle({"weights": {"a.key.bias": np.ones(3),
                                                "b": np.ones(3)}}, 0.1)
    moved = {"a.key.bias": np.ones(3) + 0.15, "b": np.ones(3)}
    assert truth.compare("weights", moved).verdict != DIVERGENCE
    assert truth._compare_one("weights", "a.key.bias", *[
        array["a.key.bias"] for array in (moved, truth.steps["weights"])],
        truth.steps["weights"]).verdict == FREE
    moved["b"] = moved["b"] + 1e-9
    assert "in b" in truth.compare("weights", moved).reason
    assert "no tensor b" in truth.compare(
        "weights", {"a.key.bias": np.ones(3)}).reason


def test_a_port_that_fails_is_a_divergence(port):
    config = small()

    def broken(old, name):
        def train_step(self, sources, targets):
            raise RuntimeError("it broke")
        return train_step
    with replaced("train", "Trainer.train_step", broken)(port.NAME):
        *_, (_, _, _, found) = lockstep.compared(
            config, weights.initial_weights(config),
            {port.NAME: InProcessPort(port)}, 1)
    assert found[port.NAME].verdict == DIVERGENCE
    assert found[port.NAME].reason == "RuntimeError: it broke"
