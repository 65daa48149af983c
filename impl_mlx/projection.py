"""The projection: from vectors back to a score for every token (§3.4).

    logits = x Eᵀ

E is the table of the embeddings. Where it is another matrix, or has a bias:
dialects/projection.py.
"""

import mlx.core as mx
import mlx.nn as nn

from transformer_contract.trace import tap
from impl_mlx.exact import exp, sum_of


def log_softmax(x):
    """x - log Σ exp(x) over the last axis, shifted so nothing overflows."""
    # mlx: mx.logsumexp has float32's digits, and mx.sum is a running sum
    shifted = x - mx.stop_gradient(mx.max(x, axis=-1, keepdims=True))
    return shifted - mx.log(sum_of(exp(shifted)))


class TiedProjection(nn.Module):
    """x Eᵀ, E being the embedding's table; no bias (§3.4, R13)."""

    def __init__(self, embedding):
        super().__init__()
        # mlx: what begins with _ is no parameter, so it has one path alone
        self._embedding = embedding

    def __call__(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x Eᵀ  (§3.4, R13)
        logits = tap(self, "logits", x @ self._embedding.table.weight.mT)
        return logits
