"""Token embedding, on nn.Embedding."""

import math

from torch import nn

from contract.trace import tap


class TokenEmbedding(nn.Module):
    """Rows of a table, times √d_model."""

    def __init__(self, vocab, d_model):
        super().__init__()
        self.d_model = d_model
        self.table = nn.Embedding(vocab, d_model)

    def forward(self, tokens):
        """Look up tokens, int [B T]."""
        # [1] embedded [B T D]: E[tokens] · √d_model  (§3.4, R8)
        embedded = tap(self, "embedded",
                       self.table(tokens) * math.sqrt(self.d_model))
        return embedded


class TiedEmbedding(TokenEmbedding):
    """A TokenEmbedding that reads another one's table (R13)."""

    def __init__(self, embedding):
        nn.Module.__init__(self)  # torch: no table of its own
        self.d_model = embedding.d_model
        self.table = embedding.table
