"""The reference's fast training step against its plain one."""

import numpy as np
import pytest

from transformer_contract.training import TrainingConfig
from transformer_contract.weights import probe_weights
from parity.check import cases, training_runs
from parity.numerics import zero_gradients
from parity.numerics.comparator import MATCH, ZERO, compare
from reference_numpy import engine
from reference_numpy.fast import engine as fast_engine
from reference_numpy.fast.packing import share_out

#: Sums of the same numbers in another order.
LIMIT = 1e-12
STEPS = 3


def pair(config, training, threads):
    """The engine's trainer and a fast one, of equal models."""
    plain, fast = (
        form.trainer(form.build(
            "transformer", config, probe_weights(config)), training)
        for form in (engine, fast_engine))
    fast.threads = threads
    return plain, fast


def assert_equal_step(plain, fast, sources, targets):
    """Make a step with both, and compare all that it found and left."""
    (truth, found), (here, there) = (
        [function(trainer) for trainer in (plain, fast)] for function in (
            lambda trainer: engine.train_step(trainer, sources, targets),
            lambda trainer: {**engine.export(trainer.model),
                             **engine.moments(trainer)}))
    truth, found = {**truth, **here}, {**found, **there}
    assert truth.keys() == found.keys()
    for name, expected in truth.items():
        positions = plain.model.config.positions
        if zero_gradients.is_zero(name, positions) and not name.startswith(
                ("m.", "v.")):
            continue  # Adam moves it by what is rounding.
        scale = zero_gradients.scale(name, truth, positions)
        difference = compare(found[name], expected, LIMIT, zero_scale=scale)
        assert difference.verdict in (MATCH, ZERO), (name, difference)


@pytest.mark.long(32)
@pytest.mark.parametrize("threads", (1, 2))
@pytest.mark.parametrize("preset", ("lesson", "vaswani2017_base"))
def test_equal_steps(preset, threads):
    """With dropout, padding, smoothing, clipping and two batches a step.

    Every two words of two choices are asked of all fast forms, this one too,
    in ``test_every_run_is_the_same``.
    """
    config = training_runs.configured(cases.test_size(preset))
    trainers = pair(config, training_runs.TRAINING, threads)
    for step in range(1, STEPS + 1):
        assert_equal_step(*trainers, *training_runs.batches(config, step))


@pytest.mark.parametrize("training", (
    TrainingConfig(warmup_steps=400),
    TrainingConfig(optimizer="adamw", schedule="constant", learning_rate=1e-3,
                   weight_decay=0.1),
), ids=("adam", "adamw"))
def test_equal_optimizers(training):
    """Without clipping, one batch a step, whose lengths change."""
    config = training_runs.configured(cases.test_size("vaswani2017_base"))
    trainers = pair(config, training, threads=2)
    for step in range(1, STEPS + 1):
        sources, targets = training_runs.batches(config, step)
        assert_equal_step(*trainers, sources[:1, :, :9 + step],
                          targets[:1, :, :step - 5])


def test_threads_do_not_change_a_bit():
    """Whichever thread is through first, the sums are made in one order."""
    config = training_runs.configured(cases.test_size("vaswani2017_base"))
    runs = [pair(config, training_runs.TRAINING, threads=4)[1]
            for _ in range(2)]
    for step in range(1, STEPS + 1):
        first, second = (engine.train_step(
            run, *training_runs.batches(config, step)) for run in runs)
        assert first == second
    first, second = (engine.export(run.model) for run in runs)
    for name in first:
        assert np.array_equal(first[name], second[name]), name


def test_more_threads_than_rows():
    """Rows are shared out without a share that has none."""
    assert share_out(2, 3) == [slice(0, 1), slice(1, 2)]
    assert share_out(5, 2) == [slice(0, 2), slice(2, 5)]
    config = training_runs.configured(cases.test_size("notebook"))
    trainers = pair(config, training_runs.TRAINING, threads=9)
    assert_equal_step(*trainers, *training_runs.batches(config, 1))
