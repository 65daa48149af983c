"""Cached keys and values, the memory's too.

The memory's are computed once, and the hypotheses of a source share them.
Self-attention's are in tensors that have room for more tokens, which a compiled
loop carries and writes in place.
"""

import functools
import math

import keras
import numpy as np
from keras import ops

from impl_keras.attention import masked_softmax
from impl_keras.dialects.attention import shared

#: Tokens for which the cache has room at first. Every token reads all of it.
ROOM = 512

#: Numbers of keys from which on XLA compiles attention to them.
MANY = 2**19


def keys_and_values(attention, x):
    """An attention's key and value of x [R S D]: [R G S K] each."""
    return (attention.heads_first(attention.key_dense(x)),
            attention.heads_first(attention.value_dense(x)))


def apart(attention):
    """Self-attention's query, key and value [1 R H K] of x [1 R D]."""
    return lambda x: (attention.query_dense(x), attention.key_dense(x),
                      attention.value_dense(x))


def attend(attention, contexts_of, query, key, value, mask):
    """An attention's output [1 R D] for query [1 R H K] of a token a row.

    The hypotheses of a source read keys and values [B G S K] as if they were
    its tokens. ``contexts_of`` is what compiled_contexts returned.
    """
    shape = query.shape
    query = attention.heads_first(
        ops.reshape(query, (key.shape[0], -1, *shape[2:])))
    context = contexts_of(query, key, value, mask, attention.divisor)
    return attention.output_dense(
        ops.reshape(attention.heads_last(context), shape))


