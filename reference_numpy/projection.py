"""The projection: from vectors back to a score for every token (section 3.4).

Some systems end in logits, some in their log-softmax (R16); the loss is the
same from either, since log-softmax leaves log-probabilities as they are.
"""

import numpy as np

from reference_numpy.linear import Linear


def log_softmax(x):
    """x - log Σ exp(x) over the last axis, shifted so nothing overflows."""
    shifted = x - np.max(x, axis=-1, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))


def identity(x):
    """x, for a model that ends in logits."""
    return x


OUTPUTS = {"logits": identity, "log_probs": log_softmax}


class Projection(Linear):
    """x W + b. Parameters: ``kernel`` [D V] and ``bias`` [V]."""

    def __init__(self, d_model, vocab):
        super().__init__(d_model, vocab)

    def forward(self, x):
        """Map x [B T D] to logits."""
        c = {"inputs": (x,)}
        # [1] logits [B T V]: x W + b  (§3.4)
        logits = c["logits"] = self(x)
        return logits, c


class TiedProjection:
    """x Eᵀ, E being the embedding's table; no bias (§3.4, R13)."""

    def __init__(self, embedding):
        self.embedding = embedding

    def forward(self, x):
        """Map x [B T D] to logits."""
        c = {"inputs": (x,)}
        flat = x.reshape(-1, x.shape[-1]) @ self.embedding.table.T
        # [1] logits [B T V]: x Eᵀ  (§3.4, R13)
        logits = c["logits"] = flat.reshape(*x.shape[:-1], -1)
        return logits, c
