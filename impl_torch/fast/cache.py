"""Cached keys and values, the memory's too, written in place.

The memory's are computed once for a whole search. Self-attention's are in
tensors of the full length, of which only the written part is read or moved.
"""

import torch

from impl_torch.attention import (
    masked_softmax, scaled_dot_product_attention, shared)


def keys_and_values(attention, x):
    """An attention's key and value of x [R S D]: [R G S K] each."""
    # A product of many matrices would copy them first, every time.
    return (attention.split(attention.key(x)).contiguous(),
            attention.split(attention.value(x)).contiguous())


def attend(attention, x, key, value, mask):
    """An attention's output for x [R T D], its keys and values given."""
    query = attention.split(attention.query(x))
    key, value = (shared(y, attention.times) for y in (key, value))
    context = scaled_dot_product_attention(
        query, key, value, 0, mask, attention.divisor, masked_softmax,
        attention.weights_dropout, attention)
    return attention.output(attention.merge(context))


def new_cache(model, memory, length):
    """Room for ``length`` tokens, and the memory's keys and values."""
    shape = (len(memory), model.config.kv_heads, length, model.config.d_k)
    return [((memory.new_zeros(shape), memory.new_zeros(shape)),
             keys_and_values(layer.cross_attention, memory))
            for layer in model.decoder.layers]


def decode_one(model, token, position, cache, source_mask):
    """Decode one token of every row, int [R], at a position: [R 1 D].

    Its key and value are written into the cache.
    """
    embedded = model.target_embedding(token[:, None])
    positions = model.target_positions
    x = embedded + positions.table[positions.first + position].to(embedded)
    everything = torch.ones(1, 1, 1, 1, dtype=torch.bool)
    written = slice(position + 1)
    for layer, ((key, value), memory) in zip(model.decoder.layers, cache):
        y = layer.self_attention_residual.before(x)
        key_, value_ = keys_and_values(layer.self_attention, y)
        key[:, :, position], value[:, :, position] = (
            key_[:, :, 0], value_[:, :, 0])
        y = attend(layer.self_attention, y, key[:, :, written],
                   value[:, :, written], everything)
        x = layer.self_attention_residual.after(x, y)
        y = layer.cross_attention_residual.before(x)
        y = attend(layer.cross_attention, y, *memory, source_mask)
        x = layer.cross_attention_residual.after(x, y)
        y = layer.feed_forward_residual.before(x)
        x = layer.feed_forward_residual.after(x, layer.feed_forward(y))
    return model.decoder.norm(x)


def reorder(cache, parents, written):
    """Let each row of the cache continue another one: parents, int [R]."""
    moved = torch.nonzero(parents != torch.arange(len(parents)))[:, 0]
    for (key, value), _ in cache:
        for kept in key, value:
            # index_select takes whole rows, indexing number by number
            kept[moved, :, :written] = kept[:, :, :written].index_select(
                0, parents[moved])
