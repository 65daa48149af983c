"""The engine in mixed precision: Keras' mixed policies, and a loss scale.

Layers compute in 16 bits, from variables in float32; the loss, gradients and
moments are float32.
"""

import contextlib

import keras
from keras import ops

from transformer_contract.batch import (
    check_inputs, check_one_batch, check_pairs)
from transformer_contract.dropping import dropping
from transformer_contract.loss_scale import LossScale
from transformer_contract.scaled_steps import SHARED, scaled_step
from impl_keras import engine, random, train
from impl_keras.engine import drawn, home, on, ours, to_native, to_numpy
from impl_keras.gradients import value_and_gradients
from impl_keras.loss import cross_entropy
from impl_keras.optimizer import clip_by_global_norm
from impl_keras.parameters import leaves, paths


def kind(device):
    """What is short: the whole pass."""
    return "whole"


def missing(tier, device):
    """Why there is no such tier on a device, in words, or ""."""
    if keras.backend.backend() == "openvino":
        return "OpenVINO runs nothing step by step, as tiers are compared"
    if tier == "tf32" and device == "cpu":
        return "float32 is multiplied in float32 on processors"
    if tier == "tf32" and keras.backend.backend() != "tensorflow":
        return "Keras has no switch of its own for TF32"
    if tier == "bfloat16x3":
        return "Keras has no switch for products of three bfloat16"
    return ""


@contextlib.contextmanager
def products(tier):
    """Products as a tier has them, where a device can."""
    if tier != "tf32":
        yield
        return
    import tensorflow as tf
    tf.config.experimental.enable_tensor_float_32_execution(True)
    try:
        yield
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(False)


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

    def build(self, component, config, weights, dtype="float32",
              device="cpu"):
        """Make a component of float32 weights; see the engine's."""
        return engine.build(component, config, weights, (
            f"mixed_{self.short}" if self.short else dtype), device)

    def run(self, model, *inputs):
        """Every step of a model by name."""
        with products(self.tier):
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

        def scaled_loss():
            """What is differentiated: the loss [] times its scale."""
            with dropping(paths(model), drawn):
                output = model(*inputs)
            return scale * cross_entropy(
                ops.cast(output, "float32"), labels, config.pad_id,
                config.label_smoothing, config.smoothing)

        loss, gradients = value_and_gradients(
            scaled_loss, [weight.get() for weight in leaves(model)])
        return loss / scale, [gradient / scale for gradient in gradients]

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
        return to_numpy(loss), {
            weight.name: ours(weight, gradient)
            for weight, gradient in zip(leaves(model), gradients)}

    def trainer(self, model, training):
        """A MixedTrainer of a Transformer, at step 0."""
        with on(home(model)):
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
    """See impl_keras.train; a step that overflows changes the scale alone."""

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
