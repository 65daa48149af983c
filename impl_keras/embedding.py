"""Token embedding, on keras.layers.Embedding."""

import math

import keras
from keras import ops

from contract.trace import tap


def root(d_model):
    """√d_model, by which the paper multiplies embeddings."""
    return math.sqrt(d_model)


def one(d_model):
    """1, for embeddings as they are."""
    return 1


FACTORS = {"root": root, "none": one}


def unlearned(config):
    """The row that learns nothing where it is read: padding's, or none (R9)."""
    return None if config.padding_learns else config.pad_id


class Table(keras.layers.Embedding):
    """Rows of a table, of which one may learn nothing where it is read."""

    def __init__(self, vocab, d_model, unlearned):
        super().__init__(vocab, d_model)
        self.unlearned = unlearned

    def call(self, tokens):
        """Rows for tokens, int [B T]."""
        rows = super().call(tokens)
        if self.unlearned is None:
            return rows
        return ops.where((tokens == self.unlearned)[..., None],
                         ops.stop_gradient(rows), rows)


class TokenEmbedding(keras.layers.Layer):
    """Rows of a table, times √d_model or as they are."""

    def __init__(self, config, vocab):
        super().__init__()
        self.built = True  # keras: nothing of its own to build
        self.factor = FACTORS[config.embedding_scale](config.d_model)
        self.table = Table(vocab, config.d_model, unlearned(config))

    def call(self, tokens):
        """Look up tokens, int [B T]."""
        # [1] embedded [B T D]: E[tokens] · √d_model, or · 1  (§3.4, R8)
        embedded = tap(self, "embedded",
                       self.table(tokens) * self.factor)
        return embedded


class TypedEmbedding(TokenEmbedding):
    """Embeddings of tokens that have types, such as BERT's two segments."""

    def __init__(self, config, vocab):
        super().__init__(config, vocab)
        self.vocab = vocab
        self.types = keras.layers.Embedding(
            config.token_types, config.d_model)

    def call(self, tokens):
        """Look up tokens, int [B T]: i + n · V is token i of type n."""
        embedded = super().call(tokens % self.vocab)
        types = tokens // self.vocab
        # [1] typed [B T D]: embedded + types[token's type]  (R51)
        typed = tap(self, "typed", embedded + self.types(types))
        return typed


#: By whether tokens have types.
EMBEDDINGS = {False: TokenEmbedding, True: TypedEmbedding}


class TiedEmbedding(TokenEmbedding):
    """A TokenEmbedding that reads another one's table (R13)."""

    def __init__(self, embedding):
        keras.layers.Layer.__init__(self)  # keras: no table of its own
        self.built = True  # keras: nothing of its own to build
        self.factor = embedding.factor
        self.table = embedding.table


class TokenBegin(keras.layers.Layer):
    """A target that begins with the embedding of its first token."""

    def __init__(self):
        super().__init__()
        self.built = True  # keras: nothing of its own to build

    def call(self, x, start):
        """Return x [B T D] as it is."""
        return x


class ZeroBegin(keras.layers.Layer):
    """A target that begins with zeros, as in T2T and Marian (R52)."""

    def __init__(self):
        super().__init__()
        self.built = True  # keras: nothing of its own to build

    def call(self, x, start):
        """x [B T D], zeros at position 0; its first position is start."""
        place = ops.arange(start, start + x.shape[1])[:, None]
        return ops.where(place > 0, x, 0)


BEGINS = {"token": TokenBegin, "zero": ZeroBegin}
