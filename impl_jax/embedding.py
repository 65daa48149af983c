"""Token embedding, on nnx.Embed."""

import math

from flax import nnx

from contract.trace import tap


def as_stored(arrays, **_):
    """The table as it is; nnx.Embed casts it to the dtype it was made in."""
    return arrays


def root(d_model):
    """√d_model, by which the paper multiplies embeddings."""
    return math.sqrt(d_model)


def one(d_model):
    """1, for embeddings as they are."""
    return 1


FACTORS = {"root": root, "none": one}


class TokenEmbedding(nnx.Module):
    """Rows of a table, times √d_model or as they are."""

    def __init__(self, config, vocab, *, rngs):
        self.factor = FACTORS[config.embedding_scale](config.d_model)
        self.table = nnx.Embed(
            vocab, config.d_model,
            promote_dtype=as_stored,  # nnx: else loaded float64 turns float32
            rngs=rngs)

    def __call__(self, tokens):
        """Look up tokens, int [B T]."""
        # [1] embedded [B T D]: E[tokens] · √d_model, or · 1  (§3.4, R8)
        embedded = tap(self, "embedded",
                       self.table(tokens) * self.factor)
        return embedded


class TiedEmbedding(TokenEmbedding):
    """A TokenEmbedding that reads another one's table (R13)."""

    def __init__(self, embedding):
        self.factor = embedding.factor
        self.table = embedding.table
