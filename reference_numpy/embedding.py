"""Token embedding: a row of a table for each token (section 3.4).

The rows have entries of size 1/√d_model and are multiplied by √d_model, to be
as large as the positions that are added to them. The padding token has a row
like any other (R9): masks keep it from being attended to, not its value.
"""

import math

import numpy as np


def root(d_model):
    """√d_model, by which the paper multiplies embeddings."""
    return math.sqrt(d_model)


def one(d_model):
    """1, for embeddings as they are."""
    return 1


FACTORS = {"root": root, "none": one}


class TokenEmbedding:
    """Rows of a table, times √d_model or as they are.

    Parameter: ``table`` [V D].
    """

    def __init__(self, config, vocab):
        self.factor = FACTORS[config.embedding_scale](config.d_model)
        self.table = np.zeros((vocab, config.d_model))

    def forward(self, tokens):
        """Look up tokens, int [B T]."""
        c = {"inputs": (tokens,)}
        # [1] embedded [B T D]: E[tokens] · √d_model, or · 1  (§3.4, R8)
        embedded = c["embedded"] = self.table[tokens] * self.factor
        return embedded, c

    def backward(self, dembedded, c):
        """From dembedded [B T D]: g. Tokens have no gradient.

        A row's gradient is the sum over all places where its token stood.
        """
        (tokens,), g = c["inputs"], {"embedded": dembedded}
        # [1'] table: embedded = E[tokens] · √d_model, or · 1
        dtable = g["table"] = np.zeros_like(self.table)
        np.add.at(dtable, tokens, dembedded * self.factor)
        return g


class TiedEmbedding(TokenEmbedding):
    """A TokenEmbedding that reads another one's table (R13)."""

    def __init__(self, embedding):
        self.factor = embedding.factor
        self.embedding = embedding

    @property
    def table(self):
        """The other embedding's table, [V D]."""
        return self.embedding.table
