"""Cached keys and values, the memory's too, written in place.

The memory's are computed once for a whole search, and the hypotheses of a
source share them. Self-attention's are in tensors of the full length, of which
only the written part is read or moved.
"""

import torch

from impl_torch.fast.attention import one_call


def keys_and_values(attention, x):
    """An attention's key and value of x [R S D]: [R G S K] each."""
    # A product of many matrices would copy them first, every time.
    return (attention.split(attention.key(x)).contiguous(),
            attention.split(attention.value(x)).contiguous())


def attend(attention, x, key, value, mask):
    """An attention's output for x [R T D], its keys and values given."""
    context = one_call(attention.split(attention.query(x)), key, value, mask,
                       False, attention.divisor)
    return attention.output(attention.merge(context))


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


def decode_one(model, token, position, cache, source_mask):
    """Decode one token of every row, int [R], at a position: [R 1 D].

    Its key and value are written into the cache. The hypotheses of a source
    read its memory as if they were its tokens; source_mask is [B 1 1 S].
    """
    embedded = model.target_embedding(token[:, None])
    positions = model.target_positions
    x = embedded + positions.table[positions.first + position].to(embedded)
    written = slice(position + 1)
    for layer, ((key, value), memory) in zip(model.decoder.layers, cache):
        y = layer.self_attention_residual.before(x)
        key_, value_ = keys_and_values(layer.self_attention, y)
        key[:, :, position], value[:, :, position] = (
            key_[:, :, 0], value_[:, :, 0])
        y = attend(layer.self_attention, y, key[:, :, written],
                   value[:, :, written], None)
        x = layer.self_attention_residual.after(x, y)
        y = layer.cross_attention_residual.before(x)
        y = y.reshape(len(source_mask), -1, y.shape[-1])
        y = attend(layer.cross_attention, y, *memory, source_mask)
        x = layer.cross_attention_residual.after(x, y.reshape(x.shape))
        y = layer.feed_forward_residual.before(x)
        x = layer.feed_forward_residual.after(x, layer.feed_forward(y))
    return model.decoder.norm(x)


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
