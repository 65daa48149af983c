"""Where things stand: rotary, sinusoids, tables, ALiBi, buckets."""

import math

import torch
from torch import nn

from benchmarks.sound.pair import sound
from benchmarks.sound.torch_parts import (
    Attention, Block, D, H, Model, Port, V, causal)
from benchmarks.sound.weights import arrays, both, drawn, give, tokens, twins

K = D // H


def angles(t, base=10000.0):
    """[T K/2], in float64."""
    inverse = base ** (-torch.arange(0, K, 2).double() / K)
    return torch.arange(t).double()[:, None] * inverse


def halves(x, base=10000.0):
    """Rotary by halves, with cosine and sine of the whole width."""
    angle = torch.cat([angles(x.shape[2], base)] * 2, -1)
    one, two = x.chunk(2, -1)
    return x * angle.cos() + torch.cat([-two, one], -1) * angle.sin()


def halves_complex(x):
    """The same with complex numbers."""
    one, two = x.chunk(2, -1)
    angle = angles(x.shape[2])
    turned = torch.complex(one, two) * torch.polar(
        torch.ones_like(angle), angle)
    return torch.cat([turned.real, turned.imag], -1)


def halves_apart(x):
    """The same, each half by itself."""
    one, two = x[..., :K // 2], x[..., K // 2:]
    angle = angles(x.shape[2])
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([one * cos - two * sin, two * cos + one * sin], -1)


def pairs(x):
    """Rotary of neighbours, by view_as_complex, as Llama's own code."""
    turned = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()
                                   ) * torch.exp(1j * angles(x.shape[2]))
    return torch.view_as_real(turned).flatten(-2)


def pairs_apart(x):
    """The same by even and odd places, as GPT-J's code."""
    even, odd, angle = x[..., ::2], x[..., 1::2], angles(x.shape[2])
    cos, sin = angle.cos(), angle.sin()
    return torch.stack([even * cos - odd * sin, odd * cos + even * sin], -1
                       ).flatten(-2)


class Rotary(Attention):
    """Attention that turns queries and keys."""

    def __init__(self, turn):
        super().__init__()
        self.turn = turn

    def attend(self, q, k, v):
        return super().attend(self.turn(q), self.turn(k), v)


def turned(one, two):
    """Two models with these rotations."""
    return twins(Model(Block(Rotary(one))), Port(Block(Rotary(two))),
                 tokens(2, 7))


@sound
def rotary_halves_complex():
    """Cosines and sines in a, complex numbers in b."""
    return turned(halves, halves_complex)


@sound
def rotary_halves_apart():
    """rotate_half in a, each half by itself in b."""
    return turned(halves, halves_apart)


@sound
def rotary_pairs_complex():
    """Even and odd places in a, complex numbers in b."""
    return turned(pairs_apart, pairs)


