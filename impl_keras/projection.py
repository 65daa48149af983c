"""The projection: from vectors back to a score for every token (§3.4)."""

import keras
from keras import ops

from contract.trace import tap


def log_softmax(x):
    """x - log Σ exp(x) over the last axis, shifted so nothing overflows."""
    return ops.log_softmax(x, axis=-1)


def identity(x):
    """x, for a model that ends in logits."""
    return x


OUTPUTS = {"logits": identity, "log_probs": log_softmax}


class Projection(keras.layers.Dense):
    """x W + b, with the kernel stored as [D V]."""

    def __init__(self, d_model, vocab):
        super().__init__(vocab)  # keras: reads d_model off the first input

    def call(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x W + b  (§3.4)
        logits = tap(self, "logits", super().call(x))
        return logits


class TiedProjection(keras.layers.Layer):
    """x Eᵀ, E being the embedding's table; no bias (§3.4, R13)."""

    def __init__(self, embedding):
        super().__init__()
        self.built = True  # keras: nothing of its own to build
        self.embedding = embedding

    def call(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x Eᵀ  (§3.4, R13)
        logits = tap(self, "logits",
                     x @ ops.transpose(self.embedding.table.embeddings))
        return logits