def contexts(query, key, value, mask, divisor):
    """The context [B H T K] of queries, for keys and values [B G S K] (eq. 1).

    ``mask`` is [B 1 1 S], or [1 1 1 S] for all sources alike. Rows and heads
    stand as one dimension: one of size 1, as of one row, XLA drops, and then
    copies all keys.
    """
    heads = query.shape[1]
    query, key, value, mask = (
        ops.reshape(y, (-1, *y.shape[2:])) for y in (
            query, *(shared(y, heads // y.shape[1]) for y in (key, value)),
            mask if mask.shape[0] == 1 else ops.repeat(mask, heads, axis=1)))
    # Keras' own would transpose the whole cache for every token.
    scores = query @ ops.swapaxes(key, -1, -2) / divisor
    context = masked_softmax(scores, mask) @ value
    return ops.reshape(context, (-1, heads, *context.shape[1:]))


def compiled_contexts():
    """``contexts``, which XLA compiles where there are many keys.

    Made for one traced search, with which what is compiled goes. XLA reads
    them at twice the rate of TensorFlow, which multiplies one row by a
    transpose: on an AMD EPYC a token of 4 to 32 rows then takes 0.8 to 0.93
    of the time. Of fewer keys the calls cost more.
    """
    if keras.backend.backend() != "tensorflow":
        return contexts
    import tensorflow as tf
    by_xla = tf.function(contexts, autograph=False, jit_compile=True)

    def either(query, key, *rest):
        few = math.prod(key.shape) < MANY
        return (contexts if few else by_xla)(query, key, *rest)
    return either


def at(*places):
    """Where a slice begins, numbers and tensors alike."""
    # JAX wants them all of one dtype.
    return tuple(ops.convert_to_tensor(place, "int32") for place in places)


def memory_pairs(model, memory):
    """Each cross-attention's key and value of the memory [B S D]."""
    return [keys_and_values(layer.cross_attention, memory)
            for layer in model.decoder.layers]


def new_cache(model, memory, rows):
    """A cache of so many rows, in the memory's dtype, without room yet."""
    shape = (rows, model.config.kv_heads, 0, model.config.d_k)
    return [(room(shape, memory.dtype), room(shape, memory.dtype))
            for _ in model.decoder.layers]


def room(shape, dtype):
    """Zeros that nothing else has a part in."""
    if keras.backend.backend() != "tensorflow":
        return ops.zeros(shape, dtype)
    from tensorflow import raw_ops
    return raw_ops.Empty(shape=shape, dtype=dtype, init=True)


def write(kept, position, one):
    """Keys or values [R G N K], those of a token, [1 R G K], written in."""
    if keras.backend.backend() != "tensorflow":
        one = ops.reshape(one, (*kept.shape[:2], 1, kept.shape[3]))
        return ops.slice_update(kept, at(0, 0, position, 0), one)
    # tensorflow: its slice_update would copy them all, for every token.
    from tensorflow import raw_ops
    rows, groups, length, features = kept.shape
    places = length * np.arange(rows * groups, dtype=np.int32) + position
    return ops.reshape(raw_ops.InplaceUpdate(
        x=ops.reshape(kept, (-1, features)), i=places,
        v=ops.reshape(one, (-1, features))), kept.shape)


def rooms(length):
    """How long the cache is, one after the other: each 1.5 times the last.

    More of them would read less, and take longer to compile.
    """
    room = ROOM
    while room < length:
        yield room
        room += -(-room // 2)
    yield length


def grown(cache, length):
    """The cache with room for ``length`` tokens of a row; [] has none."""
    def larger(kept):
        rows, groups, there, features = kept.shape
        return ops.concatenate([kept, room(
            (rows, groups, length - there, features), kept.dtype)], axis=2)

    return keras.tree.map_structure(larger, cache)


def write_all(length, goes_on, write, state, cache):
    """A loop that writes tokens until ``length`` stand, or all have ended.

    Args:
        goes_on: whether any row has not ended, of a state.
        write: of a state and the cache, both after another token.
        state: what a loop carries; first how many tokens are written.
    """
    def going_on(room, state, cache):
        return (state[0] < room) & goes_on(*state)

    for room in rooms(length) if cache else [length]:
        state, cache = ops.while_loop(
            functools.partial(going_on, room),
            lambda state, cache: write(*state, cache),
            (state, grown(cache, room)))
    return state


def decode_one(model, token, position, cache, pairs, source_mask):
    """Decode one token of every row, int [R], at a position: [R 1 D].

    The hypotheses of a source share its memory: ``pairs`` and ``source_mask``
    [B 1 1 S] have B rows. Returns the new cache too.
    """
    # One row of R tokens: R rows of one would be R products each.
    embedded = model.target_embedding(token[None])
    length = cache[0][0].shape[2]
    positions = model.target_positions
    table = positions.positions(ops.zeros(
        (1, min(length, positions.max_length), 1), embedded.dtype), None, 0)
    x = embedded + ops.take(table, position, axis=0)
    written = (ops.arange(length, dtype="int32") <= position)[None, None, None]
    contexts_of, new = compiled_contexts(), []
    for layer, (keys, values), pair, joined in zip(
            model.decoder.layers, cache, pairs,
            getattr(model, "joined", None) or [None] * len(cache)):
        y = before(layer.self_attention_residual, x)
        attention = layer.self_attention
        query, key, value = (joined or apart(attention))(y)
        keys = write(keys, position, key)
        values = write(values, position, value)
        y = attend(attention, contexts_of, query, keys, values, written)
        x = layer.self_attention_residual(x, y)
        y = before(layer.cross_attention_residual, x)
        attention = layer.cross_attention
        query = attention.query_dense(y)
        y = attend(attention, contexts_of, query, *pair, source_mask)
        x = layer.cross_attention_residual(x, y)
        y = before(layer.feed_forward_residual, x)
        x = layer.feed_forward_residual(x, layer.feed_forward(y))
        new.append((keys, values))
    if hasattr(model.decoder, "finish"):
        x = model.decoder.finish(x)
    return ops.swapaxes(x, 0, 1), new


def before(residual, x):
    """What a sub-layer reads: x, normalised where that comes first."""
    return residual.before(x) if hasattr(residual, "before") else x


def new_writers(rows, length):
    """Which row wrote what stands in each place of a row: int [R N]."""
    return ops.repeat(ops.arange(rows, dtype="int32")[:, None], length, axis=1)


def reorder(cache, writers, parents, written):
    """Cache and writers of rows that continue other rows: parents, int [R].

    On TensorFlow only what another row wrote moves: hypotheses of a source have
    most of their tokens from one ancestor.
    """
    theirs = ops.take(writers, parents, axis=0)
    known = ops.arange(writers.shape[1], dtype="int32") < written
    move = mover(cache[0][0].shape, parents, known & (theirs != writers))
    return ([(move(key), move(value)) for key, value in cache],
            ops.where(known, theirs, writers))


def mover(shape, parents, others):
    """What has rows of keys or values [R G N K] continue their parents.

    Args:
        others: which places [R N] are to be another row's.
    """
    if keras.backend.backend() != "tensorflow":
        return lambda kept: ops.take(kept, parents, axis=0)
    from tensorflow import raw_ops, where
    _, groups, length, features = shape
    row, place = ops.unstack(ops.cast(where(others), "int32"), axis=1)

    def vectors(row):  # each group's, in an array [R·G·N K]
        heads = row[:, None] * groups + ops.arange(groups, dtype="int32")
        return ops.reshape(heads * length + place[:, None], (-1,))

    here, there = vectors(row), vectors(ops.take(parents, row))

    def move(kept):
        flat = ops.reshape(kept, (-1, features))
        return ops.reshape(raw_ops.InplaceUpdate(
            x=flat, i=here, v=ops.take(flat, there, axis=0)), shape)

    return move
