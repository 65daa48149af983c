"""Embeddings of other systems: not scaled, with types, padding not learned."""

from keras import ops

from transformer_contract.trace import tap
from impl_keras.embedding import TokenEmbedding
from impl_keras.whole import Layer, table


class DialectEmbedding(TokenEmbedding):
    """Rows of a table as they are, or of which padding's learns nothing."""

    def __init__(self, config, vocab):
        super().__init__(config, vocab)
        if config.embedding_scale == "none":
            self.factor = 1
        #: The row that gets no gradient from look-ups; None: each does (R9).
        self.unlearned = None if config.padding_learns else config.pad_id

    def rows(self, tokens):
        """The table's rows of tokens, int [B T]: [B T D]."""
        rows = self.table(tokens)
        if self.unlearned is None:
            return rows
        return ops.where((tokens == self.unlearned)[..., None],
                         ops.stop_gradient(rows), rows)

    def call(self, tokens):
        """Look up tokens, int [B T]."""
        # [1] embedded [B T D]: E[tokens] · factor, √d_model or 1  (R8)
        embedded = tap(self, "embedded", self.rows(tokens) * self.factor)
        return embedded


class TypedEmbedding(DialectEmbedding):
    """Embeddings of tokens that have types, such as BERT's two segments."""

    def __init__(self, config, vocab):
        super().__init__(config, vocab)
        self.vocab = vocab
        self.types = table(config.token_types, config.d_model)

    def call(self, tokens):
        """Look up tokens, int [B T]: i + n · V is token i of type n."""
        embedded = super().call(tokens % self.vocab)
        types = tokens // self.vocab
        # [1] typed [B T D]: embedded + types[token's type]  (R51)
        typed = tap(self, "typed", embedded + self.types(types))
        return typed


class TiedDialectEmbedding(DialectEmbedding):
    """A DialectEmbedding that reads another one's table (R13)."""

    def __init__(self, embedding):
        Layer.__init__(self)  # keras: no table of its own
        self.factor, self.unlearned = embedding.factor, embedding.unlearned
        self.table = embedding.table
