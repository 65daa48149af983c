"""The fast forms' losses and their gradients, against the reference's."""

import importlib

import numpy as np
import pytest

from transformer_contract.config import CHOICES
from parity import ports
from parity.check import lockstep, training_runs
from parity.check.workers import InProcessPort
from parity.numerics.comparator import MATCH
from parity_tests.support.engines import usable
from reference_numpy.loss import cross_entropy, cross_entropy_backward

PAD = 3
RANDOM = np.random.default_rng(0)
LOGITS = RANDOM.normal(0, 4, (2, 5, 7))
LABELS = np.array([[1, 3, 0, 6, 2], [3, 3, 4, 3, 5]])


def loss_and_gradient(name, labels, epsilon, smoothing):
    """What a port's fast loss and its gradient by the logits are."""
    module = importlib.import_module(f"{ports.package(name)}.fast.loss")
    if name == "torch":
        from types import SimpleNamespace

        import torch
        logits = torch.from_numpy(LOGITS.reshape(-1, 7).copy())
        flat = torch.from_numpy(labels.flatten())
        count = torch.clamp(torch.sum(flat != PAD), min=1).double()
        loss = module.cross_entropy(logits, flat, count, SimpleNamespace(
            smoothing=smoothing, label_smoothing=epsilon, pad_id=PAD))
        return loss.numpy(), logits.numpy().reshape(LOGITS.shape)
    arguments = PAD, epsilon, smoothing
    if name == "jax":
        import jax
        loss, gradient = jax.value_and_grad(module.cross_entropy)(
            jax.numpy.asarray(LOGITS), jax.numpy.asarray(labels), *arguments)
        return np.asarray(loss), np.asarray(gradient)
    import keras
    from keras import ops

    from impl_keras.gradients import value_and_gradients
    logits = keras.Variable(LOGITS, dtype="float64")
    loss, (gradient,) = value_and_gradients(
        lambda: module.cross_entropy(
            logits * 1,
            ops.convert_to_tensor(labels), *arguments), [logits])
    return ops.convert_to_numpy(loss), ops.convert_to_numpy(gradient)


@pytest.mark.parametrize("labels", [LABELS, np.full_like(LABELS, PAD)],
                         ids=["some padding", "padding alone"])
@pytest.mark.parametrize("smoothing", CHOICES["smoothing"])
@pytest.mark.parametrize("name", ["torch", "jax", "keras"])
def test_a_fast_loss_is_the_reference_s(name, smoothing, labels):
    usable(name, "fast")
    for epsilon in (0.0, 0.2):
        loss, gradient = loss_and_gradient(name, labels, epsilon, smoothing)
        expected = cross_entropy(LOGITS, labels, PAD, epsilon, smoothing)
        np.testing.assert_allclose(loss, expected, rtol=1e-14, atol=0)
        np.testing.assert_allclose(
            gradient, cross_entropy_backward(
                LOGITS, labels, PAD, epsilon, smoothing),
            rtol=1e-12, atol=1e-16)


#: What a fast form works on at once, so small that every loop goes round.
SMALL = {"numpy": {f"reference_numpy.fast.{file}.BLOCK": 16
                   for file in ("rows", "train", "weights")},
         "torch": {"impl_torch.fast.loss.BLOCK": 40,
                   "impl_torch.fast.loss.MOST": 100}}


@pytest.mark.parametrize("tied", ["all", "none"])
@pytest.mark.parametrize("name", SMALL)
def test_blocks_are_added_up(name, tied, monkeypatch):
    engine = usable(name, "fast")
    for place, value in SMALL[name].items():
        monkeypatch.setattr(place, value)
    run = next(run for run in training_runs.varied()
               if run.dtype == "float64" and run.conditions["tied"] == tied
               and run.conditions["norm"] == "layer")
    found = [(step, kind) for step, kind, _, _, differences
             in lockstep.compared_run(run, None, {name: InProcessPort(engine)})
             if differences[name].verdict != MATCH]
    assert not found
