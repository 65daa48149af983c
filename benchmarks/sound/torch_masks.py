"""Masks: additive, boolean, made inside or handed on."""

import torch
from torch import nn

from benchmarks.sound.pair import sound
from benchmarks.sound.torch_parts import (
    Attention, D, H, Mlp, V, causal, merge, split)
from benchmarks.sound.weights import drawn, both, tokens, twins

K = D // H
IDS = tokens(3, 7)
IDS[1, 5:] = IDS[2, 3:] = 0


class Masked(Attention):
    """Attention with a mask: a function makes scores of it and them."""

    def __init__(self, use):
        super().__init__()
        self.use = use

    def forward(self, x, mask):
        q, k, v = (split(layer(x)) for layer in (
            self.q_proj, self.k_proj, self.v_proj))
        weights = self.use(q @ k.mT / K ** 0.5, mask).softmax(-1)
        return self.o_proj(merge(weights @ v))


class Padded(nn.Module):
    """An encoder of padded ids; a function makes the mask."""

    def __init__(self, make, use, pooled=True):
        super().__init__()
        self.embed = nn.Embedding(V, D)
        self.norm1, self.attn = nn.LayerNorm(D), Masked(use)
        self.norm2, self.mlp = nn.LayerNorm(D), Mlp()
        self.head = nn.Linear(D, 3)
        self.make = make

    def forward(self, ids):
        x, mask = self.embed(ids), self.make(ids)
        x = x + self.attn(self.norm1(x), mask)
        x = x + self.mlp(self.norm2(x))
        return self.head(x[:, 0])


class Other(nn.Module):
    """The same, by other names, and the block is a module."""

    def __init__(self, make, use):
        super().__init__()
        self.tokens = nn.Embedding(V, D)
        self.block = nn.ModuleDict({
            "pre": nn.LayerNorm(D), "mixer": Masked(use),
            "post": nn.LayerNorm(D), "ffn": Mlp()})
        self.classify = nn.Linear(D, 3)
        self.make = make

    def forward(self, ids):
        mask, block = self.make(ids), self.block
        x = self.tokens(ids)
        x = block["mixer"](block["pre"](x), mask) + x
        x = block["ffn"](block["post"](x)) + x
        return self.classify(x.select(1, 0))


def seen(ids):
    """Which keys are seen: [B 1 1 T]."""
    return (ids != 0)[:, None, None]


def added(number):
    """A maker of additive masks: 0, or this number."""
    def make(ids):
        return (1.0 - seen(ids).double()) * number
    return make


def filled(scores, mask):
    """-inf where nothing is seen."""
    return scores.masked_fill(~mask, -torch.inf)


def summed(scores, mask):
    """An additive mask."""
    return scores + mask


def infinite(ids):
    """0 and -inf."""
    return torch.zeros(ids.shape[0], 1, 1, ids.shape[1]).double().masked_fill(
        ~seen(ids), -torch.inf)


@sound
def boolean_or_infinite():
    """A boolean mask in a, 0 and -inf added in b."""
    return twins(Padded(seen, filled), Other(infinite, summed), IDS)


@sound
def both_infinite():
    """The same 0 and -inf in both."""
    return twins(Padded(infinite, summed), Other(infinite, summed), IDS)


@sound
def infinite_or_least():
    """-inf in a, the least number of float64 in b."""
    return twins(Padded(infinite, summed), Other(
        added(torch.finfo(torch.float64).min), summed), IDS)


@sound
def boolean_or_least_of_float32():
    """A boolean mask in a, the least number of float32 added in b."""
    return twins(Padded(seen, filled), Other(
        added(torch.finfo(torch.float32).min), summed), IDS)


@sound
def minus_ten_thousand_or_billion():
    """-1e4 in a, as early BERTs; -1e9 in b."""
    return twins(Padded(added(-1e4), summed), Other(added(-1e9), summed), IDS)


@sound
def where_or_multiplied():
    """Weights of unseen keys are set to zero and summed anew in b."""
    class Renormed(Masked):
        def forward(self, x, mask):
            q, k, v = (split(layer(x)) for layer in (
                self.q_proj, self.k_proj, self.v_proj))
            weights = (q @ k.mT / K ** 0.5).softmax(-1) * mask
            weights = weights / weights.sum(-1, keepdim=True)
            return self.o_proj(merge(weights @ v))
    b = Other(seen, filled)
    b.block["mixer"] = Renormed(filled)
    return twins(Padded(seen, filled), b, IDS)


@sound
def keys_dropped_by_mask():
    """A mask in a; b takes padding out, sequence by sequence."""
    class Ragged(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Padded(lambda ids: torch.zeros(1).double(), summed)

        def forward(self, ids):
            return torch.cat([self.inner(row[row != 0][None]) for row in ids])
    return both(drawn(Padded(seen, filled)), drawn(Ragged()), IDS)


class Causal(nn.Module):
    """A decoder whose mask is an argument, a buffer or made inside."""

    def __init__(self, way):
        super().__init__()
        self.embed = nn.Embedding(V, D)
        self.self_attn = Masked(summed if way == "argument" else filled)
        self.head = nn.Linear(D, V)
        self.way = way
        if way == "buffer":  # as GPT-2's
            self.register_buffer("bias", causal(64), persistent=False)

    def forward(self, ids, mask=None):
        t = ids.shape[1]
        if self.way == "buffer":
            mask = self.bias[:t, :t]
        elif self.way == "positions":
            place = torch.arange(t)
            mask = place[None] <= place[:, None]
        x = self.embed(ids)
        return self.head(x + self.self_attn(x, mask))


@sound
def causal_buffer_or_positions():
    """A buffer is cut in a; positions are compared in b."""
    return twins(Causal("buffer"), Causal("positions"), tokens(2, 6))


@sound
def causal_by_buffer_or_outside():
    """A buffer in a; b's model makes an additive mask and hands it on."""
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.decoder = Causal("argument")

        def forward(self, ids):
            mask = nn.Transformer.generate_square_subsequent_mask(
                ids.shape[1], dtype=torch.float64)
            return self.decoder(ids, mask)
    return twins(Causal("buffer"), Outer(), tokens(2, 6))




@sound
def window_by_bands_or_distance():
    """Two triangles in a, distances in b: two keys to either side."""
    def bands(ids):
        ones = torch.ones(ids.shape[1], ids.shape[1]).bool()
        return ones.tril(2) & ones.triu(-2)

    def distances(ids):
        place = torch.arange(ids.shape[1])
        return (place[:, None] - place).abs() < 3
    return twins(Padded(bands, filled), Other(distances, filled), tokens(2, 7))
