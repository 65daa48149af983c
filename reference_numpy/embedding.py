"""Token embedding: a row of a table for each token (section 3.4).

    embedded = E[token] · √d_model

The rows have entries of size 1/√d_model, and so become as large as the
positions that are added to them. Padding has a row like any other token;
masks, not a zero row, hide it (R9).
"""

import math

import numpy as np

from reference_numpy.linear import uniform_rows


class TokenEmbedding:
    """Rows of a table, times √d_model. Parameter: ``table`` [V D]."""

    def __init__(self, config, vocab):
        self.factor = math.sqrt(config.d_model)
        self.table = uniform_rows(vocab, config.d_model)

    def forward(self, tokens):
        """Look up tokens, int [B T]; c keeps each step, by its name."""
        c = {"inputs": (tokens,)}
        # [1] embedded [B T D]: E[tokens] · √d_model  (§3.4, R8)
        embedded = c["embedded"] = self.table[tokens] * self.factor
        return embedded, c

    def backward(self, dembedded, c):
        """From dembedded [B T D]: g, by step and parameter; none by tokens.

        A row's gradient is the sum over all places where its token stood.
        """
        (tokens,), g = c["inputs"], {"embedded": dembedded}
        # [1'] table: embedded = E[tokens] · √d_model
        dtable = g["table"] = np.zeros_like(self.table)
        np.add.at(dtable, tokens, dembedded * self.factor)
        return g


class TiedEmbedding(TokenEmbedding):
    """A TokenEmbedding that reads another one's table (§3.4, R13)."""

    def __init__(self, embedding):
        self.factor, self.embedding = embedding.factor, embedding

    @property
    def table(self):
        """The other embedding's table, [V D]."""
        return self.embedding.table
