"""The projection: from vectors back to a score for every token (§3.4)."""

import jax
from flax import nnx

from contract.trace import tap


def log_softmax(x):
    """x - log Σ exp(x) over the last axis, shifted so nothing overflows."""
    return jax.nn.log_softmax(x, axis=-1)


def identity(x):
    """x, for a model that ends in logits."""
    return x


OUTPUTS = {"logits": identity, "log_probs": log_softmax}


class Projection(nnx.Linear):
    """x W + b, with the kernel stored as [D V]."""

    def __init__(self, d_model, vocab, *, rngs):
        super().__init__(d_model, vocab, rngs=rngs)

    def __call__(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x W + b  (§3.4)
        logits = tap(self, "logits", super().__call__(x))
        return logits


class TiedProjection(nnx.Module):
    """x Eᵀ, E being the embedding's table; no bias (§3.4, R13)."""

    def __init__(self, embedding):
        self.embedding = embedding

    def __call__(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x Eᵀ  (§3.4, R13)
        logits = tap(self, "logits", x @ self.embedding.table.embedding.mT)
        return logits
