"""The Transformer of MLX's own layers, by their documentation (figure 1).

    x = nn.LayerNorm(D)(x + nn.MultiHeadAttention(D, H)(x, x, x, mask))

One call decides what attention.py writes out:

- A mask of booleans is True where a query may attend, as here (R1).
- A query that may attend to nothing gets the mean of all values; here it gets
  0 (R2).
- There are no biases unless ``bias`` is True. nn.TransformerEncoderLayer, and
  so nn.Transformer, cannot say that, nor ε; so layers are written out here.
- Weights are not dropped: only what attention gives is.
- The softmax is mx.fast's, whose exponential is float32's in any dtype.

nn.LayerNorm has ε inside the root, 1e-5 where none is given, and divides the
variance by D, as the paper's. Its root is float32's in any dtype.
"""

import math

import mlx.core as mx
import mlx.nn as nn

from transformer_contract import checks
from impl_mlx.positional import position_table


def attention(config):
    """Multi-head attention of D features."""
    return nn.MultiHeadAttention(config.d_model, config.n_heads, bias=True)


def norm(config):
    """Layer normalisation of D features."""
    return nn.LayerNorm(config.d_model, config.norm_eps)


def feed_forward(config):
    """Equation 2."""
    return nn.Sequential(
        nn.Linear(config.d_model, config.d_ff), nn.ReLU(),
        nn.Dropout(config.dropout), nn.Linear(config.d_ff, config.d_model))


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward: norm(x + f(x)) each."""

    def __init__(self, config):
        super().__init__()
        self.attention, self.norm1 = attention(config), norm(config)
        self.mlp, self.norm2 = feed_forward(config), norm(config)
        self.dropout = nn.Dropout(config.dropout)

    def __call__(self, x, mask):
        """Map x [B S D]."""
        x = self.norm1(x + self.dropout(self.attention(x, x, x, mask)))
        return self.norm2(x + self.dropout(self.mlp(x)))


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention, feed-forward: norm(x + f(x)) each."""

    def __init__(self, config):
        super().__init__()
        self.attention, self.norm1 = attention(config), norm(config)
        self.cross, self.norm2 = attention(config), norm(config)
        self.mlp, self.norm3 = feed_forward(config), norm(config)
        self.dropout = nn.Dropout(config.dropout)

    def __call__(self, x, memory, memory_mask, mask):
        """Map x [B T D], reading memory [B S D]."""
        x = self.norm1(x + self.dropout(self.attention(x, x, x, mask)))
        x = self.norm2(x + self.dropout(
            self.cross(x, memory, memory, memory_mask)))
        return self.norm3(x + self.dropout(self.mlp(x)))


class Transformer(nn.Module):
    """Figure 1 of Vaswani et al. 2017; tables are one if config.tied says so.
    """

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.source = nn.Embedding(config.source_vocab, config.d_model)
        if not config.embeddings_tied:
            self.target = nn.Embedding(config.target_vocab, config.d_model)
        self.encoder = [
            EncoderLayer(config) for _ in range(config.n_encoder_layers)]
        self.decoder = [
            DecoderLayer(config) for _ in range(config.n_decoder_layers)]
        if not config.output_tied:
            self.output = nn.Linear(
                config.d_model, config.target_vocab, config.has_output_bias)
        self.dropout = nn.Dropout(config.dropout)

    @property
    def target_table(self):
        """The target's embedding, which may be the source's."""
        return self.source if self.config.embeddings_tied else self.target

    def embedded(self, table, ids, max_length):
        """Ids [B T] to what a stack reads, [B T D] (§3.4, §3.5)."""
        checks.length(ids.shape[1], max_length)
        x = table(ids) * math.sqrt(self.config.d_model)
        positions = position_table(max_length, self.config.d_model)
        return self.dropout(x + mx.array(positions[:ids.shape[1]], x.dtype))

    def encode(self, source, source_mask):
        """Source ids [B S] to the memory, [B S D]."""
        x = self.embedded(self.source, source, self.config.source_length)
        for layer in self.encoder:
            x = layer(x, source_mask)
        return x

    def decode(self, target, memory, source_mask, target_mask, caches=None):
        """Target ids [B T], reading the memory, to vectors [B T D]."""
        x = self.embedded(self.target_table, target, self.config.max_length)
        for layer in self.decoder:
            x = layer(x, memory, source_mask, target_mask)
        return x

    def project(self, decoded):
        """Vectors [B T D] to logits [B T V]."""
        if self.config.output_tied:
            return self.target_table.as_linear(decoded)
        return self.output(decoded)

    def __call__(self, source, target, source_mask, target_mask):
        """Score every next target token: [B T V]; masks are True where read.
        """
        memory = self.encode(source, source_mask)
        return self.project(
            self.decode(target, memory, source_mask, target_mask))
