"""Training: from a batch of pairs to new weights (section 5).

A whole step is one compiled function; the arrays that it replaces are handed
to it, so that the new ones take their memory.
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from contract.dropping import dropping, places
from impl_jax import random
from impl_jax.dropout import draw
from impl_jax.loss import cross_entropy
from impl_jax.masks import causal_mask, padding_mask
from impl_jax.optimizer import OPTIMIZERS, clip_by_global_norm
from impl_jax.parameters import paths


def loss_and_gradients(model, source, target, key, native):
    """The loss of one batch, and its gradient by every weight, a state."""
    config = model.config
    read, labels = target[:, :-1], target[:, 1:]
    drawn = draw(key, places(config, *source.shape, read.shape[1]),
                 config.dropout, native)
    source_mask = padding_mask(source, config.pad_id)
    target_mask = (padding_mask(read, config.pad_id)
                   & causal_mask(read.shape[1]))
    graph, weights = nnx.split(model)

    def loss_of(weights):
        traced = nnx.merge(graph, weights)  # nnx: a new object, with new ids
        with dropping(paths(traced), drawn):
            output = traced(source, read, source_mask, target_mask)
        return cross_entropy(output, labels, config.pad_id,
                             config.label_smoothing, config.smoothing)

    return jax.value_and_grad(loss_of)(weights)


class Trainer:
    """A model, its optimiser's moments, and how many steps were made."""

    def __init__(self, model, training):
        self.model, self.training, self.step = model, training, 0
        self.optimizer = OPTIMIZERS[training.optimizer](
            training, model.config.d_model)
        self.graph, weights = nnx.split(model)
        self.m, self.v = (jax.tree.map(jnp.zeros_like, weights)
                          for _ in range(2))
        self.compiled = jax.jit(self._compute, donate_argnums=(0, 1, 2))

    def train_step(self, sources, targets):
        """Make one step on A batches, as if they were one (R30)."""
        self.step += 1
        training, pad_id = self.training, self.model.config.pad_id
        counts = (targets[:, :, 1:] != pad_id).sum(axis=(1, 2))
        shares = counts / max(counts.sum(), 1)
        settings = self.optimizer.settings(self.step)
        weights = nnx.state(self.model)
        dtype = jax.tree.leaves(weights)[0].dtype
        weights, self.m, self.v, loss, norm = self.compiled(
            weights, self.m, self.v, sources, targets,
            np.asarray(shares, dtype), np.uint32(self.step),
            np.asarray(settings, dtype))
        nnx.update(self.model, weights)
        return loss, norm, settings[0]

    def _compute(self, weights, m, v, sources, targets, shares, step,
                 settings):
        model = nnx.merge(self.graph, weights)
        key = random.fold_in(random.fold_in(
            random.key(self.training.seed), "dropout"), step)

        def accumulate(total, batch):
            source, target, share, i = batch
            found = loss_and_gradients(
                model, source, target, random.fold_in(key, i),
                self.training.masks == "native")
            return jax.tree.map(
                lambda a, b: a + share * b, total, found), None

        (loss, gradients), _ = jax.lax.scan(
            accumulate, (jnp.zeros_like(shares[0]),
                         jax.tree.map(jnp.zeros_like, weights)),
            (sources, targets, shares, jnp.arange(len(sources))))
        flat, tree = jax.tree.flatten(gradients)
        flat, norm = clip_by_global_norm(flat, self.training.clip_norm)
        updated = [
            self.optimizer.update(*arrays, *settings) for arrays in zip(
                jax.tree.leaves(weights), flat, jax.tree.leaves(m),
                jax.tree.leaves(v))]
        weights, m, v = (
            jax.tree.unflatten(tree, arrays) for arrays in zip(*updated))
        return weights, m, v, loss, norm
