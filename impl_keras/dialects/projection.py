"""Projections of other systems: a matrix of their own, or a bias."""

import keras
from keras import ops

from transformer_contract.trace import tap
from impl_keras.projection import TiedProjection
from impl_keras.whole import glorot


class Projection(keras.layers.Dense):
    """x W + b. Parameters: ``kernel`` [D V] and ``bias`` [V]."""

    def __init__(self, d_model, vocab):
        super().__init__(vocab, kernel_initializer=glorot(d_model, vocab))
        self.build((None, d_model))

    def call(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x W + b  (§3.4)
        logits = tap(self, "logits", super().call(x))
        return logits


class ProjectionWithoutBias(keras.layers.Dense):
    """x W. Parameter: ``kernel`` [D V]."""

    def __init__(self, d_model, vocab):
        super().__init__(vocab, use_bias=False,
                         kernel_initializer=glorot(d_model, vocab))
        self.build((None, d_model))

    def call(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x W
        logits = tap(self, "logits", super().call(x))
        return logits


class BiasedTiedProjection(TiedProjection):
    """x Eᵀ + b. Parameter: ``bias`` [V]."""

    def __init__(self, embedding):
        super().__init__(embedding)
        self.bias = self.add_weight(
            (embedding.table.input_dim,), "zeros", name="bias")

    def call(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x Eᵀ + b  (R50)
        logits = tap(self, "logits", (
            x @ ops.transpose(self.embedding.table.embeddings) + self.bias))
        return logits
