"""The training step of train.py as one compiled function.

A step is given the arrays that it replaces, so that the new ones reuse their
memory.
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from transformer_contract import packing
from transformer_contract.dropping import dropping, places
from impl_jax import parts, random, train
from impl_jax.fast.dropout import draw
from impl_jax.fast.loss import cross_entropy
from impl_jax.fast.packing import Packed, packed_vectors
from impl_jax.fast.random import fold_in
from impl_jax.fast.split import put, split
from impl_jax.masks import padding_mask
from impl_jax.optimizer import clip_by_global_norm
from impl_jax.parameters import leaves, paths


def loss_and_gradients(model, source, target, drawn, both):
    """The loss of one batch, and its gradient by every weight.

    ``both`` says how sources and targets are packed; None if they are not.
    """
    config, (read, labels) = model.config, (target[:, :-1], target[:, 1:])
    source_mask = padding_mask(source, config.pad_id)
    target_mask = parts.decoder_mask(config)(read, config.pad_id)
    graph, weights, rest = nnx.split(model, nnx.Param, ...)
    if both:
        both = [Packed(*ways, ids.shape)
                for ways, ids in zip(both, (source, read))]
        drawn = packing.pack_kept(drawn, both)
        labels = both[config.stacks != "encoder"].labels(
            labels, config.pad_id)

    def loss_of(weights):
        model = nnx.merge(graph, weights, rest)
        inputs = source, read, source_mask, target_mask
        with dropping(paths(model), drawn):
            output = model(*inputs) if not both else model.project(
                packed_vectors(model, *inputs, both))
        return cross_entropy(output, labels, config.pad_id,
                             config.label_smoothing, config.smoothing)

    loss, g = jax.value_and_grad(loss_of)(weights)
    return loss, [
        weight.get() for weight in leaves(nnx.merge(graph, g, rest))]


class Trainer(train.Trainer):
    """See impl_jax.train."""

    def __init__(self, model, training):
        super().__init__(model, training)
        self.graph, _, self.rest = split(model, nnx.Param, ...)
        self.key = random.fold_in(random.key(training.seed), "dropout")
        self.compiled = jax.jit(self._compute, donate_argnums=(0, 1, 2))

    def draw(self, key, shapes):
        """See impl_jax.train; what is dropped is drawn together."""
        return draw(key, shapes, self.model.config.dropout,
                    self.training.masks == "native")

    def train_step(self, sources, targets):
        """Make one step on A batches, as if they were one (R30)."""
        self.step += 1
        settings = self.optimizer.settings(self.step)
        both = packing.compiled(self.model.config, *map(
            np.asarray, (sources, targets[:, :, 1:]))) if len(
                sources.devices()) == 1 else None
        _, weights, _ = split(self.model, nnx.Param, ...)
        weights, self.m, self.v, loss, norm = self.compiled(
            weights, self.m, self.v, sources,
            targets, both, np.uint32(self.step),
            np.asarray(settings, self.m[0].dtype))
        put(self.model, weights, nnx.Param, ...)
        return loss, norm, settings[0]

    def _compute(
            self, weights, m, v, sources, targets, both, step, settings):
        model = self.graph.merge(weights, self.rest)
        training = self.training
        key = fold_in(self.key, step)
        counts = jnp.sum(
            targets[:, :, 1:] != model.config.pad_id, axis=(1, 2))
        shares = (counts / jnp.maximum(counts.sum(), 1)).astype(m[0].dtype)

        shapes = places(
            model.config, *sources.shape[1:], targets.shape[2] - 1)

        def accumulate(total, batch):
            source, target, both, share, i = batch
            drawn = self.draw(fold_in(key, i), shapes)
            one = loss_and_gradients(model, source, target, drawn, both)
            return jax.tree.map(
                lambda a, b: a + share * b, total, one), None

        if len(sources) == 1:  # a sum would be a second array of each
            loss, gradients = loss_and_gradients(
                model, sources[0], targets[0],
                self.draw(fold_in(key, 0), shapes),
                jax.tree.map(lambda array: array[0], both))
        else:
            (loss, gradients), _ = jax.lax.scan(
                accumulate, (jnp.zeros_like(shares[0]),
                             [jnp.zeros_like(array) for array in m]),
                (sources, targets, both, shares,
                 jnp.arange(len(sources))))
        gradients, norm = clip_by_global_norm(gradients, training.clip_norm)
        for i, old in enumerate(leaves(model)):
            weight, m[i], v[i] = self.optimizer.update(
                old.get(), gradients[i], m[i], v[i], *settings)
            old.set(weight)
        weights = jax.tree.leaves(nnx.state(model, nnx.Param))
        return weights, m, v, loss, norm
