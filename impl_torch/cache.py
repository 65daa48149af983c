"""Keys and values that are kept while a target is written."""

import torch

from impl_torch.attention import scaled_dot_product_attention


def keys_and_values(attention, memory):
    """An attention's key and value of memory [R S D]: [R H S K] each."""
    # torch: a product of many matrices would copy them first, every time
    return (attention.split(attention.key(memory)).contiguous(),
            attention.split(attention.value(memory)).contiguous())


def attend(attention, x, key, value, mask):
    """An attention's output for x [R T D], its keys and values given."""
    query = attention.split(attention.query(x))
    context = scaled_dot_product_attention(
        query, key, value, mask, attention.weights_dropout, attention)
    return attention.output(attention.merge(context))


def new_cache(model, memory, length):
    """Room for ``length`` tokens, and the memory's keys and values."""
    shape = (len(memory), model.config.n_heads, length, model.config.d_k)
    return [((memory.new_zeros(shape), memory.new_zeros(shape)),
             keys_and_values(layer.cross_attention, memory))
            for layer in model.decoder.layers]


def decode_one(model, token, position, cache, source_mask):
    """Decode one token of every row, int [R], at a position: [R 1 D]."""
    embedded = model.target_embedding(token[:, None])
    x = embedded + model.target_positions.table[position].to(embedded)
    new = []
    for layer, ((key, value), memory) in zip(model.decoder.layers, cache):
        written = slice(position + 1)

        def self_attention(x):
            key_, value_ = keys_and_values(layer.self_attention, x)
            key[:, :, position], value[:, :, position] = (
                key_[:, :, 0], value_[:, :, 0])
            return attend(
                layer.self_attention, x, key[:, :, written],
                value[:, :, written], torch.ones(1, 1, 1, 1, dtype=torch.bool))

        def cross_attention(x):
            return attend(layer.cross_attention, x, *memory, source_mask)

        def feed_forward(x):
            return layer.feed_forward(x)

        x = layer.self_attention_residual(x, self_attention)
        x = layer.cross_attention_residual(x, cross_attention)
        x = layer.feed_forward_residual(x, feed_forward)
        new.append(((key, value), memory))
    return model.decoder.norm(x), new


def reorder(cache, parents, written):
    """The cache of rows that go on from other rows: parents, int [R]."""
    moved = torch.nonzero(parents != torch.arange(len(parents)))[:, 0]
    for (key, value), _ in cache:
        for kept in key, value:
            # torch: index_select takes whole rows, indexing number by number
            kept[moved, :, :written] = kept[:, :, :written].index_select(
                0, parents[moved])
    return cache
