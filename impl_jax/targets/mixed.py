"""The engine in mixed precision: 16 bits, from weights in float32.

Weights are rounded for each pass and all of it is short, but the loss; its
gradients, moments and the weights are float32.
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from transformer_contract.batch import (
    check_inputs, check_one_batch, check_pairs)
from transformer_contract.dropping import dropping
from transformer_contract.loss_scale import LossScale
from transformer_contract.scaled_steps import SHARED, scaled_step
from impl_jax import engine, random, train
from impl_jax.engine import drawn, to_native, to_numpy
from impl_jax.loss import cross_entropy
from impl_jax.optimizer import clip_by_global_norm
from impl_jax.parameters import home, leaves, paths

#: Our names of tiers -> JAX's names of products.
PRODUCTS = {"tf32": "tensorfloat32", "bfloat16x3": "BF16_BF16_F32_X3"}


def kind(device):
    """What is short: the whole pass."""
    return "whole"


def missing(tier, device):
    """Why there is no such tier on a device, in words, or ""."""
    if tier in PRODUCTS and device == "cpu":
        return "float32 is multiplied in float32 on processors"
    return ""


def products(tier):
    """Products as a tier has them, where a device can."""
    return jax.default_matmul_precision(PRODUCTS.get(tier, "highest"))


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
        self.compiled = {}

    def __getattr__(self, name):
        """The engine's own, of what computes nothing in a tier."""
        if name not in SHARED:
            raise AttributeError(name)
        return getattr(engine, name)

    def cast(self, weights):
        """Weights as a pass reads them."""
        if not self.short:
            return weights
        return jax.tree.map(lambda x: x.astype(self.short), weights)

    def short_model(self, model):
        """The model of one pass, of rounded weights."""
        graph, weights, rest = nnx.split(model, nnx.Param, ...)
        return nnx.merge(graph, self.cast(weights), rest)

    def run(self, model, *inputs):
        """Every step of a model by name."""
        with products(self.tier):
            return engine.run(self.short_model(model), *inputs)

    def loss_and_gradients(self, model, inputs, labels, drawn, scale):
        """The loss, and its gradient by every weight, in float32.

        Args:
            inputs: source [B S], target [B T] and their masks, native.
            labels: int [B T].
            drawn: what dropout keeps, by name.
            scale: what the loss is multiplied by, and its gradients divided.
        """
        graph, weights, rest = nnx.split(model, nnx.Param, ...)
        if (graph, model.config) not in self.compiled:
            self.compiled[graph, model.config] = jax.jit(jax.value_and_grad(
                self.scaled_loss(graph, rest, model.config), has_aux=True))
        (_, loss), gradients = self.compiled[graph, model.config](
            weights, inputs, labels, drawn, jnp.float32(scale))
        return loss, [weight.get() / jnp.float32(scale) for weight in leaves(
            nnx.merge(graph, gradients, rest))]

    def scaled_loss(self, graph, rest, config):
        """What is differentiated: the loss times its scale, and the loss."""
        def scaled_loss(weights, inputs, labels, drawn, scale):
            """Both are float32 []; weights are those of nnx.split."""
            model = nnx.merge(graph, self.cast(weights), rest)
            with dropping(paths(model), drawn):
                output = model(*inputs)
            loss = cross_entropy(
                output.astype(jnp.float32), labels, config.pad_id,
                config.label_smoothing, config.smoothing)
            return loss * scale, loss
        return scaled_loss

    def gradients(self, model, source, target, source_mask, target_mask,
                  labels, key=None, scale=1024.0):
        """The loss and its gradient by every weight; see the engine's.

        Args:
            scale: of the loss, a power of 2.
        """
        inputs = source, target, source_mask, target_mask
        check_inputs(model.config, *inputs)
        loss, gradients = self.loss_and_gradients(
            model, [to_native(value, home(model)) for value in inputs],
            to_native(labels, home(model)),
            drawn(model, source, target, key), scale)
        return to_numpy(loss), {
            weight.name: np.ascontiguousarray(to_numpy(gradient))
            for weight, gradient in zip(leaves(model), gradients)}

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
        return scaled_step(trainer, self, random, clip_by_global_norm,
                           *sources, *targets)


class MixedTrainer(train.Trainer):
    """See impl_jax.train; a step that overflows changes the scale alone."""

    def __init__(self, model, training):
        self.scale = LossScale()
        super().__init__(model, training)

    def update(self, gradients):
        """Move every weight."""
        self.step += 1
        settings = self.optimizer.settings(self.step)
        for i, old in enumerate(leaves(self.model)):
            weight, self.m[i], self.v[i] = self.optimizer.update(
                old.get(), gradients[i], self.m[i], self.v[i], *settings)
            old.set(weight)
