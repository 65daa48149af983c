"""Cached keys and values, the memory's too, written in place.

The memory never changes, so its keys and values are computed once for a whole
search, and the hypotheses of a source share them. Self-attention's are in
arrays of the full length, of which only the written part is read or moved, and
the places that all hypotheses of a source have from one ancestor are read once;
its query, key and value are one product.
"""

import typing

import numpy as np

from reference_numpy.dialects.attention import shared
from reference_numpy.fast.layout import joined

#: So many places that the rows of a source have alike are read once.
MANY = 32


class Kept(typing.NamedTuple):
    """What a search keeps of a layer.

    Attributes:
        joined: self-attention's three maps as one, [D] to [H·K + 2 G·K].
        key, value: self-attention's, of which a part is written: [R G N K].
        memory: cross-attention's key and value, [B G S K] each.
    """

    joined: typing.Callable
    key: np.ndarray
    value: np.ndarray
    memory: tuple

    def pieces(self, alike, count):
        """Keys and values of ``count`` places, one piece after the other.

        Of the first ``alike`` places a source has one row, of others all.
        """
        every = len(self.key) // len(self.memory[0])
        slices = [np.s_[:, :, alike:count]]
        if alike:
            slices.insert(0, np.s_[::every, :, :alike])
        return [(self.key[part], self.value[part]) for part in slices]


def keys_and_values(attention, x):
    """An attention's key and value of x [R S D]: [R G S K] each."""
    return (attention.split(attention.key(x)),
            attention.split(attention.value(x)))


def product(x, y):
    """x [R H 1 i] by y [R H i o], or by the [B H i o] of sources: [R H 1 o].

    What the hypotheses of a source share is read once for all of them.
    """
    if len(x) == len(y):
        return x @ y
    heads, width = x.shape[1], x.shape[-1]
    x = x.reshape(len(y), -1, heads, width).swapaxes(1, 2)
    return (x @ y).swapaxes(1, 2).reshape(-1, heads, 1, y.shape[-1])


def attend(attention, query, pieces, mask):
    """An attention's output for query [R H 1 K], keys and values given.

    The keys and values are in pieces one after the other, [R G n K] or
    [B G n K] each; ``mask`` is None where all keys may be read.
    """
    times = query.shape[1] // pieces[0][0].shape[1]
    if times > 1:
        pieces = [(shared(key, times), shared(value, times))
                  for key, value in pieces]
    weights = [product(query, key.mT) for key, _ in pieces]
    weights = np.concatenate(weights, axis=-1) if weights[1:] else weights[0]
    weights /= attention.divisor
    if mask is not None:
        np.copyto(weights, np.finfo(weights.dtype).min, where=~mask)
    weights -= weights.max(axis=-1, keepdims=True)
    np.exp(weights, out=weights)
    if mask is not None:
        np.copyto(weights, 0, where=~mask)  # of a row that may read nothing
    total = weights.sum(axis=-1, keepdims=True)
    total[total == 0] = 1
    context, first = 0, 0
    for _, value in pieces:
        last = first + value.shape[2]
        context = context + product(weights[..., first:last], value)
        first = last
    context /= total
    return attention.output(attention.merge(context))


def new_cache(model, memory, rows, length):
    """Room for ``length`` tokens of so many rows of memory [B S D], a layer."""
    shape = (rows, model.config.kv_heads, length, model.config.d_k)
    return [Kept(joined(layer.self_attention, rows, length - 1),
                 np.zeros(shape, memory.dtype), np.zeros(shape, memory.dtype),
                 keys_and_values(layer.cross_attention, memory))
            for layer in model.decoder.layers]


def decode_one(model, token, position, cache, alike, source_mask):
    """Decode one token of every row, int [R], at a position.

    Its key and value are written into the cache; returns its vector [R 1 D].
    The hypotheses of a source share its memory, and the first ``alike`` places
    of the cache; source_mask is [R 1 1 S].
    """
    embedded, _ = model.target_embedding.forward(token[:, None])
    x = embedded + model.target_positions.positions(
        embedded, token[:, None], position, {})
    mask = None if source_mask.all() else source_mask
    for layer, kept in zip(model.decoder.layers, cache):
        y = read_by(layer.self_attention_residual, x)
        attention, groups = layer.self_attention, kept.key.shape[1]
        heads = attention.split(kept.joined(y))  # queries, keys and values
        kept.key[:, :, position] = heads[:, -2 * groups:-groups, 0]
        kept.value[:, :, position] = heads[:, -groups:, 0]
        y = attend(attention, heads[:, :-2 * groups],
                   kept.pieces(alike, 1 + position), None)
        x, _ = layer.self_attention_residual.forward(x, y)
        y = read_by(layer.cross_attention_residual, x)
        attention = layer.cross_attention
        y = attend(attention, attention.split(attention.query(y)),
                   [kept.memory], mask)
        x, _ = layer.cross_attention_residual.forward(x, y)
        y = read_by(layer.feed_forward_residual, x)
        y, _ = layer.feed_forward.forward(y)
        x, _ = layer.feed_forward_residual.forward(x, y)
    if model.config.final_norm:
        x, _ = model.decoder.norm.forward(x)
    return x


def read_by(residual, x):
    """What a sub-layer reads of x [R 1 D]: norm(x) if norms come first."""
    return residual.before(x)[0] if hasattr(residual, "before") else x


def new_writers(rows, length):
    """Which row wrote what stands in each place of a row: int [R N]."""
    return np.repeat(np.arange(rows)[:, None], length, axis=1)


def same_places(writers, sources, written):
    """How many places, from the first on, all rows of a source have alike.

    0 where they are too few for reading them once to pay.
    """
    width = len(writers) // sources
    if width == 1 or written < MANY:
        return 0
    writers = writers[:, :written].reshape(sources, width, written)
    differ = np.flatnonzero(np.any(writers != writers[:, :1], axis=(0, 1)))
    count = differ[0] if len(differ) else written
    return count if count >= MANY else 0


def reorder(cache, writers, parents, written):
    """Let each row of the cache continue another one: parents, int [R].

    Only rows move whose parent is another row, and of these only places from
    the first on in which the parent has what another row wrote: hypotheses of a
    source have most of their tokens from one ancestor. The memory's keys and
    values stay, since a row's parent has the same source.
    """
    moved = np.flatnonzero(parents != np.arange(len(parents)))
    here, there = (writers[rows, :written] for rows in (moved, parents[moved]))
    others = np.flatnonzero(np.any(here != there, axis=0))
    if not len(others):
        return
    part = slice(others[0], written)
    writers[moved, part] = writers[parents[moved], part]
    for kept in cache:
        for old in kept.key, kept.value:
            old[moved, :, part] = old[parents[moved], :, part]
