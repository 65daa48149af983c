"""Keys and values that are kept while a target is written.

nnx: rows and heads stand as one dimension, R·H. A dimension of size 1, as of
one row, XLA drops, and then copies the whole cache for every token.
"""

import functools

import jax
import jax.numpy as jnp

from impl_jax.attention import scaled_dot_product_attention

_BLOCK = 32  # tokens that are moved together


def keys_and_values(attention, memory):
    """An attention's key and value of memory [R S D]: [R·H S K] each."""
    return (_joined(attention.split(attention.key(memory))),
            _joined(attention.split(attention.value(memory))))


def _joined(heads):
    """Rows and heads as one dimension: [R H T K] to [R·H T K]."""
    return heads.reshape(-1, *heads.shape[2:])


def attend(attention, x, key, value, mask):
    """An attention's output for x [R T D], its keys and values given."""
    query = attention.split(attention.query(x))
    context = scaled_dot_product_attention(
        _joined(query), key, value, mask, attention.weights_dropout, attention)
    return attention.output(attention.merge(context.reshape(query.shape)))


def new_cache(model, memory, length):
    """Room for ``length`` tokens, and the memory's keys and values."""
    length += -length % _BLOCK
    shape = (len(memory) * model.config.n_heads, length, model.config.d_k)
    return [((jnp.zeros(shape, memory.dtype), jnp.zeros(shape, memory.dtype)),
             keys_and_values(layer.cross_attention, memory))
            for layer in model.decoder.layers]


def decode_one(model, token, position, cache, source_mask):
    """Decode one token of every row, int [R], at a position: [R 1 D]."""
    embedded = model.target_embedding(token[:, None])
    length = cache[0][0][0].shape[1]
    table = jnp.asarray(
        model.target_positions.table[:length].astype(embedded.dtype))
    x = embedded + table[position]
    memory_mask = jnp.repeat(
        source_mask[:, 0], model.config.n_heads, axis=0)  # [R·H 1 S]
    new = []
    for layer, ((key, value), memory) in zip(model.decoder.layers, cache):
        written = jnp.arange(length) <= position

        def self_attention(x):
            nonlocal key, value
            key_, value_ = keys_and_values(layer.self_attention, x)
            key, value = (
                jax.lax.dynamic_update_slice_in_dim(old, new, position, axis=1)
                for old, new in ((key, key_), (value, value_)))
            return attend(layer.self_attention, x, key, value,
                          written[None, None])

        def cross_attention(x):
            return attend(layer.cross_attention, x, *memory, memory_mask)

        def feed_forward(x):
            return layer.feed_forward(x)

        x = layer.self_attention_residual(x, self_attention)
        x = layer.cross_attention_residual(x, cross_attention)
        x = layer.feed_forward_residual(x, feed_forward)
        new.append(((key, value), memory))
    return model.decoder.norm(x), new


def reorder(cache, parents, written):
    """The cache of rows that go on from other rows: parents, int [R]."""
    heads = len(cache[0][0][0]) // len(parents)
    rows = (parents[:, None] * heads + jnp.arange(heads)).reshape(-1)

    def move(block, kept):
        old = jax.lax.dynamic_slice_in_dim(
            kept, block * _BLOCK, _BLOCK, axis=1)
        return jax.lax.dynamic_update_slice_in_dim(
            kept, old[rows], block * _BLOCK, axis=1)

    # nnx: what is not written stays where it is, block by block
    kept = jax.lax.fori_loop(
        0, -(-written // _BLOCK),
        lambda block, kept: jax.tree.map(
            functools.partial(move, block), kept),
        [kept for kept, _ in cache])
    return [(kept, memory) for kept, (_, memory) in zip(kept, cache)]
