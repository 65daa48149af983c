"""The Transformer of Keras' own layers, by its functional API (figure 1).

    x = LayerNormalization()(x + MultiHeadAttention()(x, x))

Each layer is called for what it is to do, and makes its weights itself; its
name is the canonical one, by which its weights are found.
"""

import functools
import math

import keras
from keras import layers, ops

from transformer_contract import chosen
from parity_io.errors import InputError
from impl_keras import public
from impl_keras.positional import position_table
from impl_keras.whole import glorot, rows_of


class AddPositions(layers.Layer):
    """Embeddings [B T D] times √d_model, plus sines and cosines (§3.4, 3.5)."""

    def __init__(self, max_length, d_model):
        super().__init__()
        self.max_length, self.d_model = max_length, d_model

    def call(self, x):
        """x [B T D] with its positions, from 0 on."""
        table = position_table(self.max_length, self.d_model)
        table = ops.convert_to_tensor(table, x.dtype)
        return x * math.sqrt(self.d_model) + table[:ops.shape(x)[1]]


def norm(eps, name):
    """A norm; Keras' own ε is 1e-3 where none is given."""
    return layers.LayerNormalization(epsilon=eps, name=name)


def residual(config, x, path, sublayer, *inputs):
    """norm(x + Dropout(f(x))), or x + Dropout(f(norm(x))) (R11)."""
    normalise = norm(config.norm_eps, f"{path}_residual.norm")
    drop = layers.Dropout(config.dropout)
    if config.residual == "pre":
        return x + drop(sublayer(config, normalise(x), path, *inputs))
    return normalise(x + drop(sublayer(config, x, path, *inputs)))


def attention(config, x, path, memory, mask):
    """x attends to the memory, or to itself if that is None."""
    layer = layers.MultiHeadAttention(
        config.n_heads, config.d_k, dropout=config.dropout, name=path,
        kernel_initializer=glorot(config.d_model, config.d_model))
    # Asked for its weights, a row that may read nothing has none (R2); else
    # it reads the mean of all.
    output, _ = layer(x, x if memory is None else memory, attention_mask=mask,
                      return_attention_scores=True)
    return output


def feed_forward(config, x, path):
    """max(0, x W₁ + b₁) W₂ + b₂ (eq. 2)."""
    x = layers.Dense(config.d_ff, "relu", name=f"{path}.inner")(x)
    x = layers.Dropout(config.dropout)(x)
    return layers.Dense(config.d_model, name=f"{path}.outer")(x)


def embedded(config, ids, table, max_length):
    """Rows of a table times √d_model, with positions; then dropout."""
    x = AddPositions(max_length, config.d_model)(table(ids))
    return layers.Dropout(config.dropout)(x)


def stack(config, x, path, count, mask, *cross):
    """A stack's layers; those of a decoder attend to (memory, its mask)."""
    for layer in (f"{path}.layers.{i}" for i in range(count)):
        x = residual(config, x, f"{layer}.self_attention", attention, None,
                     mask)
        if cross:
            x = residual(config, x, f"{layer}.cross_attention", attention,
                         *cross)
        x = residual(config, x, f"{layer}.feed_forward", feed_forward)
    if config.final_norm:
        x = norm(config.final_norm_eps, f"{path}.norm")(x)
    return x


class Transformer(keras.Model):
    """A functional model of ids and masks, called as impl_keras' own."""

    def __init__(self, config):
        refuse(config)
        table = functools.partial(
            layers.ReversibleEmbedding, output_dim=config.d_model,
            embeddings_initializer=rows_of(config.d_model))
        first = table(config.source_vocab, name="source_embedding.table")
        other = first if config.embeddings_tied else table(
            config.target_vocab, name="target_embedding.table")
        source, target = (
            keras.Input((None,), dtype="int32") for _ in range(2))
        source_mask = keras.Input((1, 1, None), dtype="bool")
        target_mask = keras.Input((1, None, None), dtype="bool")
        memory = stack(
            config, embedded(config, source, first, config.source_length),
            "encoder", config.n_encoder_layers, source_mask)
        decoded = stack(
            config, embedded(config, target, other, config.max_length),
            "decoder", config.n_decoder_layers, target_mask, memory,
            source_mask)
        logits = other(decoded, reverse=True) if config.output_tied else (
            layers.Dense(config.target_vocab, use_bias=config.has_output_bias,
                         name="projection")(decoded))
        masks = source_mask, target_mask
        super().__init__([source, target, *masks], logits)
        self.config = config
        self.encoder = keras.Model([source, source_mask], memory)
        self.decoder = keras.Model([target, memory, *masks], logits)

    def __call__(self, source, target, source_mask=None, target_mask=None,
                 **how):
        """A score for every next token: [B T V]; masks follow from ids."""
        masks = public.given_masks(
            self, source, target, source_mask, target_mask)
        return super().__call__([source, target, *masks], **how)

    def encode(self, source, source_mask):
        """Source tokens [B S] to the memory, [B S D]."""
        return self.encoder([source, source_mask])

    def decode(self, target, memory, source_mask, target_mask, caches):
        """Target tokens [B T] to logits [B T V]; nothing is cached."""
        return self.decoder([target, memory, source_mask, target_mask])

    def project(self, logits):
        """The decoder's logits as they are."""
        return logits


def refuse(config):
    """Raise InputError where Keras' own layers are another model's."""
    usual = "usual"
    for said, why in (
            (config.norm_form == "layer",
             "LayerNormalization divides by √(variance + ε) and nothing else"),
            (chosen.attention(config, "causal") == usual,
             "MultiHeadAttention has as many keys as queries, all biases, and "
             "scores over √d_k alone"),
            (chosen.feed_forward(config) == usual,
             "its feed-forward is the paper's"),
            (chosen.source_embedding(config) == chosen.embedding(config)
             == usual, "Embedding learns all rows and knows no types"),
            (chosen.positions(config) == usual,
             "its positions are the paper's"),
            ((config.stacks, config.begin, config.output, config.output_scale,
              config.output_transform) == (
                  "both", "token", "logits", "none", False),
             "it has both stacks, begins with a token and ends in logits"),
            (not (config.output_tied and config.has_output_bias),
             "ReversibleEmbedding has no bias")):
        if not said:
            raise InputError(
                f"the native form cannot be this model: {why}; choose another "
                "form.")
