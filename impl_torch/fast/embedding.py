"""Embeddings whose gradient has only the rows that were looked up."""

from torch import nn
from torch.nn import functional as F


class Table(nn.Embedding):
    """See torch.nn.Embedding; its gradient is sparse."""

    def forward(self, tokens):
        """Rows for tokens, int [B T]."""
        return F.embedding(tokens, self.weight, self.padding_idx, sparse=True)
