"""Training: from a batch of pairs to new weights (section 5).

Keras has no gradient of its own, so its backend's is asked; on TensorFlow a
whole step is one compiled function.
"""

import keras
import numpy as np
from keras import ops

from contract.dropping import dropping, places
from impl_keras import random
from impl_keras.dropout import draw
from impl_keras.loss import cross_entropy
from impl_keras.masks import causal_mask, padding_mask
from impl_keras.optimizer import OPTIMIZERS, clip_by_global_norm
from impl_keras.parameters import leaves, paths


def _by_tape(loss_of, variables):
    import tensorflow as tf

    def watch(name, value):
        tape.watch(value)
        return value

    with tf.GradientTape() as tape:
        loss, steps = loss_of(watch)
    by_weight, by_step = tape.gradient(
        loss, ([variable.value for variable in variables], steps))
    return loss, [tf.convert_to_tensor(g) for g in by_weight], by_step


def _by_autograd(loss_of, variables):
    import torch

    def watch(name, value):
        return value if value.requires_grad else value.requires_grad_()

    loss, steps = loss_of(watch)
    found = torch.autograd.grad(loss, [
        *(variable.value for variable in variables), *steps.values()])
    return (loss, found[:len(variables)],
            dict(zip(steps, found[len(variables):])))


def _by_trace(loss_of, variables):
    import jax

    def loss_at(values, zeros):
        def watch(name, value):
            return value + zeros[name]
        with keras.StatelessScope(zip(variables, values)):
            return loss_of(watch)[0]

    _, steps = loss_of(None)
    zeros = {name: ops.zeros_like(value) for name, value in steps.items()}
    loss, (by_weight, by_step) = jax.value_and_grad(
        loss_at, argnums=(0, 1))([v.value for v in variables], zeros)
    return loss, by_weight, {name: by_step[name] for name in steps}


#: Backend -> what turns loss_of(watch), the loss and the steps on the way to
#: it, into the loss, its gradients by variables and those by steps.
GRADIENTS = {"tensorflow": _by_tape, "torch": _by_autograd, "jax": _by_trace}


def loss_and_gradients(model, source, target, key, native):
    """The loss of one batch, and its gradient by every weight, a list."""
    config = model.config
    read, labels = target[:, :-1], target[:, 1:]
    drawn = draw(key, places(config, *source.shape, read.shape[1]),
                 config.dropout, native)
    source_mask = padding_mask(source, config.pad_id)
    target_mask = (padding_mask(read, config.pad_id)
                   & causal_mask(read.shape[1]))

    def loss_of(watch):
        with dropping(paths(model), drawn):
            output = model(source, read, source_mask, target_mask)
        return cross_entropy(output, labels, config.pad_id,
                             config.label_smoothing, config.smoothing), {}

    loss, gradients, _ = GRADIENTS[keras.backend.backend()](
        loss_of, [weight for _, weight, _ in leaves(model)])
    return loss, gradients


class Trainer:
    """A model, its optimiser's moments, and how many steps were made."""

    def __init__(self, model, training):
        self.model, self.training, self.step = model, training, 0
        self.optimizer = OPTIMIZERS[training.optimizer](
            training, model.config.d_model)
        self.m, self.v = ([keras.Variable(ops.zeros_like(weight),
                                          dtype=weight.dtype, trainable=False)
                           for _, weight, _ in leaves(model)]
                          for _ in range(2))
        self.compiled = self._compute
        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf
            self.compiled = tf.function(self._compute, jit_compile=XLA)

    def train_step(self, sources, targets):
        """Make one step on A batches, as if they were one (R30)."""
        self.step += 1
        training, pad_id = self.training, self.model.config.pad_id
        counts = (targets[:, :, 1:] != pad_id).sum(axis=(1, 2))
        shares = counts / max(counts.sum(), 1)
        settings, dtype = self.optimizer.settings(self.step), self.m[0].dtype
        loss, norm = self.compiled(
            ops.convert_to_tensor(sources), ops.convert_to_tensor(targets),
            ops.convert_to_tensor(shares.astype(dtype)),
            ops.convert_to_tensor(np.int32(self.step)),
            ops.convert_to_tensor(np.asarray(settings, dtype)))
        return loss, norm, settings[0]

    def _compute(self, sources, targets, shares, step, settings):
        key = random.fold_in(random.fold_in(
            random.key(self.training.seed), "dropout"), step)

        def accumulate(total, batch):
            source, target, share, i = batch
            loss, gradients = loss_and_gradients(
                self.model, source, target, random.fold_in(key, i),
                self.training.masks == "native")
            return [a + share * b for a, b in zip(
                total, [loss, *gradients])], None

        (loss, *gradients), _ = ops.scan(
            accumulate, [ops.zeros_like(shares[0]),
                         *(ops.zeros_like(m.value) for m in self.m)],
            (sources, targets, shares,
             ops.arange(len(sources), dtype="int32")))
        gradients, norm = clip_by_global_norm(
            gradients, self.training.clip_norm)
        settings = [settings[i] for i in range(3)]
        for (_, weight, _), gradient, m, v in zip(
                leaves(self.model), gradients, self.m, self.v):
            new = self.optimizer.update(
                weight.value, gradient, m.value, v.value, *settings)
            for variable, value in zip((weight, m, v), new):
                variable.assign(value)
        return loss, norm


#: Whether TensorFlow compiles a step with XLA.
XLA = True
