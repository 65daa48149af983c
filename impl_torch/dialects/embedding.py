"""Embeddings of other systems: not scaled, with types, padding not learned."""

from torch import nn

from transformer_contract.trace import tap
from impl_torch.embedding import TokenEmbedding
from impl_torch.linear import Table


class DialectEmbedding(TokenEmbedding):
    """Rows of a table as they are, or of which padding's learns nothing."""

    def __init__(self, config, vocab):
        super().__init__(config, vocab)
        if config.embedding_scale == "none":
            self.factor = 1
        # The row that gets no gradient from look-ups; None: each does (R9).
        unlearned = None if config.padding_learns else config.pad_id
        self.table = Table(vocab, config.d_model, padding_idx=unlearned)

    def forward(self, tokens):
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

    def forward(self, tokens):
        """Look up tokens, int [B T]: i + n · V is token i of type n."""
        embedded = super().forward(tokens % self.vocab)
        types = tokens // self.vocab
        # [1] typed [B T D]: embedded + types[token's type]  (R51)
        typed = tap(self, "typed", embedded + self.types(types))
        return typed


class TiedDialectEmbedding(DialectEmbedding):
    """A DialectEmbedding that reads another one's table (R13)."""

    def __init__(self, embedding):
        nn.Module.__init__(self)  # torch: no table of its own
        self.factor, self.table = embedding.factor, embedding.table
