"""Token embedding, on nnx.Embed."""

import math

from flax import nnx

from contract.trace import tap


def as_stored(arrays, **_):
    """The table as it is; nnx.Embed casts it to the dtype it was made in."""
    return arrays


class TokenEmbedding(nnx.Module):
    """Rows of a table, times √d_model."""

    def __init__(self, vocab, d_model, *, rngs):
        self.d_model = d_model
        self.table = nnx.Embed(
            vocab, d_model,
            promote_dtype=as_stored,  # nnx: else loaded float64 turns float32
            rngs=rngs)

    def __call__(self, tokens):
        """Look up tokens, int [B T]."""
        # [1] embedded [B T D]: E[tokens] · √d_model  (§3.4, R8)
        embedded = tap(self, "embedded",
                       self.table(tokens) * math.sqrt(self.d_model))
        return embedded


class TiedEmbedding(TokenEmbedding):
    """A TokenEmbedding that reads another one's table (R13)."""

    def __init__(self, embedding):
        self.d_model = embedding.d_model
        self.table = embedding.table
