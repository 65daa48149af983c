"""The projection: from vectors back to a score for every token (§3.4)."""

import torch
from torch import nn

from contract.trace import tap


def log_softmax(x):
    """x - log Σ exp(x) over the last axis, shifted so nothing overflows."""
    return torch.log_softmax(x, dim=-1)


def identity(x):
    """x, for a model that ends in logits."""
    return x


OUTPUTS = {"logits": identity, "log_probs": log_softmax}


class Projection(nn.Linear):
    """x W + b, with the kernel stored as [V D]."""

    def __init__(self, d_model, vocab):
        super().__init__(d_model, vocab)

    def forward(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x W + b  (§3.4)
        logits = tap(self, "logits", super().forward(x))
        return logits


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
