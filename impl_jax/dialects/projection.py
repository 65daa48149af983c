"""Projections of other systems: a matrix of their own, or a bias."""

import jax.numpy as jnp
from flax import nnx

from transformer_contract.trace import tap
from impl_jax.linear import Linear
from impl_jax.projection import TiedProjection


class Projection(Linear):
    """x W + b, with the kernel stored as [D V]."""

    def __init__(self, d_model, vocab, *, rngs):
        super().__init__(d_model, vocab, use_bias=True, rngs=rngs)

    def __call__(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x W + b  (§3.4)
        logits = tap(self, "logits", super().__call__(x))
        return logits


class ProjectionWithoutBias(Linear):
    """x W, with the kernel stored as [D V]."""

    def __init__(self, d_model, vocab, *, rngs):
        super().__init__(d_model, vocab, use_bias=False, rngs=rngs)

    def __call__(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x W
        logits = tap(self, "logits", super().__call__(x))
        return logits


class BiasedTiedProjection(TiedProjection):
    """x Eᵀ + b. Parameter: ``bias`` [V]."""

    def __init__(self, embedding, *, rngs):
        super().__init__(embedding, rngs=rngs)
        self.bias = nnx.Param(jnp.zeros(
            embedding.table.num_embeddings, jnp.float32))

    def __call__(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x Eᵀ + b  (R50)
        logits = tap(self, "logits",
                     x @ self.embedding.table.embedding.mT + self.bias)
        return logits
