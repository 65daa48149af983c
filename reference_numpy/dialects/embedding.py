"""Embeddings of other systems: not scaled, with types, padding not learned."""

import numpy as np

from reference_numpy.embedding import TokenEmbedding
from reference_numpy.linear import uniform_rows


class DialectEmbedding(TokenEmbedding):
    """Rows of a table as they are, or of which padding's learns nothing."""

    def __init__(self, config, vocab):
        super().__init__(config, vocab)
        if config.embedding_scale == "none":
            self.factor = 1
        #: The row that gets no gradient from look-ups; None: each does (R9).
        self.unlearned = None if config.padding_learns else config.pad_id

    def forward(self, tokens):
        """Look up tokens, int [B T]."""
        c = {"inputs": (tokens,)}
        # [1] embedded [B T D]: E[tokens] · factor, √d_model or 1  (R8)
        embedded = c["embedded"] = self.table[tokens] * self.factor
        return embedded, c

    def backward(self, dembedded, c):
        """From dembedded [B T D]: g."""
        g = super().backward(dembedded, c)
        if self.unlearned is not None:
            g["table"][self.unlearned] = 0
        return g


class TypedEmbedding(DialectEmbedding):
    """Embeddings of tokens that have types, such as BERT's two segments.

    Parameters: ``table`` [V D] and ``types`` [n D].
    """

    def __init__(self, config, vocab):
        super().__init__(config, vocab)
        self.vocab = vocab
        self.types = uniform_rows(config.token_types, config.d_model)

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


class TiedDialectEmbedding(DialectEmbedding):
    """A DialectEmbedding that reads another one's table (R13)."""

    def __init__(self, embedding):
        self.factor, self.unlearned = embedding.factor, embedding.unlearned
        self.embedding = embedding

    @property
    def table(self):
        """The other embedding's table, [V D]."""
        return self.embedding.table
