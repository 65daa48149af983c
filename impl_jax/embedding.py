"""Token embedding, on nnx.Embed."""

import math

import jax
import jax.numpy as jnp
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


def unlearned(config):
    """The row that learns nothing where it is read: padding's, or none (R9)."""
    return None if config.padding_learns else config.pad_id


class Table(nnx.Embed):
    """Rows of a table, of which one may learn nothing where it is read."""

    def __init__(self, vocab, d_model, unlearned, *, rngs):
        super().__init__(
            vocab, d_model,
            promote_dtype=as_stored,  # nnx: else loaded float64 turns float32
            rngs=rngs)
        self.unlearned = unlearned

    def __call__(self, tokens):
        """Rows for tokens, int [B T]."""
        rows = super().__call__(tokens)
        if self.unlearned is None:
            return rows
        return jnp.where((tokens == self.unlearned)[..., None],
                         jax.lax.stop_gradient(rows), rows)


class TokenEmbedding(nnx.Module):
    """Rows of a table, times √d_model or as they are."""

    def __init__(self, config, vocab, *, rngs):
        self.factor = FACTORS[config.embedding_scale](config.d_model)
        self.table = Table(
            vocab, config.d_model, unlearned(config), rngs=rngs)

    def __call__(self, tokens):
        """Look up tokens, int [B T]."""
        # [1] embedded [B T D]: E[tokens] · √d_model, or · 1  (§3.4, R8)
        embedded = tap(self, "embedded",
                       self.table(tokens) * self.factor)
        return embedded


class TypedEmbedding(TokenEmbedding):
    """Embeddings of tokens that have types, such as BERT's two segments."""

    def __init__(self, config, vocab, *, rngs):
        super().__init__(config, vocab, rngs=rngs)
        self.vocab = vocab
        self.types = nnx.Embed(
            config.token_types, config.d_model,
            promote_dtype=as_stored,  # nnx: as above
            rngs=rngs)

    def __call__(self, tokens):
        """Look up tokens, int [B T]: i + n · V is token i of type n."""
        embedded = super().__call__(tokens % self.vocab)
        types = tokens // self.vocab
        # [1] typed [B T D]: embedded + types[token's type]  (R51)
        typed = tap(self, "typed", embedded + self.types(types))
        return typed


#: By whether tokens have types.
EMBEDDINGS = {False: TokenEmbedding, True: TypedEmbedding}


class TiedEmbedding(TokenEmbedding):
    """A TokenEmbedding that reads another one's table (R13)."""

    def __init__(self, embedding):
        self.factor = embedding.factor
        self.table = embedding.table


class TokenBegin(nnx.Module):
    """A target that begins with the embedding of its first token."""

    def __call__(self, x, start):
        """Return x [B T D] as it is."""
        return x


class ZeroBegin(nnx.Module):
    """A target that begins with zeros, as in T2T and Marian (R52)."""

    def __call__(self, x, start):
        """x [B T D], zeros at position 0; its first position is start."""
        place = jnp.arange(start, start + x.shape[1])[:, None]
        return jnp.where(place > 0, x, 0)


BEGINS = {"token": TokenBegin, "zero": ZeroBegin}