@sound
def rotary_pairs_as_halves():
    """Neighbours turn in a; b's weights are sorted so that halves do."""
    a = drawn(Model(Block(Rotary(pairs))))
    b = drawn(Port(Block(Rotary(halves))))
    order = torch.arange(D).view(H, K // 2, 2).mT.flatten().numpy()
    attention = b.transformer.h[0].attn
    for layer in (attention.q_proj, attention.k_proj):
        give(layer, *(array[..., order] for array in arrays(layer)))
    return both(a, b, tokens(2, 7))


@sound
def rotary_base_as_exponent():
    """base^(-2i/d) in a, exp(-2i/d · ln base) in b."""
    def turn(x):
        inverse = torch.exp(torch.arange(0, K, 2).double()
                            * -(math.log(10000.0) / K))
        angle = torch.outer(torch.arange(x.shape[2]).double(), inverse)
        angle = angle.repeat(1, 2)
        rotated = torch.roll(x, K // 2, -1) * torch.tensor(
            [-1.0] * (K // 2) + [1.0] * (K // 2)).double()
        return x * angle.cos() + rotated * angle.sin()
    return turned(halves, turn)


class Tables(nn.Module):
    """A model that makes cosine and sine once and hands them to its blocks."""

    def __init__(self):
        super().__init__()
        angle = torch.cat([angles(32)] * 2, -1)
        self.register_buffer("cos_cached", angle.cos(), persistent=False)
        self.register_buffer("sin_cached", angle.sin(), persistent=False)
        self.embed_tokens = nn.Embedding(V, D)
        self.layers = nn.ModuleList([Block(Rotary(self.turn))
                                     for _ in range(2)])
        self.norm, self.lm_head = nn.LayerNorm(D), nn.Linear(D, V, bias=False)

    def turn(self, x):
        cos, sin = (table[torch.arange(x.shape[2])][None, None]
                    for table in (self.cos_cached, self.sin_cached))
        one, two = x.chunk(2, -1)
        return x * cos + torch.cat((-two, one), -1) * sin

    def forward(self, ids):
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.norm(x))


@sound
def rotary_table_or_computed():
    """Tables are buffers of the model in a, computed in every block in b."""
    return twins(Tables(), Port(*(Block(Rotary(halves)) for _ in "12")),
                 tokens(2, 7))


def stacked(t):
    """Sinusoids, interleaved by stack."""
    angle = torch.arange(t).double()[:, None] * 10000.0 ** (
        -torch.arange(0, D, 2).double() / D)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


def assigned(t):
    """The same, written into every other column."""
    table = torch.zeros(t, D).double()
    place = torch.arange(t).double().unsqueeze(1)
    rate = torch.exp(torch.arange(0, D, 2).double()
                     * (-math.log(10000.0) / D))
    table[:, 0::2] = torch.sin(place * rate)
    table[:, 1::2] = torch.cos(place * rate)
    return table


class Placed(nn.Module):
    """Rows are added to embeddings: computed, or a module's buffer."""

    def __init__(self, rows, kept):
        super().__init__()
        self.embed, self.block = nn.Embedding(V, D), Block()
        self.head = nn.Linear(D, V)
        self.rows = rows
        if kept:
            self.pos = Position(rows)
        self.kept = kept

    def forward(self, ids):
        x = self.embed(ids)
        x = self.pos(x) if self.kept else x + self.rows(ids.shape[1])
        return self.head(self.block(x))


class Position(nn.Module):
    """The tutorial's positional encoding."""

    def __init__(self, rows):
        super().__init__()
        self.register_buffer("pe", rows(50)[None])

    def forward(self, x):
        return x + self.pe[:, :x.size(1)]


@sound
def sinusoids_stacked_or_assigned():
    """Interleaved by stack in a, by assignment and a buffer in b."""
    return twins(Placed(stacked, False), Placed(assigned, True), tokens(2, 7))


class Learned(nn.Module):
    """A table of positions, read by ids, by a slice or through arguments."""

    def __init__(self, way):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(V, D), nn.Embedding(32, D)
        self.block, self.head, self.way = Block(), nn.Linear(D, V), way

    def forward(self, ids, position_ids=None):
        x = self.wte(ids)
        if position_ids is None:
            position_ids = torch.arange(ids.shape[1])[None]
        x = x + (self.wpe.weight[:ids.shape[1]] if self.way == "slice"
                 else self.wpe(position_ids))
        return self.head(self.block(x))


@sound
def positions_looked_up_or_sliced():
    """An embedding's call in a, a slice of its weight in b."""
    return twins(Learned("ids"), Learned("slice"), tokens(2, 7))


@sound
def positions_counted_from_two():
    """OPT's table has two rows more, and ids begin with 2."""
    class Offset(Learned):
        def __init__(self):
            super().__init__("ids")
            self.wpe = nn.Embedding(34, D)

        def forward(self, ids):
            places = torch.ones_like(ids).cumsum(1) + 1
            return super().forward(ids, places)
    a, b = drawn(Learned("ids")), drawn(Offset())
    for name in ("wte", "block", "head"):
        give(getattr(b, name), *arrays(getattr(a, name)))
    table = arrays(b.wpe)[0]
    table[2:] = arrays(a.wpe)[0]
    give(b.wpe, table)
    return both(a, b, tokens(2, 7))


SLOPES = 2.0 ** (-8.0 * torch.arange(1, H + 1).double() / H)


class Alibi(Attention):
    """Scores with ALiBi: of distances, or of keys' places alone."""

    def __init__(self, way):
        super().__init__()
        self.way = way

    def attend(self, q, k, v):
        t = q.shape[2]
        place = torch.arange(t).double()
        distance = place if self.way == "keys" else (
            place[None] - place[:, None])
        bias = SLOPES[:, None, None] * distance
        if self.way == "sdpa":
            return nn.functional.scaled_dot_product_attention(
                q, k, v, bias.masked_fill(~causal(t), -torch.inf)[None])
        scores = q @ k.mT / K ** 0.5 + bias
        return scores.masked_fill(~causal(t), -torch.inf).softmax(-1) @ v


@sound
def alibi_of_keys_or_distances():
    """Distances in a; places of keys in b, as BLOOM, equal after softmax."""
    return twins(Model(Block(Alibi("distances"))),
                 Port(Block(Alibi("keys"))), tokens(2, 7))


@sound
def alibi_in_mask():
    """Added to scores in a, in sdpa's mask in b."""
    return twins(Model(Block(Alibi("distances"))),
                 Port(Block(Alibi("sdpa"))), tokens(2, 7))


class Relative(Attention):
    """A learned bias by distance: gathered, or rows that are shifted."""

    def __init__(self, gather):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(H, 31))
        self.gather = gather

    def attend(self, q, k, v):
        t = q.shape[2]
        if self.gather:
            place = torch.arange(t)
            bias = self.bias[:, place[:, None] - place + 15]
        else:
            flipped = self.bias.flip(-1)[:, 15 - t + 1:15 + t]
            bias = torch.stack([flipped[:, t - 1 - i:2 * t - 1 - i]
                                for i in range(t)], 1)
        return ((q @ k.mT) * K ** -0.5 + bias).softmax(-1) @ v


@sound
def relative_gathered_or_shifted():
    """Swin's and T5's bias by an index in a, by shifted rows in b."""
    return twins(Model(Block(Relative(True))), Port(Block(Relative(False))),
                 tokens(2, 7))
