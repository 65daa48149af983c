"""Cached keys and values, the memory's too, written in place.

The memory's are computed once for a whole search, and the hypotheses of a
source share them. Self-attention's are in tensors of the full length, of which
only the written part is read or moved. Nothing has an axis for the one token,
since a small operation takes as long as its overhead.
"""

import torch

from impl_torch.fast.attention import one_call
from impl_torch.fast.layout import JOINED


def keys_and_values(attention, x):
    """An attention's key and value of x [R S D]: [R G S K] each."""
    # A product of many matrices would copy them first, every time.
    return (attention.split(attention.key(x)).contiguous(),
            attention.split(attention.value(x)).contiguous())


def heads_of_token(attention, x):
    """Self-attention's query, key and value of a token a row, x [R D].

    Returns:
        [R H K], [R G K] and [R G K], of one product where they are joined.
    """
    joined = getattr(attention, JOINED, None)
    maps = (joined(x) if joined else
            (attention.query(x), attention.key(x), attention.value(x)))
    return [each.view(len(x), -1, attention.d_k) for each in maps]


def attend(attention, query, key, value, mask):
    """An attention's output [R D] for query [R H K] of a token a row.

    The hypotheses of a source read keys and values [B G S K] as if they were
    its tokens.
    """
    of_sources = query.view(len(key), -1, *query.shape[1:]).transpose(1, 2)
    context = one_call(of_sources, key, value, mask, False, attention.divisor)
    return attention.output(context.transpose(1, 2).reshape(len(query), -1))


def new_cache(model, memory, rows, length):
    """Room for ``length`` tokens of so many rows, and the memory's pairs.

    Returns:
        Two pairs for each layer: self-attention's key and value [R G N K], and
        cross-attention's [B G S K] of memory [B S D].
    """
    shape = (rows, model.config.kv_heads, length, model.config.d_k)
    return [((memory.new_zeros(shape), memory.new_zeros(shape)),
             keys_and_values(layer.cross_attention, memory))
            for layer in model.decoder.layers]


def read(residual, x):
    """What a sub-layer reads of x [R D], normalised if its residual says so.
    """
    return residual.before(x) if hasattr(residual, "before") else x


def decode_one(model, token, position, cache, source_mask):
    """Decode one token of every row, int [R], at a position: [R D].

    Its key and value are written into the cache. The hypotheses of a source
    share its memory; source_mask is [B 1 1 S], or None where all is read.
    """
    x = model.embed_target(token[:, None], position)[:, 0]
    written = slice(position + 1)
    for layer, ((keys, values), memory) in zip(model.decoder.layers, cache):
        y = read(layer.self_attention_residual, x)
        attention = layer.self_attention
        query, key, value = heads_of_token(attention, y)
        keys[:, :, position], values[:, :, position] = key, value
        y = attend(attention, query, keys[:, :, written],
                   values[:, :, written], None)
        x = layer.self_attention_residual(x, y)
        y = read(layer.cross_attention_residual, x)
        attention = layer.cross_attention
        query = attention.query(y).view(len(y), -1, attention.d_k)
        y = attend(attention, query, *memory, source_mask)
        x = layer.cross_attention_residual(x, y)
        y = layer.feed_forward(read(layer.feed_forward_residual, x))
        x = layer.feed_forward_residual(x, y)
    return model.decoder.finish(x) if hasattr(model.decoder, "finish") else x


def new_writers(rows, length):
    """Which row wrote what stands in each place of a row: int [R N]."""
    return torch.arange(rows)[:, None].repeat(1, length)


def reorder(cache, writers, parents, written):
    """Let each row of the cache continue another one: parents, int [R].

    Only rows move whose parent is another row, and of these only places from
    the first on in which the parent has what another row wrote: hypotheses of a
    source have most of their tokens from one ancestor.
    """
    moved = torch.nonzero(parents != torch.arange(len(parents)))[:, 0]
    here, there = (writers[rows, :written] for rows in (moved, parents[moved]))
    others = torch.nonzero(torch.any(here != there, dim=0))
    if not len(others):
        return
    part = slice(int(others[0]), written)
    writers[moved, part] = writers[parents[moved], part]
    for (key, value), _ in cache:
        for kept in key, value:
            # index_select takes whole rows, indexing number by number
            kept[moved, :, part] = kept[:, :, part].index_select(
                0, parents[moved])
