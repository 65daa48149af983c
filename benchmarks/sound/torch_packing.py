"""Projections packed into one, or apart."""

import numpy as np
import torch
from torch import nn

from benchmarks.sound.pair import sound
from benchmarks.sound.torch_parts import (
    Attention, Block, D, F, Frame, H, Model, Port, merge, split)
from benchmarks.sound.weights import (
    arrays, both, drawn, give, normal, tokens)

K = D // H
NAMES = "q_proj", "k_proj", "v_proj"


class Packed(Attention):
    """Attention with one projection for all three.

    Args:
        order: "thirds", all queries first; "heads", as GPT-NeoX: a head's
            queries, keys and values together; "groups", as InternLM2.
    """

    def __init__(self, order, groups=H):
        nn.Module.__init__(self)
        self.qkv = nn.Linear(D, D + 2 * groups * K)
        self.proj = nn.Linear(D, D)
        self.order, self.groups = order, groups

    def forward(self, x):
        y, g = self.qkv(x), self.groups
        b, t, _ = y.shape
        if self.order == "thirds":
            q, k, v = y.split([D, g * K, g * K], -1)
            q, k, v = split(q), split(k, g), split(v, g)
        elif self.order == "stacked":  # as timm's
            q, k, v = y.reshape(b, t, 3, H, K).permute(2, 0, 3, 1, 4).unbind(0)
        elif self.order == "heads":
            q, k, v = y.view(b, t, H, 3 * K).transpose(1, 2).chunk(3, -1)
        else:
            y = y.view(b, t, g, H // g + 2, K)
            q = y[..., :-2, :].flatten(2, 3).transpose(1, 2)
            k, v = y[..., -2, :].transpose(1, 2), y[..., -1, :].transpose(1, 2)
        k, v = (each.repeat_interleave(H // g, 1) for each in (k, v))
        return self.proj(merge(self.attend(q, k, v)))


def repeated(layer):
    """Attention whose keys are repeated for its groups."""
    def attend(q, k, v):
        k, v = (x.repeat_interleave(H // layer.groups, 1) for x in (k, v))
        return Attention.attend(layer, q, k, v)
    layer.attend = attend
    return layer


def packed(columns, order, groups=H):
    """A model with three projections and a port with one.

    Args:
        columns: of the three (kernel or bias) [… features], the packed one.
    """
    a = drawn(Model(Block(repeated(Attention(groups)))))
    b = drawn(Port(Block(Packed(order, groups))))
    mine, port = a.layers[0], b.transformer.h[0]
    three = [arrays(getattr(mine.attn, name)) for name in NAMES]
    give(port.attn.qkv, *(columns(*each) for each in zip(*three)))
    give(port.attn.proj, *arrays(mine.attn.o_proj))
    give(port.ln_1, *arrays(mine.ln_1))
    give(port.ln_2, *arrays(mine.ln_2))
    give(port.mlp, *arrays(mine.mlp))
    give(b.transformer.wte, *arrays(a.embed_tokens))
    give(b.transformer.ln_f, *arrays(a.norm))
    give(b.head, *arrays(a.lm_head))
    return both(a, b, tokens(2, 7))


def in_heads(x):
    """[… D] -> [… heads K]."""
    return x.reshape(*x.shape[:-1], -1, K)


@sound
def packed_by_thirds():
    """All queries, then all keys, then all values."""
    return packed(lambda *three: np.concatenate(three, -1), "thirds")


@sound
def packed_and_stacked():
    """As timm's vision models: reshape to [B T 3 H K]."""
    return packed(lambda *three: np.concatenate(three, -1), "stacked")


@sound
def packed_by_heads():
    """A head's queries, keys and values stand together, as in GPT-NeoX."""
    return packed(lambda *three: np.concatenate(
        [*map(in_heads, three)], -1).reshape(*three[0].shape[:-1], -1),
        "heads")


@sound
def packed_groups_by_thirds():
    """Two heads of keys, behind the queries."""
    return packed(lambda *three: np.concatenate(three, -1), "thirds", 2)


@sound
def packed_by_groups():
    """A group's queries, then its key and value, as in InternLM2."""
    def columns(q, k, v):
        q = q.reshape(*q.shape[:-1], 2, -1)
        k, v = in_heads(k), in_heads(v)
        return np.concatenate([q, k, v], -1).reshape(*q.shape[:-2], -1)
    return packed(columns, "groups", 2)


class Gated(nn.Module):
    """down(silu(gate) · up)."""

    def __init__(self):
        super().__init__()
        self.gate_proj = nn.Linear(D, F, bias=False)
        self.up_proj = nn.Linear(D, F, bias=False)
        self.down_proj = nn.Linear(F, D, bias=False)

    def forward(self, x):
        return self.down_proj(
            nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))


class GatedPacked(nn.Module):
    """The same with one projection; gates first, last or in turns."""

    def __init__(self, order):
        super().__init__()
        self.fc1, self.fc2 = (nn.Linear(D, 2 * F, bias=False),
                              nn.Linear(F, D, bias=False))
        self.order = order

    def forward(self, x):
        y = self.fc1(x)
        if self.order == "turns":  # as gpt-oss'
            gate, up = y[..., ::2], y[..., 1::2]
        elif self.order == "first":
            gate, up = y.chunk(2, -1)
        else:
            return self.fc2(y[..., :F] * nn.functional.silu(y[..., F:]))
        return self.fc2(up * (gate * torch.sigmoid(gate)))


def gated(order, columns):
    """A gated layer of three projections, and one of two."""
    a, b = drawn(Frame(Gated())), drawn(Frame(GatedPacked(order)))
    give(b.core.fc1, columns(*(arrays(layer)[0] for layer in (
        a.core.gate_proj, a.core.up_proj))))
    give(b.core.fc2, *arrays(a.core.down_proj))
    give(b.proj_in, *arrays(a.proj_in))
    give(b.classifier, *arrays(a.classifier))
    return both(a, b, normal(2, 5, D))


@sound
def gate_and_up_packed():
    """Gates first, as Phi-3."""
    return gated("first", lambda gate, up: np.concatenate([gate, up], -1))


@sound
def up_and_gate_packed():
    """Gates last."""
    return gated("last", lambda gate, up: np.concatenate([up, gate], -1))


@sound
def gate_and_up_in_turns():
    """Columns alternate, as in gpt-oss."""
    return gated("turns", lambda gate, up: np.stack(
        [gate, up], -1).reshape(D, -1))


class KeysPacked(nn.Module):
    """Attention to a memory, with one projection of keys and values."""

    def __init__(self):
        super().__init__()
        self.to_q, self.to_kv = nn.Linear(D, D), nn.Linear(D, 2 * D)
        self.to_out = nn.Linear(D, D)

    def forward(self, x):
        k, v = self.to_kv(x).view(*x.shape[:2], 2, H, K).permute(
            2, 0, 3, 1, 4)
        q = split(self.to_q(x)) * K ** -0.5
        return self.to_out(merge((q @ k.mT).softmax(-1) @ v))


class Apart(Attention):
    """Attention that sees all."""

    def attend(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v)


@sound
def keys_and_values_packed():
    """Perceiver's to_kv in b."""
    a, b = drawn(Frame(Apart())), drawn(Frame(KeysPacked()))
    give(b.core.to_q, *arrays(a.core.q_proj))
    give(b.core.to_kv, *(np.concatenate(each, -1) for each in zip(
        arrays(a.core.k_proj), arrays(a.core.v_proj))))
    give(b.core.to_out, *arrays(a.core.o_proj))
    give(b.proj_in, *arrays(a.proj_in))
    give(b.classifier, *arrays(a.classifier))
    return both(a, b, normal(2, 5, D))


@sound
def concatenated_while_running():
    """Three layers, whose weights b puts together at each call."""
    class Joined(Apart):
        def forward(self, x):
            layers = self.q_proj, self.k_proj, self.v_proj
            y = nn.functional.linear(
                x, torch.cat([layer.weight for layer in layers]),
                torch.cat([layer.bias for layer in layers]))
            return self.o_proj(merge(self.attend(*map(split, y.chunk(3, -1)))))
    a, b = drawn(Frame(Apart())), drawn(Frame(Joined()))
    return both(a, b, normal(2, 5, D))


class Conv1D(nn.Module):
    """GPT-2's linear layer, whose weight is [in, out]."""

    def __init__(self, nx, nf):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(nx, nf))
        self.bias = nn.Parameter(torch.zeros(nf))

    def forward(self, x):
        return torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight
                           ).view(*x.shape[:-1], -1)


@sound
def linear_or_conv1d():
    """Linear in a, GPT-2's transposed addmm in b."""
    class Old(nn.Module):
        def __init__(self):
            super().__init__()
            self.c_fc, self.c_proj = Conv1D(D, F), Conv1D(F, D)

        def forward(self, x):
            return self.c_proj(nn.functional.gelu(self.c_fc(x)))
    a, b = drawn(Model(Block())), drawn(Port(Block(mlp=Old())))
    return both(a, b, tokens(2, 7))
