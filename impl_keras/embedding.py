"""Token embedding, on keras.layers.Embedding."""

import math

import keras

from contract.trace import tap


def root(d_model):
    """√d_model, by which the paper multiplies embeddings."""
    return math.sqrt(d_model)


def one(d_model):
    """1, for embeddings as they are."""
    return 1


FACTORS = {"root": root, "none": one}


class TokenEmbedding(keras.layers.Layer):
    """Rows of a table, times √d_model or as they are."""

    def __init__(self, config, vocab):
        super().__init__()
        self.built = True  # keras: nothing of its own to build
        self.factor = FACTORS[config.embedding_scale](config.d_model)
        self.table = keras.layers.Embedding(vocab, config.d_model)

    def call(self, tokens):
        """Look up tokens, int [B T]."""
        # [1] embedded [B T D]: E[tokens] · √d_model, or · 1  (§3.4, R8)
        embedded = tap(self, "embedded",
                       self.table(tokens) * self.factor)
        return embedded


class TiedEmbedding(TokenEmbedding):
    """A TokenEmbedding that reads another one's table (R13)."""

    def __init__(self, embedding):
        keras.layers.Layer.__init__(self)  # keras: no table of its own
        self.built = True  # keras: nothing of its own to build
        self.factor = embedding.factor
        self.table = embedding.table
