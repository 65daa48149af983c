"""Token embedding: a row of a table for each token (section 3.4).

    embedded = E[token] · √d_model

Padding has a row like any other token; masks, not a zero row, hide it (R9).
"""

import math

from flax import nnx

from transformer_contract.trace import tap
from impl_jax.linear import Table


class TokenEmbedding(nnx.Module):
    """Rows of a table, times √d_model. Parameter: ``table`` [V D]."""

    def __init__(self, config, vocab, *, rngs):
        self.factor = math.sqrt(config.d_model)
        self.table = Table(vocab, config.d_model, rngs=rngs)

    def __call__(self, tokens):
        """Look up tokens, int [B T]."""
        # [1] embedded [B T D]: E[tokens] · √d_model  (§3.4, R8)
        embedded = tap(self, "embedded", self.table(tokens) * self.factor)
        return embedded


class TiedEmbedding(TokenEmbedding):
    """A TokenEmbedding that reads another one's table (§3.4, R13)."""

    def __init__(self, embedding, *, rngs):
        self.factor, self.table = embedding.factor, embedding.table
