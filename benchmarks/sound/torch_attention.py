"""Attention, written in other ways."""

import math

import torch
from torch import nn

from benchmarks.sound.pair import sound
from benchmarks.sound.torch_parts import (
    Attention, Block, D, Frame, H, Model, Port, causal, merge, split)
from benchmarks.sound.weights import (
    arrays, both, drawn, give, normal, tokens, twins)

K = D // H
sdpa = nn.functional.scaled_dot_product_attention


def attending(attend, **settings):
    """Attention with this function instead of its own."""
    layer = Attention(**settings)
    layer.attend = attend
    return layer


def against(attend, mine=None, **settings):
    """A model with Attention, or this one, and a port with another."""
    a = attending(mine, **settings) if mine else Attention(**settings)
    return twins(Model(Block(a)), Port(Block(attending(attend, **settings))),
                 tokens(2, 7))


@sound
def queries_scaled_before():
    """Scores are divided in a, queries multiplied in b."""
    def attend(q, k, v):
        scores = (q * K ** -0.5) @ k.mT
        return torch.where(causal(q.shape[2]), scores, -torch.inf
                           ).softmax(-1) @ v
    return against(attend)


@sound
def fourth_root_on_both():
    """Queries and keys each take the fourth root, as Whisper has it."""
    def attend(q, k, v):
        scale = K ** -0.25
        scores = (q * scale) @ (k * scale).mT
        return (scores + torch.full(scores.shape[-2:], -torch.inf).triu(1)
                ).softmax(-1) @ v
    return against(attend)


@sound
def scale_in_weights():
    """1/√d_k is multiplied into the projection of queries."""
    def attend(q, k, v):
        return (q @ k.mT).masked_fill(
            ~causal(q.shape[2]), -torch.inf).softmax(-1) @ v
    a = drawn(Model(Block()))
    b = drawn(Port(Block(attending(attend))))
    layer = b.transformer.h[0].attn.q_proj
    give(layer, *(array / math.sqrt(K) for array in arrays(layer)))
    return both(a, b, tokens(2, 7))


@sound
def eager_or_sdpa():
    """By hand in a, PyTorch's fused function in b."""
    return against(lambda q, k, v: sdpa(q, k, v, is_causal=True))


@sound
def sdpa_with_mask():
    """is_causal in a, a boolean mask in b."""
    return against(
        lambda q, k, v: sdpa(q, k, v, attn_mask=causal(q.shape[2])),
        lambda q, k, v: sdpa(q, k, v, is_causal=True))


@sound
def einsum_or_matmul():
    """Products are einsums in b."""
    def attend(q, k, v):
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / K ** 0.5
        scores = scores.masked_fill(~causal(q.shape[2]), -torch.inf)
        return torch.einsum("bhqk,bhkd->bhqd", scores.softmax(-1), v)
    return against(attend)


@sound
def heads_folded_into_batch():
    """bmm over [B·H T K] in b."""
    def attend(q, k, v):
        b, h, t, d = q.shape
        q, k, v = (x.reshape(b * h, t, d) for x in (q, k, v))
        mask = q.new_full((t, t), -torch.inf).triu(1).expand(b * h, t, t)
        scores = torch.baddbmm(mask, q, k.transpose(1, 2), alpha=d ** -0.5)
        return torch.bmm(scores.softmax(-1), v).view(b, h, t, d)
    return against(attend)


