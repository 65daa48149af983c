"""Token embedding: a row of a table for each token (section 3.4).

The rows have entries of size 1/√d_model and are multiplied by √d_model, to be
as large as the positions that are added to them. The padding token has a row
like any other, unless a dialect keeps it from learning (R9): masks keep it from
being attended to, not its value.
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


def unlearned(config):
    """The row that learns nothing where it is read: padding's, or none (R9)."""
    return None if config.padding_learns else config.pad_id


class TokenEmbedding:
    """Rows of a table, times √d_model or as they are.

    Parameter: ``table`` [V D].
    """

    def __init__(self, config, vocab):
        self.factor = FACTORS[config.embedding_scale](config.d_model)
        self.unlearned = unlearned(config)
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
        if self.unlearned is not None:
            dtable[self.unlearned] = 0
        return g


class TypedEmbedding(TokenEmbedding):
    """Embeddings of tokens that have types, such as BERT's two segments.

    Parameters: ``table`` [V D] and ``types`` [n D].
    """

    def __init__(self, config, vocab):
        super().__init__(config, vocab)
        self.vocab = vocab
        self.types = np.zeros((config.token_types, config.d_model))

    def forward(self, tokens):
        """Look up tokens, int [B T]: i + n · V is token i of type n."""
        embedded, c = super().forward(tokens % self.vocab)
        types = tokens // self.vocab
        c["types"] = (types,)
        # [1] typed [B T D]: embedded + types[token's type]  (R51)
        typed = c["typed"] = embedded + self.types[types]
        return typed, c

    def backward(self, dtyped, c):
        """From dtyped [B T D]: g."""
        # [1'] embedded, types: typed = embedded + types[token's type]
        g = super().backward(dtyped, c)
        (types,), g["typed"] = c["types"], dtyped
        dtypes = g["types"] = np.zeros_like(self.types)
        np.add.at(dtypes, types, dtyped)
        return g


#: By whether tokens have types.
EMBEDDINGS = {False: TokenEmbedding, True: TypedEmbedding}


class TiedEmbedding(TokenEmbedding):
    """A TokenEmbedding that reads another one's table (R13)."""

    def __init__(self, embedding):
        self.factor, self.unlearned = embedding.factor, embedding.unlearned
        self.embedding = embedding

    @property
    def table(self):
        """The other embedding's table, [V D]."""
        return self.embedding.table


class TokenBegin:
    """A target that begins with the embedding of its first token."""

    def forward(self, x, start):
        """Return x [B T D] as it is."""
        return x, {}

    def backward(self, dbegun, c):
        """Return dbegun [B T D] as it is."""
        return dbegun, {}


class ZeroBegin:
    """A target that begins with zeros, as in T2T and Marian (R52)."""

    def forward(self, x, start):
        """x [B T D], zeros at position 0; its first position is start."""
        place = np.arange(start, start + x.shape[1])[:, None]
        return np.where(place > 0, x, 0), {"inputs": (place,)}

    def backward(self, dbegun, c):
        """From dbegun [B T D]: dx and g."""
        (place,) = c["inputs"]
        return np.where(place > 0, dbegun, 0), {}


BEGINS = {"token": TokenBegin, "zero": ZeroBegin}
