"""Token embedding, on keras.layers.Embedding."""

import math

import keras

from contract.trace import tap


class TokenEmbedding(keras.layers.Layer):
    """Rows of a table, times √d_model."""

    def __init__(self, vocab, d_model):
        super().__init__()
        self.built = True  # keras: nothing of its own to build
        self.d_model = d_model
        self.table = keras.layers.Embedding(vocab, d_model)

    def call(self, tokens):
        """Look up tokens, int [B T]."""
        # [1] embedded [B T D]: E[tokens] · √d_model  (§3.4, R8)
        embedded = tap(self, "embedded",
                       self.table(tokens) * math.sqrt(self.d_model))
        return embedded


class TiedEmbedding(TokenEmbedding):
    """A TokenEmbedding that reads another one's table (R13)."""

    def __init__(self, embedding):
        keras.layers.Layer.__init__(self)  # keras: no table of its own
        self.built = True  # keras: nothing of its own to build
        self.d_model = embedding.d_model
        self.table = embedding.table