class HeadsThird(nn.Module):
    """Heads stay the third axis: [B T H K]."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.dense = (
            nn.Linear(D, D) for _ in range(4))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (layer(x).view(b, t, H, K)
                   for layer in (self.query, self.key, self.value))
        scores = torch.einsum("bqhd,bkhd->bqkh", q, k) * K ** -0.5
        scores = scores.masked_fill(~causal(t)[..., None], -torch.inf)
        out = torch.einsum("bqkh,bkhd->bqhd", scores.softmax(2), v)
        return self.dense(out.reshape(b, t, D))


@sound
def heads_third_axis():
    """Heads are axis 1 in a, axis 2 or last in b."""
    return twins(Model(Block()), Port(Block(HeadsThird())), tokens(2, 7))


@sound
def softmax_by_hand():
    """exp of shifted scores over their sum in b."""
    def attend(q, k, v):
        scores = (q @ k.mT / K ** 0.5).masked_fill(
            ~causal(q.shape[2]), -torch.inf)
        e = torch.exp(scores - scores.amax(-1, keepdim=True))
        return (e / e.sum(-1, keepdim=True)) @ v
    return against(attend)


@sound
def softmax_divided_last():
    """No shift, and contexts are divided instead of weights."""
    def attend(q, k, v):
        e = torch.exp(q @ k.mT / K ** 0.5) * causal(q.shape[2])
        return (e @ v) / e.sum(-1, keepdim=True)
    return against(attend)


@sound
def softmax_online():
    """Keys are taken in chunks, with a running maximum and sum."""
    def attend(q, k, v):
        seen = causal(q.shape[2])
        top = q.new_full((*q.shape[:3], 1), -1e30)
        total, out = torch.zeros_like(top), torch.zeros_like(v)
        for begin in range(0, k.shape[2], 3):
            part = slice(begin, begin + 3)
            s = (q @ k[:, :, part].mT / K ** 0.5).masked_fill(
                ~seen[:, part], -torch.inf)
            new = torch.maximum(top, s.amax(-1, keepdim=True))
            p, shrink = torch.exp(s - new), torch.exp(top - new)
            total = total * shrink + p.sum(-1, keepdim=True)
            out = out * shrink + p @ v[:, :, part]
            top = new
        return out / total
    return against(attend)


class ManyHeads(nn.Module):
    """A module for each head, and a sum of their projections."""

    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(
            nn.ModuleList(nn.Linear(D, K, bias=False) for _ in range(3))
            for _ in range(H))
        self.out = nn.ModuleList(nn.Linear(K, D, bias=False)
                                 for _ in range(H))

    def forward(self, x):
        total = 0
        for (q, k, v), out in zip(self.heads, self.out):
            scores = q(x) @ k(x).mT / K ** 0.5
            scores = scores.masked_fill(~causal(x.shape[1]), -torch.inf)
            total = total + out(scores.softmax(-1) @ v(x))
        return total


@sound
def loop_over_heads():
    """All heads at once in a; in b a loop, projected one by one."""
    a = drawn(Model(Block(Attention(bias=False))))
    b = drawn(Port(Block(ManyHeads())))
    copy = dict(zip(("q_proj", "k_proj", "v_proj"), range(3)))
    mine, port = a.layers[0].attn, b.transformer.h[0].attn
    for name, at in copy.items():
        for head, columns in enumerate(torch.arange(D).view(H, K)):
            give(port.heads[head][at],
                 arrays(getattr(mine, name))[0][:, columns])
    for head, rows in enumerate(torch.arange(D).view(H, K)):
        give(port.out[head], arrays(mine.o_proj)[0][rows])
    give(b.transformer.h[0].mlp, *arrays(a.layers[0].mlp))
    give(b.transformer.ln_f, *arrays(a.norm))
    give(b.head, *arrays(a.lm_head))
    return both(a, b, tokens(2, 7))


def repeated(q, k, v):
    """Grouped queries: keys and values are repeated."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    return Attention.attend(None, q, k, v)


@sound
def groups_repeated_or_split():
    """Keys are repeated in a; in b queries are split into groups."""
    def attend(q, k, v):
        b, h, t, d = q.shape
        q = q.view(b, k.shape[1], -1, t, d)
        scores = torch.einsum("bgrqd,bgkd->bgrqk", q, k) / d ** 0.5
        scores = scores.masked_fill(~causal(t), -torch.inf)
        return torch.einsum("bgrqk,bgkd->bgrqd", scores.softmax(-1), v
                            ).reshape(b, h, t, d)
    return against(attend, repeated, groups=2)


@sound
def groups_in_sdpa():
    """Keys are expanded in a; PyTorch's enable_gqa in b."""
    return against(
        lambda q, k, v: sdpa(q, k, v, is_causal=True, enable_gqa=True),
        repeated, groups=2)


@sound
def one_key_head_broadcast():
    """Multi-query attention: expand in a, broadcast in b."""
    def attend(q, k, v):
        scores = (q @ k.mT) * K ** -0.5
        return scores.masked_fill(
            ~causal(q.shape[2]), -torch.inf).softmax(-1) @ v
    return against(attend, repeated, groups=1)


