"""The projection: from vectors back to a score for every token (§3.4).

    logits = x Eᵀ

E is the table of the embeddings. Where it is another matrix, or has a bias:
dialects/projection.py.
"""

import torch
from torch import nn

from transformer_contract.trace import tap


def log_softmax(x):
    """x - log Σ exp(x) over the last axis, shifted so nothing overflows."""
    return torch.log_softmax(x, dim=-1)


class TiedProjection(nn.Module):
    """x Eᵀ, E being the embedding's table; no bias (§3.4, R13)."""

    def __init__(self, embedding):
        super().__init__()
        self.embedding = embedding

    def forward(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x Eᵀ  (§3.4, R13)
        logits = tap(self, "logits", x @ self.embedding.table.weight.mT)
        return logits
