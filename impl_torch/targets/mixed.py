"""The engine in mixed precision: autocast, float32 weights, a loss scale.

Matrices are multiplied in 16 bits, and what torch promotes is float32: norms,
residual sums, the loss, gradients, moments and weights.
"""

import contextlib

import torch

from transformer_contract.batch import (
    check_inputs, check_one_batch, check_pairs)
from transformer_contract.dropping import dropping
from transformer_contract.loss_scale import LossScale
from transformer_contract.scaled_steps import SHARED, scaled_step
from impl_torch import engine, random, train
from impl_torch.engine import drawn, exported, on, to_native, to_numpy
from impl_torch.loss import cross_entropy
from impl_torch.optimizer import clip_by_global_norm
from impl_torch.parameters import home, leaves, paths


def kind(device):
    """What is short: products; a GPU's autocast widens what a softmax reads."""
    return "products; softmax in float32" if device == "cuda" else "products"


def missing(tier, device):
    """Why there is no such tier on a device, in words, or ""."""
    if tier == "tf32" and device != "cuda":
        return "float32 is multiplied in float32 on processors"
    if tier == "bfloat16x3":
        return "torch has no switch for products of three bfloat16"
    return ""


@contextlib.contextmanager
def products(tier):
    """Products as a tier has them, where a device can."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


class MixedEngine:
    """An engine whose models compute in 16 bits from float32 weights.

    Args:
        short: the 16-bit dtype; "" for products(tier) of float32.
        tier: a name of one.
    """

    NAME = engine.NAME
    FUSED = {"gradients"}

    def __init__(self, short, tier):
        self.short, self.tier = short, tier

    def __getattr__(self, name):
        """The engine's own, of what computes nothing in a tier."""
        if name not in SHARED:
            raise AttributeError(name)
        return getattr(engine, name)

    def cast(self, model):
        """Have what follows compute in the tier."""
        if self.short:
            return torch.autocast(home(model), getattr(torch, self.short))
        return products(self.tier)

    def run(self, model, *inputs):
        """Every step of a model by name."""
        with self.cast(model):
            return engine.run(model, *inputs)

    def loss_and_gradients(self, model, inputs, labels, drawn, scale):
        """The loss, and its gradient by every weight, in float32.

        Args:
            inputs: source [B S], target [B T] and their masks, native.
            labels: int [B T].
            drawn: what dropout keeps, by name.
            scale: what the loss is multiplied by, and its gradients divided.
        """
        config = model.config
        with torch.enable_grad(), dropping(paths(model), drawn):
            with self.cast(model):
                output = model(*inputs)
            loss = cross_entropy(output.float(), labels, config.pad_id,
                                 config.label_smoothing, config.smoothing)
        gradients = torch.autograd.grad(
            loss * scale, [weight.get() for weight in leaves(model)])
        return loss.detach(), [gradient / scale for gradient in gradients]

    def gradients(self, model, source, target, source_mask, target_mask,
                  labels, key=None, scale=1024.0):
        """The loss and its gradient by every weight; see the engine's.

        Args:
            scale: of the loss, a power of 2.
        """
        inputs = source, target, source_mask, target_mask
        check_inputs(model.config, *inputs)
        with on(home(model)):
            loss, gradients = self.loss_and_gradients(
                model, [to_native(value, home(model)) for value in inputs],
                to_native(labels, home(model)),
                drawn(model, source, target, key), scale)
        return to_numpy(loss), exported(model, gradients)

    def trainer(self, model, training):
        """A MixedTrainer of a Transformer, at step 0."""
        return MixedTrainer(model, training)

    def train_step(self, trainer, sources, targets):
        """Make one step on one batch [1 B ·]: loss, norm and scale.

        Raises:
            InputError: there are more batches, or the ids do not fit.
        """
        check_pairs(trainer.model.config, sources, targets)
        check_one_batch(sources)
        with on(home(trainer.model)):
            return scaled_step(trainer, self, random, clip_by_global_norm,
                               *sources, *targets)


class MixedTrainer(train.Trainer):
    """See impl_torch.train; a step that overflows changes the scale alone."""

    def __init__(self, model, training):
        self.scale = LossScale()
        super().__init__(model, training)

    def update(self, gradients):
        """Move every weight."""
        self.step += 1
        settings = self.optimizer.settings(self.step)
        for i, old in enumerate(leaves(self.model)):
            weight, self.m[i], self.v[i] = self.optimizer.update(
                old.get().detach(), gradients[i], self.m[i], self.v[i],
                *settings)
            old.set(weight)
