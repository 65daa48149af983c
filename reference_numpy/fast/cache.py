"""Cached keys and values, the memory's too, written in place.

The memory never changes, so its keys and values are computed once for a whole
search, and the hypotheses of a source share them. Self-attention's are in
arrays of the full length, of which only the written part is read or moved.
"""

import numpy as np

from reference_numpy.attention import shared
from reference_numpy.fast.attention import (
    masked_softmax, scaled_dot_product_attention)


def keys_and_values(attention, x):
    """An attention's key and value of x [R S D]: [R G S K] each."""
    return (attention.split(attention.key(x)),
            attention.split(attention.value(x)))


def attend(attention, x, key, value, mask):
    """An attention's output for x [R T D], its keys and values given."""
    query = attention.split(attention.query(x))
    key, value = (shared(y, attention.times) for y in (key, value))
    context = scaled_dot_product_attention(
        query, key, value, 0, mask, attention.divisor, masked_softmax,
        attention.weights_dropout, {})
    return attention.output(attention.merge(context))


def new_cache(model, memory, rows, length):
    """Room for ``length`` tokens of so many rows, and the memory's pairs.

    Returns:
        Two pairs for each layer: self-attention's key and value [R G N K], and
        cross-attention's [B G S K] of memory [B S D].
    """
    shape = (rows, model.config.kv_heads, length, model.config.d_k)
    return [((np.zeros(shape, memory.dtype), np.zeros(shape, memory.dtype)),
             keys_and_values(layer.cross_attention, memory))
            for layer in model.decoder.layers]


def decode_one(model, token, position, cache, source_mask):
    """Decode one token of every row, int [R], at a position.

    Its key and value are written into the cache; returns its vector [R 1 D].
    The hypotheses of a source read its memory as if they were its tokens;
    source_mask is [B 1 1 S].
    """
    embedded, _ = model.target_embedding.forward(token[:, None])
    positions = model.target_positions
    x = embedded + positions.table[positions.first + position].astype(
        embedded.dtype)
    written = slice(position + 1)
    for layer, ((key, value), memory) in zip(model.decoder.layers, cache):
        y, _ = layer.self_attention_residual.before(x)
        key_, value_ = keys_and_values(layer.self_attention, y)
        key[:, :, position], value[:, :, position] = (
            key_[:, :, 0], value_[:, :, 0])
        y = attend(layer.self_attention, y, key[:, :, written],
                   value[:, :, written], np.ones((1, 1, 1, 1), bool))
        x = layer.self_attention_residual.after(x, y, {})
        y, _ = layer.cross_attention_residual.before(x)
        y = y.reshape(len(source_mask), -1, y.shape[-1])
        y = attend(layer.cross_attention, y, *memory, source_mask)
        x = layer.cross_attention_residual.after(x, y.reshape(x.shape), {})
        y, _ = layer.feed_forward_residual.before(x)
        y, _ = layer.feed_forward.forward(y)
        x = layer.feed_forward_residual.after(x, y, {})
    return model.decoder.norm.forward(x)[0]


def reorder(cache, parents, written):
    """Let each row of the cache continue another one: parents, int [R].

    Only the written part moves, and only where a row's parent is another row.
    The memory's keys and values stay: a row's parent has the same source.
    """
    moved = np.flatnonzero(parents != np.arange(len(parents)))
    for (key, value), _ in cache:
        for kept in key, value:
            kept[moved, :, :written] = kept[parents[moved], :, :written]
