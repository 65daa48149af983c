"""Cached keys and values, the memory's too.

The memory's are computed once, and the hypotheses of a source share them.
Self-attention's are in tensors of the full length, which a compiled loop
carries and writes in place.
"""

from keras import ops

from impl_keras.attention import (
    masked_softmax, scaled_dot_product_attention, shared)


def keys_and_values(attention, x):
    """An attention's key and value of x [R S D]: [R G S K] each."""
    return (attention.split(attention.key_dense(x)),
            attention.split(attention.value_dense(x)))


def attend(attention, x, key, value, mask):
    """An attention's output for x [R T D], its keys and values given."""
    query = attention.split(attention.query_dense(x))
    key, value = (shared(y, attention.times) for y in (key, value))
    # Keras' own would transpose the whole cache for every token.
    context = scaled_dot_product_attention(
        query, key, value, 0, mask, attention.divisor, masked_softmax,
        attention.weights_dropout, attention)
    return attention.output_dense(attention.merge(context))


def at(*places):
    """Where a slice begins, numbers and tensors alike."""
    # JAX wants them all of one dtype.
    return tuple(ops.convert_to_tensor(place, "int32") for place in places)


def memory_pairs(model, memory):
    """Each cross-attention's key and value of the memory [B S D]."""
    return [keys_and_values(layer.cross_attention, memory)
            for layer in model.decoder.layers]


def new_cache(model, memory, rows, length):
    """Room for ``length`` tokens of so many rows, in the memory's dtype."""
    shape = (rows, model.config.kv_heads, length, model.config.d_k)
    return [(ops.zeros(shape, memory.dtype), ops.zeros(shape, memory.dtype))
            for _ in model.decoder.layers]


def decode_one(model, token, position, cache, pairs, source_mask):
    """Decode one token of every row, int [R], at a position: [R 1 D].

    The hypotheses of a source read its memory as if they were its tokens:
    ``pairs`` and ``source_mask`` [B 1 1 S] have B rows. Returns the new cache
    too.
    """
    embedded = model.target_embedding(token[:, None])
    length = cache[0][0].shape[2]
    positions = model.target_positions
    table = ops.convert_to_tensor(
        positions.table[positions.first:positions.first + length],
        embedded.dtype)
    x = embedded + ops.take(table, position, axis=0)
    written = (ops.arange(length, dtype="int32") <= position)[None, None, None]
    new = []
    for layer, (key, value), pair in zip(model.decoder.layers, cache, pairs):
        y = layer.self_attention_residual.before(x)
        key, value = (
            ops.slice_update(old, at(0, 0, position, 0), one)
            for old, one in zip(
                (key, value), keys_and_values(layer.self_attention, y)))
        y = attend(layer.self_attention, y, key, value, written)
        x = layer.self_attention_residual.after(x, y)
        y = layer.cross_attention_residual.before(x)
        y = ops.reshape(y, (source_mask.shape[0], -1, y.shape[-1]))
        y = attend(layer.cross_attention, y, *pair, source_mask)
        x = layer.cross_attention_residual.after(x, ops.reshape(y, x.shape))
        y = layer.feed_forward_residual.before(x)
        x = layer.feed_forward_residual.after(x, layer.feed_forward(y))
        new.append((key, value))
    return model.decoder.norm(x), new


def reorder(cache, parents):
    """The cache of rows that continue other rows: parents, int [R]."""
    return [(ops.take(key, parents, axis=0), ops.take(value, parents, axis=0))
            for key, value in cache]
