"""Keys and values that are kept while a target is written.

A decoder layer asks each earlier token for its key and value, and these never
change: a token sees no later one. So each new token costs one row of work, not
one row for every token before it. Keys and values of the memory are computed
once. Self-attention's stand in arrays of the full length, of which only what is
written is read.
"""

import numpy as np

from reference_numpy.attention import scaled_dot_product_attention


def keys_and_values(attention, memory):
    """An attention's key and value of memory [R S D]: [R H S K] each."""
    return (attention.split(attention.key(memory)),
            attention.split(attention.value(memory)))


def attend(attention, x, key, value, mask):
    """An attention's output for x [R T D], its keys and values given."""
    query = attention.split(attention.query(x))
    context = scaled_dot_product_attention(
        query, key, value, mask, attention.weights_dropout, {})
    return attention.output(attention.merge(context))


def new_cache(model, memory, length):
    """Room for ``length`` tokens, and the memory's keys and values.

    Returns:
        A pair for each layer: self-attention's key and value [R H N K], and
        cross-attention's [R H S K].
    """
    shape = (len(memory), model.config.n_heads, length, model.config.d_k)
    return [((np.zeros(shape, memory.dtype), np.zeros(shape, memory.dtype)),
             keys_and_values(layer.cross_attention, memory))
            for layer in model.decoder.layers]


def decode_one(model, token, position, cache, source_mask):
    """Decode one token of every row, int [R], at a position.

    Returns:
        Its vector [R 1 D], and the cache with its keys and values.
    """
    embedded, _ = model.target_embedding.forward(token[:, None])
    x = embedded + model.target_positions.table[position].astype(embedded.dtype)
    new = []
    for layer, ((key, value), memory) in zip(model.decoder.layers, cache):
        written = slice(position + 1)

        def self_attention(x):
            key_, value_ = keys_and_values(layer.self_attention, x)
            key[:, :, position], value[:, :, position] = (
                key_[:, :, 0], value_[:, :, 0])
            return attend(
                layer.self_attention, x, key[:, :, written],
                value[:, :, written], np.ones((1, 1, 1, 1), bool))

        def cross_attention(x):
            return attend(layer.cross_attention, x, *memory, source_mask)

        def feed_forward(x):
            return layer.feed_forward.forward(x)[0]

        x, _ = layer.self_attention_residual.forward(x, self_attention)
        x, _ = layer.cross_attention_residual.forward(x, cross_attention)
        x, _ = layer.feed_forward_residual.forward(x, feed_forward)
        new.append(((key, value), memory))
    return model.decoder.norm.forward(x)[0], new


def reorder(cache, parents, written):
    """The cache of rows that go on from other rows: parents, int [R].

    Only what is written moves, and only where a row's parent is another. The
    memory stays: a row's parent has the same source.
    """
    moved = np.flatnonzero(parents != np.arange(len(parents)))
    for (key, value), _ in cache:
        for kept in key, value:
            kept[moved, :, :written] = kept[parents[moved], :, :written]
    return cache
