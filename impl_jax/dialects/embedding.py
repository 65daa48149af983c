"""Embeddings of other systems: not scaled, with types, padding not learned."""

import jax
import jax.numpy as jnp

from transformer_contract.trace import tap
from impl_jax.embedding import TokenEmbedding
from impl_jax.linear import Table


class UnlearnedTable(Table):
    """A Table of which one row gets no gradient from look-ups (R9)."""

    def __init__(self, rows, d_model, unlearned, *, rngs):
        super().__init__(rows, d_model, rngs=rngs)
        self.unlearned = unlearned

    def __call__(self, tokens):
        """Rows for tokens, int [B T]."""
        rows = super().__call__(tokens)
        return jnp.where((tokens == self.unlearned)[..., None],
                         jax.lax.stop_gradient(rows), rows)


class DialectEmbedding(TokenEmbedding):
    """Rows of a table as they are, or of which padding's learns nothing."""

    def __init__(self, config, vocab, *, rngs):
        super().__init__(config, vocab, rngs=rngs)
        if config.embedding_scale == "none":
            self.factor = 1
        if not config.padding_learns:
            self.table = UnlearnedTable(
                vocab, config.d_model, config.pad_id, rngs=rngs)

    def __call__(self, tokens):
        """Look up tokens, int [B T]."""
        # [1] embedded [B T D]: E[tokens] · factor, √d_model or 1  (R8)
        embedded = tap(self, "embedded", self.table(tokens) * self.factor)
        return embedded


class TypedEmbedding(DialectEmbedding):
    """Embeddings of tokens that have types, such as BERT's two segments.

    Parameters: ``table`` [V D] and ``types`` [n D].
    """

    def __init__(self, config, vocab, *, rngs):
        super().__init__(config, vocab, rngs=rngs)
        self.vocab = vocab
        self.types = Table(config.token_types, config.d_model, rngs=rngs)

    def __call__(self, tokens):
        """Look up tokens, int [B T]: i + n · V is token i of type n."""
        embedded = super().__call__(tokens % self.vocab)
        types = tokens // self.vocab
        # [1] typed [B T D]: embedded + types[token's type]  (R51)
        typed = tap(self, "typed", embedded + self.types(types))
        return typed


class TiedDialectEmbedding(DialectEmbedding):
    """A DialectEmbedding that reads another one's table (R13)."""

    def __init__(self, embedding, *, rngs):
        self.factor, self.table = embedding.factor, embedding.table