@sound
def capped_scores():
    """Gemma's cap: the scale is inside tanh's quotient in b."""
    def mine(q, k, v):
        s = 5.0 * torch.tanh(q @ k.mT / K ** 0.5 / 5.0)
        return s.masked_fill(~causal(q.shape[2]), -torch.inf).softmax(-1) @ v

    def attend(q, k, v):
        s = torch.tanh((q / (5.0 * K ** 0.5)) @ k.mT).mul(5.0)
        return (s + torch.full(s.shape[-2:], -torch.inf).triu(1)
                ).softmax(-1) @ v
    return against(attend, mine)


@sound
def sink_as_column():
    """A logit that takes weight away: a column in a, a summand in b."""
    class Sinks(Attention):
        def __init__(self, column):
            super().__init__()
            self.sinks = nn.Parameter(torch.zeros(H))
            self.column = column

        def attend(self, q, k, v):
            s = (q @ k.mT / K ** 0.5).masked_fill(
                ~causal(q.shape[2]), -torch.inf)
            sink = self.sinks.view(1, H, 1, 1).expand(*s.shape[:3], 1)
            if self.column:
                return torch.cat([s, sink], -1).softmax(-1)[..., :-1] @ v
            e = torch.exp(s)
            return (e / (e.sum(-1, keepdim=True) + torch.exp(sink))) @ v
    return twins(Model(Block(Sinks(True))), Port(Block(Sinks(False))),
                 tokens(2, 7))


@sound
def linear_attention_order():
    """(φ(Q) φ(K)ᵀ) V in a, φ(Q) (φ(K)ᵀ V) in b."""
    def phi(x):
        return nn.functional.elu(x) + 1

    def mine(q, k, v):
        weights = phi(q) @ phi(k).mT
        return weights @ v / weights.sum(-1, keepdim=True)

    def attend(q, k, v):
        q, k = phi(q), phi(k)
        total = torch.einsum("bhqd,bhd->bhq", q, k.sum(2))
        return q @ (k.mT @ v) / total[..., None]
    return against(attend, mine)


@sound
def multihead_attention_or_hand():
    """nn.MultiheadAttention in a, four projections in b."""
    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.mha = nn.MultiheadAttention(D, H, batch_first=True)

        def forward(self, x):
            return self.mha(x, x, x, attn_mask=~causal(x.shape[1]),
                            need_weights=False)[0]
    a, b = drawn(Frame(Packed())), drawn(Frame(Attention()))
    mha = a.core.mha
    rows = mha.in_proj_weight.detach().chunk(3)
    for at, name in enumerate(("q_proj", "k_proj", "v_proj")):
        give(getattr(b.core, name), rows[at].numpy().T,
             mha.in_proj_bias.detach().chunk(3)[at].numpy())
    give(b.core.o_proj, *arrays(mha.out_proj))
    for name in ("proj_in", "classifier"):
        give(getattr(b, name), *arrays(getattr(a, name)))
    return both(a, b, normal(2, 6, D))


class Cross(nn.Module):
    """Attention to a memory; keys may be made before it."""

    def __init__(self, outside):
        super().__init__()
        self.wq = nn.Linear(D, D)
        if not outside:
            self.wk, self.wv = nn.Linear(D, D), nn.Linear(D, D)
        self.outside = outside

    def forward(self, x, memory):
        k, v = (memory if self.outside
                else (split(self.wk(memory)), split(self.wv(memory))))
        return merge((split(self.wq(x)) @ k.mT / K ** 0.5).softmax(-1) @ v)


@sound
def cross_keys_outside():
    """The memory is projected inside a's attention, by b's model."""
    class Inside(nn.Module):
        def __init__(self):
            super().__init__()
            self.cross = Cross(False)
            self.fc = nn.Linear(D, D)

        def forward(self, x, memory):
            return self.fc(x + self.cross(x, memory))

    class Outside(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = Cross(True)
            self.keys, self.values, self.out = (
                nn.Linear(D, D) for _ in range(3))

        def forward(self, x, memory):
            made = split(self.keys(memory)), split(self.values(memory))
            return self.out(x + self.attention(x, made))
    return twins(Inside(), Outside(), normal(2, 5, D),
                 normal(2, 8, D, seed=4))
