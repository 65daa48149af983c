"""Projections of other systems: a matrix of their own, or a bias."""

import mlx.core as mx

from transformer_contract.trace import tap
from impl_mlx.linear import Linear
from impl_mlx.projection import TiedProjection


class Projection(Linear):
    """x W + b, with the kernel stored as [V D]."""

    def __init__(self, d_model, vocab):
        super().__init__(d_model, vocab)

    def __call__(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x W + b  (§3.4)
        logits = tap(self, "logits", super().__call__(x))
        return logits


class ProjectionWithoutBias(Linear):
    """x W, with the kernel stored as [V D]."""

    def __init__(self, d_model, vocab):
        super().__init__(d_model, vocab, bias=False)

    def __call__(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x W
        logits = tap(self, "logits", super().__call__(x))
        return logits


class BiasedTiedProjection(TiedProjection):
    """x Eᵀ + b. Parameter: ``bias`` [V]."""

    def __init__(self, embedding):
        super().__init__(embedding)
        self.bias = mx.zeros(embedding.table.weight.shape[0])

    def __call__(self, x):
        """Map x [B T D] to logits."""
        product = x @ self._embedding.table.weight.mT
        # [1] logits [B T V]: x Eᵀ + b  (R50)
        logits = tap(self, "logits", product + self.bias)
        return logits
