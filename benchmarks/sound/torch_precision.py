"""Models in float32, in bfloat16, and in float64 with float32 inside."""

import functools

import torch
from torch import nn

from benchmarks.sound.pair import sound
from benchmarks.sound.torch_boundaries import Residual
from benchmarks.sound.torch_parts import (
    Attention, Block, D, F, H, Mlp, Model, Port, Seeing, V, Vision, causal,
    merge, split)
from benchmarks.sound.weights import normal, tokens, twins

fn = nn.functional
K = D // H
single = functools.partial(sound, dtype="float32")
half = functools.partial(sound, dtype="bfloat16")
inside = functools.partial(sound, dtype="float32 inside")


class Fused(Attention):
    """Attention by PyTorch's function."""

    def attend(self, q, k, v):
        return fn.scaled_dot_product_attention(q, k, v, is_causal=True)


class Root(nn.Module):
    """RMS norm, in a dtype of its own or in the input's."""

    def __init__(self, dtype=None, late=True):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(D))
        self.dtype, self.late = dtype, late

    def forward(self, x):
        y = x.to(self.dtype or x.dtype)
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        if self.late:  # as Llama's: the scale after the cast
            return self.weight * y.to(x.dtype)
        return (y * self.weight.to(y.dtype)).to(x.dtype)  # as Gemma's


@single
def float32_other_names():
    """The same operations by other names."""
    return twins(Model(Block()), Port(Block()), tokens(2, 7))


@single
def float32_eager_or_sdpa():
    """By hand in a, the fused function in b."""
    return twins(Model(Block()), Port(Block(Fused())), tokens(2, 7))


@single
def float32_residual_inside():
    """The block adds in a; each sublayer in b."""
    return twins(Model(Block()), Port(nn.Sequential(
        Residual(Attention()), Residual(Mlp()))), tokens(2, 7))


@single
def float32_queries_scaled_before():
    """Scores are divided in a, queries multiplied in b."""
    class Before(Attention):
        def attend(self, q, k, v):
            return ((q * K ** -0.5) @ k.mT).masked_fill(
                ~causal(q.shape[2]), -torch.inf).softmax(-1) @ v
    return twins(Model(Block(), Block()), Port(*(
        Block(Before()) for _ in "12")), tokens(2, 7))


@single
def float32_rms_root_or_rsqrt():
    """rsqrt in a, nn.RMSNorm in b."""
    return twins(Model(Block(norm=lambda _: Root())), Port(Block(
        norm=lambda _: nn.RMSNorm(D, eps=1e-6))), tokens(2, 7))


@single
def float32_depthwise_and_pointwise():
    """[B C S S] in a; b has channels last in memory."""
    class Core(nn.Sequential):
        def __init__(self, last):
            super().__init__(nn.Conv2d(8, 8, 3, padding=1, groups=8),
                             nn.BatchNorm2d(8), nn.ReLU(),
                             nn.Conv2d(8, 12, 1))
            self.last = last

        def forward(self, x):
            if self.last:
                x = x.to(memory_format=torch.channels_last)
            return super().forward(x)
    return twins(Vision(Core(False), 12), Seeing(Core(True), 12),
                 normal(2, 3, 8, 8))


@half
def bfloat16_other_names():
    """The same operations by other names."""
    return twins(Model(Block(), Block()), Port(Block(), Block()),
                 tokens(2, 7))


@half
def bfloat16_residual_inside():
    """The same operations, cut elsewhere."""
    return twins(Model(Block()), Port(nn.Sequential(
        Residual(Attention()), Residual(Mlp()))), tokens(2, 7))


@half
def bfloat16_flat():
    """The same operations, in one Sequential."""
    return twins(Vision(nn.Sequential(nn.Conv2d(8, 8, 3), nn.ReLU())),
                 Seeing(nn.Sequential(nn.Conv2d(8, 8, 3), nn.ReLU())),
                 normal(2, 3, 8, 8))


@half
def bfloat16_rms_in_float32():
    """Both norms are in float32, one by name and one by method."""
    class Cast(nn.Module):
        def __init__(self):
            super().__init__()
            self.gamma = nn.Parameter(torch.ones(D))

        def forward(self, hidden):
            x = hidden.float()
            x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
            return x.type_as(hidden) * self.gamma
    return twins(Model(Block(norm=lambda _: Root(torch.float32))),
                 Port(Block(norm=lambda _: Cast())), tokens(2, 7))


@inside
def inside_rms():
    """Llama's norm in float32 in a, all float64 in b."""
    return twins(Model(Block(norm=lambda _: Root(torch.float32))),
                 Port(Block(norm=lambda _: Root())), tokens(2, 7))


@inside
def inside_rms_early():
    """Gemma's norm, with its scale inside, in a; nn.RMSNorm in b."""
    return twins(Model(Block(norm=lambda _: Root(torch.float32, False))),
                 Port(Block(norm=lambda _: nn.RMSNorm(D, eps=1e-6))),
                 tokens(2, 7))


class Soft(Attention):
    """Attention whose softmax is in this dtype."""

    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype

    def attend(self, q, k, v):
        scores = (q @ k.mT * K ** -0.5).masked_fill(
            ~causal(q.shape[2]), -torch.inf)
        return fn.softmax(scores, -1, dtype=self.dtype).to(q.dtype) @ v


@inside
def inside_softmax():
    """softmax in float32 in a, in float64 in b."""
    return twins(Model(Block(Soft(torch.float32))), Port(Block(Soft(None))),
                 tokens(2, 7))


@inside
def inside_softmax_or_sdpa():
    """softmax in float32 in a, the fused function in b."""
    return twins(Model(Block(Soft(torch.float32)), Block(Soft(torch.float32))),
                 Port(Block(Fused()), Block(Fused())), tokens(2, 7))


