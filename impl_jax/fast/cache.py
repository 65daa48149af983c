"""Cached keys and values, written in place; the memory's, which stay.

nnx: rows and heads stand as one dimension, R·H. A dimension of size 1, as of
one row, XLA drops, and then copies the whole cache for every token.
"""

import functools

import jax
import jax.numpy as jnp
from flax import nnx

from impl_jax.attention import MultiHeadAttention
from impl_jax.fast.layout import with_parts

_BLOCK = 32  # tokens that are moved together

#: Tokens for which the cache has room at first. Every token reads all of it.
ROOM = 512


def keys_and_values(attention, x):
    """An attention's key and value of x [R S D]: [R·G S K] each."""
    return (_joined(attention.split(attention.key(x))),
            _joined(attention.split(attention.value(x))))


def _joined(heads):
    """Rows and heads as one dimension: [R H T K] to [R·H T K]."""
    return heads.reshape(-1, *heads.shape[2:])


def heads_of_token(attention, x):
    """Self-attention's query [R H 1 K] of x [R 1 D]; key, value [R·G 1 K]."""
    maps = (attention.joined(x) if hasattr(attention, "joined") else
            (attention.query(x), attention.key(x), attention.value(x)))
    query, key, value = map(attention.split, maps)
    return query, (_joined(key), _joined(value))


def attend(attention, query, key, value, mask):
    """An attention's output for query [R H T K], its keys and values given."""
    times = query.shape[0] * query.shape[1] // len(key)
    key, value = (jnp.repeat(y, times, axis=0)
                  for y in (key, value))  # R·G to R·H
    context = MultiHeadAttention.attend(
        attention, _joined(query), key, value, mask, 0)
    return attention.output(attention.merge(context.reshape(query.shape)))


def memory_pairs(model, memory):
    """Each cross-attention's key and value of the memory [B S D]."""
    return [keys_and_values(layer.cross_attention, memory)
            for layer in model.decoder.layers]


def new_cache(model, memory, rows):
    """A cache of so many rows, in the memory's dtype, without room yet."""
    shape = (rows * model.config.kv_heads, 0, model.config.d_k)
    return [(jnp.zeros(shape, memory.dtype), jnp.zeros(shape, memory.dtype))
            for _ in model.decoder.layers]


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
    """The cache with room for ``length`` tokens of a row; None has none."""
    length += -length % _BLOCK
    return jax.tree.map(lambda kept: jnp.pad(
        kept, ((0, 0), (0, length - kept.shape[1]), (0, 0))), cache)


def write_all(length, goes_on, write, state, cache):
    """A loop that writes tokens until ``length`` stand, or all have ended.

    Args:
        goes_on: whether any row has not ended, of a state.
        write: of a state and the cache, both after another token.
        state: what a loop carries; first how many tokens are written.
    """
    def write_one(carried):
        state, cache = carried
        return write(*state, cache)

    for room in rooms(length) if cache else [length]:
        state, cache = jax.lax.while_loop(
            lambda carried, room=room: (
                (carried[0][0] < room) & goes_on(*carried[0])),
            write_one, (state, grown(cache, room)))
    return state


class OfTokens(nnx.Module):
    """A self-attention of one token and all kept ones, in the place of its own.

    Attributes:
        kept: its keys and values [R·G N K], after a call with the token's own.
    """

    def __init__(self, attention, kept, position):
        self.attention, self.position = attention, position
        self.kept = nnx.data(kept)

    def __call__(self, x, memory, mask, cache):
        """Let x [R 1 D] attend to itself and what is kept."""
        query, pair = heads_of_token(self.attention, x)
        self.kept = nnx.data(tuple(
            jax.lax.dynamic_update_slice_in_dim(
                old, one.astype(old.dtype), self.position, axis=1)
            for old, one in zip(self.kept, pair)))
        return attend(self.attention, query, *self.kept, mask)


class OfMemory(nnx.Module):
    """A cross-attention whose keys and values are known, in its own's place.

    The R hypotheses of B sources read one memory, as if they were its tokens.
    """

    def __init__(self, attention, pair, rows):
        self.attention, self.rows = attention, rows
        self.pair = nnx.data(pair)

    def __call__(self, x, memory, mask, cache):
        """Let x [R 1 D] attend to the memory of its source."""
        together = x.reshape(self.rows, -1, x.shape[-1])
        query = self.attention.split(self.attention.query(together))
        y = attend(self.attention, query, *self.pair, mask)
        return y.reshape(x.shape)


def decode_one(model, token, position, cache, pairs, source_mask):
    """Decode one token of every row, int [R], at a position: [R 1 D].

    The R hypotheses of B sources read one memory: ``pairs`` and ``source_mask``
    [B 1 1 S] have B rows.
    """
    embedded = model.target_embedding(token[:, None])
    length, positions = cache[0][0].shape[1], model.target_positions
    table = positions.positions(
        jnp.zeros((1, min(length, positions.max_length), embedded.shape[-1]),
                  embedded.dtype), None, 0)
    mask = (jnp.arange(length) <= position)[None, None]
    memory_mask = jnp.repeat(
        source_mask[:, 0], model.config.n_heads, axis=0)  # [R·H 1 S]
    layers = [
        with_parts(layer, self_attention=OfTokens(
            layer.self_attention, kept, position), cross_attention=OfMemory(
                layer.cross_attention, pair, len(source_mask)))
        for layer, kept, pair in zip(model.decoder.layers, cache, pairs)]
    decoded = with_parts(model.decoder, layers=layers)(
        embedded + table[position], None, memory_mask, mask, None)
    return decoded, [layer.self_attention.kept for layer in layers]


def new_writers(rows, length):
    """Which row wrote what stands in each place of a row: int [R N]."""
    return jnp.repeat(jnp.arange(rows)[:, None], length, axis=1)


def reorder(cache, writers, parents, written):
    """Cache and writers of rows that continue other rows: parents, int [R].

    Only blocks move from the first place on in which a row's parent has what
    another row wrote: hypotheses of a source have most of their tokens from one
    ancestor. Nor do blocks that are not written yet.
    """
    place, theirs = jnp.arange(writers.shape[1]), writers[parents]
    others = jnp.any(theirs != writers, axis=0) & (place < written)
    begin = jnp.where(jnp.any(others), jnp.argmax(others), written)
    heads = len(cache[0][0]) // len(parents)
    rows = (parents[:, None] * heads + jnp.arange(heads)).reshape(-1)

    def move(block, kept):
        old = jax.lax.dynamic_slice_in_dim(
            kept, block * _BLOCK, _BLOCK, axis=1)
        return jax.lax.dynamic_update_slice_in_dim(
            kept, old[rows], block * _BLOCK, axis=1)

    cache = jax.lax.fori_loop(
        begin // _BLOCK, -(-written // _BLOCK),
        lambda block, kept: jax.tree.map(
            functools.partial(move, block), kept), cache)
    return cache, jnp.where(place < written, theirs, writers)
