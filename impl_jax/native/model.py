"""The Transformer of NNX's own layers, by their documentation.

One call of nnx.MultiHeadAttention decides what attention.py writes out:

- A mask is True where a query may attend, as here. A query that may attend to
  nothing gets the mean of all values; here it gets 0 (R2).
- Scores, softmax and mean are one call. Without dropout it is
  jax.nn.dot_product_attention, whose softmax is float32 in any dtype.
- Kernels are [D H K], and the last one [H K D]: heads have an axis.
- Dropout on weights would be one mask for all heads; ``broadcast_dropout`` says
  that it is not.

nnx.LayerNorm has ε inside the root and divides by D, as the paper's. It takes
the variance as E[x²] - E[x]² unless ``use_fast_variance`` is False.
"""

import math

import jax.numpy as jnp
from flax import nnx

from transformer_contract import checks
from transformer_contract.sinusoids import interleaved_table


def attention(config, **of):
    """Multi-head attention of D features."""
    return nnx.MultiHeadAttention(
        config.n_heads, config.d_model, dropout_rate=config.dropout,
        broadcast_dropout=False, decode=False, **of)


def norm(config, **of):
    """Layer normalisation of D features."""
    return nnx.LayerNorm(config.d_model, epsilon=config.norm_eps,
                         use_fast_variance=False, **of)


def feed_forward(config, **of):
    """Equation 2."""
    return nnx.Sequential(
        nnx.Linear(config.d_model, config.d_ff, **of), nnx.relu,
        nnx.Dropout(config.dropout, rngs=of["rngs"]),
        nnx.Linear(config.d_ff, config.d_model, **of))


class EncoderLayer(nnx.Module):
    """Self-attention and feed-forward: norm(x + f(x)) each."""

    def __init__(self, config, **of):
        self.attention, self.norm1 = attention(config, **of), norm(config, **of)
        self.mlp, self.norm2 = feed_forward(config, **of), norm(config, **of)
        self.dropout = nnx.Dropout(config.dropout, rngs=of["rngs"])

    def __call__(self, x, mask):
        """Map x [B S D]."""
        x = self.norm1(x + self.dropout(self.attention(x, mask=mask)))
        return self.norm2(x + self.dropout(self.mlp(x)))


class DecoderLayer(nnx.Module):
    """Self-attention, cross-attention, feed-forward: norm(x + f(x)) each."""

    def __init__(self, config, **of):
        self.attention, self.norm1 = attention(config, **of), norm(config, **of)
        self.cross, self.norm2 = attention(config, **of), norm(config, **of)
        self.mlp, self.norm3 = feed_forward(config, **of), norm(config, **of)
        self.dropout = nnx.Dropout(config.dropout, rngs=of["rngs"])

    def __call__(self, x, memory, memory_mask, mask):
        """Map x [B T D], reading memory [B S D]."""
        x = self.norm1(x + self.dropout(self.attention(x, mask=mask)))
        x = self.norm2(x + self.dropout(
            self.cross(x, memory, mask=memory_mask)))
        return self.norm3(x + self.dropout(self.mlp(x)))


class Transformer(nnx.Module):
    """Figure 1 of Vaswani et al. 2017; tables are one if config.tied says so.
    """

    def __init__(self, config, *, dtype, rngs):
        of = {"dtype": dtype, "param_dtype": dtype, "rngs": rngs}
        self.config, self.dtype = config, dtype
        self.source = nnx.Embed(config.source_vocab, config.d_model, **of)
        self.target = self.source if config.embeddings_tied else nnx.Embed(
            config.target_vocab, config.d_model, **of)
        self.encoder = nnx.List(
            EncoderLayer(config, **of) for _ in range(config.n_encoder_layers))
        self.decoder = nnx.List(
            DecoderLayer(config, **of) for _ in range(config.n_decoder_layers))
        if not config.output_tied:
            self.output = nnx.Linear(config.d_model, config.target_vocab, **of)
        self.dropout = nnx.Dropout(config.dropout, rngs=rngs)

    def embedded(self, table, ids, max_length):
        """Ids [B T] to what a stack reads, [B T D]."""
        checks.length(ids.shape[1], max_length)
        x = table(ids) * math.sqrt(self.config.d_model)
        positions = interleaved_table(
            max_length, self.config.d_model)[:ids.shape[1]]
        return self.dropout(x + jnp.asarray(positions, x.dtype))

    def encode(self, source, source_mask):
        """Source ids [B S] to the memory, [B S D]."""
        x = self.embedded(self.source, source, self.config.source_length)
        for layer in self.encoder:
            x = layer(x, source_mask)
        return x

    def decode(self, target, memory, source_mask, target_mask, caches=None):
        """Target ids [B T], reading the memory, to vectors [B T D]."""
        x = self.embedded(self.target, target, self.config.max_length)
        for layer in self.decoder:
            x = layer(x, memory, source_mask, target_mask)
        return x

    def project(self, decoded):
        """Vectors [B T D] to logits [B T V]."""
        if self.config.output_tied:
            return self.target.attend(decoded)
        return self.output(decoded)

    def __call__(self, source, target, source_mask, target_mask):
        """Score every next target token: [B T V]."""
        memory = self.encode(source, source_mask)
        return self.project(
            self.decode(target, memory, source_mask, target_mask))