class Turned(Attention):
    """Attention with rotary angles in this dtype."""

    def __init__(self, dtype):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / (10000.0 ** (
            torch.arange(0, K, 2, dtype=dtype) / K)), persistent=False)
        self.dtype = dtype

    def attend(self, q, k, v):
        angle = torch.outer(torch.arange(q.shape[2], dtype=self.dtype),
                            self.inv_freq.to(self.dtype))
        angle = torch.cat([angle, angle], -1)
        cos, sin = angle.cos().to(q.dtype), angle.sin().to(q.dtype)

        def turn(x):
            one, two = x.chunk(2, -1)
            return x * cos + torch.cat([-two, one], -1) * sin
        return super().attend(turn(q), turn(k), v)


@inside
def inside_rotary():
    """Angles in float32 in a, in float64 in b."""
    return twins(Model(Block(Turned(torch.float32))),
                 Port(Block(Turned(torch.float64))), tokens(2, 7))


@inside
def inside_all_three():
    """Norm, softmax and rotary in float32 in a, none in b."""
    class Three(Turned):
        def attend(self, q, k, v):
            if self.dtype == torch.float64:
                return super().attend(q, k, v)
            self.softer = Soft(torch.float32).attend
            angle = torch.outer(torch.arange(q.shape[2]).float(),
                                self.inv_freq.float()).repeat(1, 2)

            def turn(x):
                one, two = x.chunk(2, -1)
                return (x.float() * angle.cos() + torch.cat(
                    [-two, one], -1).float() * angle.sin()).to(x.dtype)
            return self.softer(turn(q), turn(k), v)
    return twins(
        Model(*(Block(Three(torch.float32), norm=lambda _: Root(
            torch.float32)) for _ in "12")),
        Port(*(Block(Three(torch.float64), norm=lambda _: Root())
               for _ in "12")), tokens(2, 7))


@inside
def inside_layer_norm():
    """LayerNorm on x.float() in a, as MPT; float64 in b."""
    class Lower(nn.LayerNorm):
        def forward(self, x):
            return fn.layer_norm(
                x.float(), (D,), self.weight.float(), self.bias.float(),
                self.eps).to(x.dtype)
    return twins(Model(Block(norm=Lower)), Port(Block()), tokens(2, 7))


@inside
def inside_head():
    """Logits in float32 in a, as many heads; in float64 in b."""
    class Lower(Model):
        def forward(self, ids):
            x = self.embed_tokens(ids)
            for layer in self.layers:
                x = layer(x)
            return fn.linear(self.norm(x).float(), self.lm_head.weight.float()
                             ).double()
    return twins(Lower(Block()), Port(Block()), tokens(2, 7))


@inside
def inside_integer_quotient():
    """A mask of integers over its count is float32, whatever the model."""
    class Mean(nn.Module):
        def __init__(self, exact):
            super().__init__()
            self.embed, self.fc = nn.Embedding(V, D), nn.Linear(D, F)
            self.exact = exact

        def forward(self, ids):
            seen = (ids > 5).double() if self.exact else (ids > 5).long()
            weights = (seen / seen.sum(1, keepdim=True)).double()
            return self.fc(torch.einsum("bt,btd->bd", weights,
                                        self.embed(ids)))
    return twins(Mean(False), Mean(True), tokens(3, 7))


@inside
def inside_sinusoids():
    """Sinusoids in float32 in a, as the tutorial; in float64 in b."""
    class Placed(nn.Module):
        def __init__(self, dtype):
            super().__init__()
            self.embed, self.block = nn.Embedding(V, D), Block()
            self.head, self.dtype = nn.Linear(D, V), dtype

        def forward(self, ids):
            rate = torch.exp(torch.arange(0, D, 2, dtype=self.dtype)
                             * -(9.210340371976184 / D))
            angle = torch.arange(ids.shape[1], dtype=self.dtype)[:, None]
            angle = angle * rate
            x = self.embed(ids) + torch.cat([angle.sin(), angle.cos()], -1)
            return self.head(self.block(x))
    return twins(Placed(torch.float32), Placed(torch.float64), tokens(2, 7))


@inside
def inside_router():
    """A router in float32 in a, in float64 in b."""
    class Routed(nn.Module):
        def __init__(self, dtype):
            super().__init__()
            self.gate = nn.Linear(D, 3, bias=False)
            self.experts = nn.ModuleList(Mlp() for _ in range(3))
            self.dtype = dtype

        def forward(self, x):
            logits = fn.linear(x.to(self.dtype),
                               self.gate.weight.to(self.dtype))
            weights = logits.softmax(-1).to(x.dtype)
            return sum(weights[..., i, None] * expert(x)
                       for i, expert in enumerate(self.experts))
    return twins(Model(Block(mlp=Routed(torch.float32))),
                 Port(Block(mlp=Routed(torch.float64))), tokens(2, 7))


@inside
def inside_scores():
    """Products of queries and keys in float32 in a, as GPT-J's."""
    class Lower(Attention):
        def attend(self, q, k, v):
            scores = q.float() @ k.float().mT / K ** 0.5
            weights = scores.masked_fill(
                ~causal(q.shape[2]), torch.finfo(scores.dtype).min
            ).softmax(-1).to(v.dtype)
            return weights @ v

    class Wide(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.o = (nn.Linear(D, D)
                                              for _ in range(4))

        def forward(self, x):
            q, k, v = (split(f(x)) for f in (self.q, self.k, self.v))
            return self.o(merge(fn.scaled_dot_product_attention(
                q, k, v, is_causal=True)))
    return twins(Model(Block(Lower())), Port(Block(Wide())), tokens(2, 7))
