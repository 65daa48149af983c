"""Cached keys and values, the memory's too, written in place.

The memory never changes, so its keys and values are computed once for a whole
search, and the hypotheses of a source share them. Self-attention's are in
arrays of the full length, of which only the written part is read or moved; its
query, key and value are one product, since a token is mostly the reading of
weights, and long rows of them are read sooner.
"""

import typing

import numpy as np

from reference_numpy.attention import shared


class Kept(typing.NamedTuple):
    """What a search keeps of a layer.

    Attributes:
        kernel, bias: self-attention's three maps as one, [D H·K + 2 G·K].
        key, value: self-attention's, of which a part is written: [R G N K].
        memory: cross-attention's key and value, [B G S K] each.
    """

    kernel: np.ndarray
    bias: np.ndarray | float
    key: np.ndarray
    value: np.ndarray
    memory: tuple


def keys_and_values(attention, x):
    """An attention's key and value of x [R S D]: [R G S K] each."""
    return (attention.split(attention.key(x)),
            attention.split(attention.value(x)))


def together(*maps):
    """The kernels of some linear maps of one input side by side; the biases."""
    biases = [getattr(each, "bias", np.zeros_like(each.kernel[0]))
              for each in maps]
    return (np.concatenate([each.kernel for each in maps], axis=-1),
            np.concatenate(biases))


def attend(attention, query, key, value, mask):
    """An attention's output for query [R H T K], keys and values given.

    ``mask`` is None where all keys may be read.
    """
    key, value = (shared(y, attention.times) if attention.times > 1 else y
                  for y in (key, value))
    weights = query @ key.mT
    weights /= attention.divisor
    if mask is not None:
        np.copyto(weights, np.finfo(weights.dtype).min, where=~mask)
    weights -= weights.max(axis=-1, keepdims=True)
    np.exp(weights, out=weights)
    if mask is not None:
        np.copyto(weights, 0, where=~mask)  # of a row that may read nothing
    total = weights.sum(axis=-1, keepdims=True)
    total[total == 0] = 1
    context = weights @ value
    context /= total
    return attention.output(attention.merge(context))


def new_cache(model, memory, rows, length):
    """Room for ``length`` tokens of so many rows of memory [B S D], a layer."""
    shape = (rows, model.config.kv_heads, length, model.config.d_k)
    return [Kept(*together(layer.self_attention.query,
                           layer.self_attention.key,
                           layer.self_attention.value),
                 np.zeros(shape, memory.dtype), np.zeros(shape, memory.dtype),
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
    mask = None if source_mask.all() else source_mask
    for layer, kept in zip(model.decoder.layers, cache):
        y, _ = layer.self_attention_residual.before(x)
        attention, groups = layer.self_attention, kept.key.shape[1]
        y = y[:, 0] @ kept.kernel
        y += kept.bias
        heads = attention.split(y[:, None])  # of queries, keys and values
        kept.key[:, :, position] = heads[:, -2 * groups:-groups, 0]
        kept.value[:, :, position] = heads[:, -groups:, 0]
        y = attend(attention, heads[:, :-2 * groups],
                   kept.key[:, :, written], kept.value[:, :, written], None)
        x = layer.self_attention_residual.after(x, y, {})
        y, _ = layer.cross_attention_residual.before(x)
        y = y.reshape(len(source_mask), -1, y.shape[-1])
        attention = layer.cross_attention
        y = attend(attention, attention.split(attention.query(y)),
                   *kept.memory, mask)
        x = layer.cross_attention_residual.after(x, y.reshape(x.shape), {})
        y, _ = layer.feed_forward_residual.before(x)
        y, _ = layer.feed_forward.forward(y)
        x = layer.feed_forward_residual.after(x, y, {})
    return model.decoder.norm.forward(x)[0]


def new_writers(rows, length):
    """Which row wrote what stands in each place of a row: int [R N]."""
    return np.repeat(np.arange(rows)[:, None], length, axis=1)


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
