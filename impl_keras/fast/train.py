"""The training step as one compiled function, on TensorFlow."""

import keras
import numpy as np
from keras import ops

from transformer_contract import packing
from transformer_contract.dropping import dropping, places
from impl_keras import parts, random, train
from impl_keras.fast.dropout import draw
from impl_keras.fast.loss import cross_entropy
from impl_keras.fast.packing import OneRow, Packed, packed_vectors
from impl_keras.fast.random import fold_in
from impl_keras.gradients import value_and_gradients
from impl_keras.masks import padding_mask
from impl_keras.parameters import leaves, paths


def loss_and_gradients(model, source, target, drawn, both):
    """The loss of one batch, and its gradient by every weight.

    ``both`` says where tokens of sources and targets are; () if all are kept.
    """
    config, (read, labels) = model.config, (target[:, :-1], target[:, 1:])
    source_mask = padding_mask(source, config.pad_id)
    target_mask = parts.decoder_mask(config)(read, config.pad_id)
    shapes = source.shape, read.shape
    both = ([Packed(*ways, shape) for ways, shape in zip(both, shapes)]
            if both else [*map(OneRow, shapes)])
    drawn = packing.pack_kept(drawn, both)
    labels = both[config.stacks != "encoder"].labels(labels, config.pad_id)

    def loss_of():
        inputs = source, read, source_mask, target_mask
        with dropping(paths(model), drawn):
            output = model.project(packed_vectors(model, *inputs, both))
        return cross_entropy(output, labels, config.pad_id,
                             config.label_smoothing, config.smoothing)

    return value_and_gradients(
        loss_of, [weight.get() for weight in leaves(model)])


def clip_by_global_norm(gradients, limit):
    """See impl_keras.optimizer; the compiled step decides whether to clip."""
    norm = ops.sqrt(sum(ops.sum(g * g) for g in gradients))
    if limit:
        scale = ops.where(norm > limit, limit / norm, ops.ones_like(norm))
        gradients = [g * scale for g in gradients]
    return gradients, norm


class Trainer(train.Trainer):
    """See impl_keras.train. Moments are variables, which a step changes."""

    def __init__(self, model, training):
        super().__init__(model, training)
        for moments in self.m, self.v:
            moments[:] = [keras.Variable(
                moment, dtype=keras.backend.standardize_dtype(moment.dtype),
                trainable=False) for moment in moments]
        self.key = random.fold_in(random.key(training.seed), "dropout")
        self.compiled = self._compute
        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf
            self.compiled = tf.function(self._compute, jit_compile=True)

    def draw(self, key, shapes):
        """See impl_keras.train; what is dropped is drawn together."""
        return draw(key, shapes, self.model.config.dropout,
                    self.training.masks == "native")

    def train_step(self, sources, targets):
        """Make one step on A batches, as if they were one (R30)."""
        self.step += 1
        settings = self.optimizer.settings(self.step)
        both = packing.compiled(self.model.config, *map(
            ops.convert_to_numpy, (sources, targets[:, :, 1:]))) or ()
        loss, norm = self.compiled(
            sources, targets, keras.tree.map_structure(
                ops.convert_to_tensor, both),
            ops.convert_to_tensor(np.int32(self.step)),
            ops.convert_to_tensor(np.asarray(settings, self.m[0].dtype)))
        return loss, norm, settings[0]

    def _compute(self, sources, targets, both, step, settings):
        training, pad_id = self.training, self.model.config.pad_id
        key = fold_in(self.key, step)
        counts = ops.sum(targets[:, :, 1:] != pad_id, axis=(1, 2))
        shares = (ops.cast(counts, settings.dtype) / ops.cast(
            ops.maximum(ops.sum(counts), 1), settings.dtype))

        shapes = places(
            self.model.config, *sources.shape[1:], targets.shape[2] - 1)

        def accumulate(total, batch):
            source, target, both, share, i = batch
            drawn = self.draw(fold_in(key, i), shapes)
            loss, gradients = loss_and_gradients(
                self.model, source, target, drawn, both)
            return [a + share * b for a, b in zip(
                total, [loss, *gradients])], None

        if len(sources) == 1:  # a sum would be a second array of each
            loss, gradients = loss_and_gradients(
                self.model, sources[0], targets[0],
                self.draw(fold_in(key, 0), shapes),
                keras.tree.map_structure(lambda array: array[0], both))
        else:
            (loss, *gradients), _ = ops.scan(
                accumulate, [ops.zeros_like(shares[0]),
                             *(ops.zeros_like(m.value) for m in self.m)],
                (sources, targets, both, shares,
                 ops.arange(len(sources), dtype="int32")))
        gradients, norm = clip_by_global_norm(gradients, training.clip_norm)
        settings = [settings[i] for i in range(3)]
        for old, gradient, m, v in zip(
                leaves(self.model), gradients, self.m, self.v):
            weight = old.get()
            new = self.optimizer.update(
                weight.value, gradient, m.value, v.value, *settings)
            for variable, value in zip((weight, m, v), new):
                variable.assign(value)
        return loss, norm
