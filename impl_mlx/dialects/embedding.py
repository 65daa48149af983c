"""Embeddings of other systems: not scaled, with types, padding not learned."""

import mlx.core as mx
import mlx.nn as nn

from transformer_contract.trace import tap
from impl_mlx.embedding import TokenEmbedding
from impl_mlx.linear import Table


class UnlearnedTable(Table):
    """Rows of a table, of which one may learn nothing where it is read."""

    def __init__(self, vocab, d_model, unlearned):
        super().__init__(vocab, d_model)
        self.unlearned = unlearned

    def __call__(self, tokens):
        """Rows for tokens, int [B T]."""
        rows = super().__call__(tokens)
        if self.unlearned is None:
            return rows
        return mx.where((tokens == self.unlearned)[..., None],
                        mx.stop_gradient(rows), rows)


class DialectEmbedding(TokenEmbedding):
    """Rows of a table as they are, or of which padding's learns nothing."""

    def __init__(self, config, vocab):
        super().__init__(config, vocab)
        if config.embedding_scale == "none":
            self.factor = 1
        # The row that gets no gradient from look-ups; None: each does (R9).
        unlearned = None if config.padding_learns else config.pad_id
        self.table = UnlearnedTable(
            vocab, config.d_model, unlearned)

    def __call__(self, tokens):
        """Look up tokens, int [B T]."""
        # [1] embedded [B T D]: E[tokens] · factor, √d_model or 1  (R8)
        embedded = tap(self, "embedded", self.table(tokens) * self.factor)
        return embedded


class TypedEmbedding(DialectEmbedding):
    """Embeddings of tokens that have types, such as BERT's two segments.

    Parameters: ``table`` [V D] and ``types`` [n D].
    """

    def __init__(self, config, vocab):
        super().__init__(config, vocab)
        self.vocab = vocab
        self.types = Table(config.token_types, config.d_model)

    def __call__(self, tokens):
        """Look up tokens, int [B T]: i + n · V is token i of type n."""
        embedded = super().__call__(tokens % self.vocab)
        types = tokens // self.vocab
        # [1] typed [B T D]: embedded + types[token's type]  (R51)
        typed = tap(self, "typed", embedded + self.types(types))
        return typed


class TiedDialectEmbedding(DialectEmbedding):
    """A DialectEmbedding that reads another one's table (R13)."""

    def __init__(self, embedding):
        nn.Module.__init__(self)  # mlx: no table of its own
        # mlx: what begins with _ is no parameter, so it has one path alone
        self.factor, self._embedding = embedding.factor, embedding

    @property
    def table(self):
        """The other embedding's table."""
        return self._embedding.table
