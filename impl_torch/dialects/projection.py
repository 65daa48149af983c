"""Projections of other systems: a matrix of their own, or a bias."""

import torch
from torch import nn

from transformer_contract.trace import tap
from impl_torch.linear import Linear
from impl_torch.projection import TiedProjection


class Projection(Linear):
    """x W + b, with the kernel stored as [V D]."""

    def __init__(self, d_model, vocab):
        super().__init__(d_model, vocab)

    def forward(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x W + b  (§3.4)
        logits = tap(self, "logits", super().forward(x))
        return logits


class ProjectionWithoutBias(Linear):
    """x W, with the kernel stored as [V D]."""

    def __init__(self, d_model, vocab):
        super().__init__(d_model, vocab, bias=False)

    def forward(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x W
        logits = tap(self, "logits", super().forward(x))
        return logits


class BiasedTiedProjection(TiedProjection):
    """x Eᵀ + b. Parameter: ``bias`` [V]."""

    def __init__(self, embedding):
        super().__init__(embedding)
        self.bias = nn.Parameter(torch.zeros(embedding.table.num_embeddings))

    def forward(self, x):
        """Map x [B T D] to logits."""
        product = x @ self.embedding.table.weight.mT
        # [1] logits [B T V]: x Eᵀ + b  (R50)
        logits = tap(self, "logits", product + self.bias)
        return logits
