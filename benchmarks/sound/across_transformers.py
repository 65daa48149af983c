"""Transformers of PyTorch, against the same in Flax NNX."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx
from torch import nn

from benchmarks.sound import nnx_attention, nnx_ways, torch_packing
from benchmarks.sound import nnx_parts as nnx_
from benchmarks.sound import torch_parts as torch_
from benchmarks.sound import torch_positions as places
from benchmarks.sound.nnx_attention import Attending, fused
from benchmarks.sound.pair import sound
from benchmarks.sound.torch_attention import HeadsThird, attending, repeated
from benchmarks.sound.torch_experts import Mixture
from benchmarks.sound.torch_precision import Fused, Root, Soft
from benchmarks.sound.weights import (
    arrays, both, drawn, give, normal, tokens, twins)

D, H, K, V = torch_.D, torch_.H, nnx_.K, torch_.V
IDS = tokens(2, 7)
fn = nn.functional
inside = functools.partial(sound, dtype="float32 inside")


def blocks(one, two):
    """A model of PyTorch with one block, one of NNX with another."""
    return twins(torch_.Model(one), nnx_.Model(two), IDS)


def attentions(one, two):
    """Models with these attentions."""
    return blocks(torch_.Block(one), nnx_.Block(two))


@sound
def to_nnx_whole():
    """Two blocks, written alike."""
    return twins(torch_.Model(torch_.Block(), torch_.Block()),
                 nnx_.Model(nnx_.Block(), nnx_.Block()), IDS)


@sound
def to_nnx_other_cut():
    """GPT-2's nesting in a, one Sequential behind an embedding in b."""
    return twins(torch_.Port(torch_.Block(), torch_.Block()),
                 nnx_.Port(nnx_.Block(), nnx_.Block()), IDS)


@sound(dtype="float32")
def to_nnx_in_float32():
    """Two blocks in float32."""
    return twins(torch_.Model(torch_.Block(), torch_.Block()),
                 nnx_.Model(nnx_.Block(), nnx_.Block()), IDS)


@sound
def from_nnx_to_torch():
    """NNX in a, PyTorch with its fused attention in b."""
    return twins(nnx_.Port(nnx_.Block()), torch_.Port(torch_.Block(Fused())),
                 IDS)


@inside
def to_nnx_sdpa_to_jax():
    """PyTorch's fused attention in a, JAX's in b."""
    return attentions(Fused(), Attending(fused(
        lambda q, k, v: jax.nn.dot_product_attention(
            q, k, v, is_causal=True))))


@inside
def to_nnx_softmax_in_float32():
    """softmax in float32 in PyTorch, in float64 in NNX."""
    return attentions(Soft(torch.float32), nnx_.Attention())


@sound
def to_nnx_heads_third():
    """Heads third in PyTorch, second in NNX."""
    return attentions(HeadsThird(), nnx_.Attention())


@sound
def to_nnx_groups():
    """Repeated keys in PyTorch, groups by einsum in NNX."""
    def attend(q, k, v):
        b, h, t, d = q.shape
        q = q.reshape(b, 2, h // 2, t, d)
        scores = jnp.einsum("bgrqd,bgkd->bgrqk", q, k) / d ** 0.5
        weights = jax.nn.softmax(jnp.where(
            nnx_.causal(t), scores, jnp.finfo(q.dtype).min))
        return jnp.einsum("bgrqk,bgkd->bgrqd", weights, v).reshape(b, h, t, d)
    return attentions(attending(repeated, groups=2),
                      Attending(attend, groups=2))


@sound
def to_nnx_rotary():
    """Halves apart in PyTorch, complex numbers in NNX."""
    return attentions(places.Rotary(places.halves_apart),
                      nnx_attention.Rotary(nnx_attention.halves_complex))


@sound
def to_nnx_rotary_of_pairs():
    """view_as_complex in PyTorch, even and odd places in NNX."""
    def turn(x):
        angle = nnx_attention.angles(x.shape[2])
        even, odd = x[..., ::2], x[..., 1::2]
        return jnp.stack([
            even * np.cos(angle) - odd * np.sin(angle),
            even * np.sin(angle) + odd * np.cos(angle)], -1).reshape(x.shape)
    return attentions(places.Rotary(places.pairs),
                      nnx_attention.Rotary(turn))


@sound
def to_nnx_alibi():
    """ALiBi of distances in PyTorch, of keys' places in NNX."""
    def attend(q, k, v):
        t = q.shape[2]
        slopes = 2.0 ** (-8.0 * np.arange(1, H + 1) / H)
        scores = q @ k.swapaxes(2, 3) / K ** 0.5 + (
            slopes[:, None, None] * np.arange(t))
        return jax.nn.softmax(jnp.where(
            nnx_.causal(t), scores, -jnp.inf)) @ v
    return attentions(places.Alibi("distances"), Attending(attend))


@sound
def to_nnx_learned_bias():
    """A bias by distance: gathered in PyTorch, by one-hot rows in NNX."""
    class Biased(nnx_.Attention):
        def __init__(self):
            self.rows = nnx_.param(H, 31)
            super().__init__()

        def attend(self, q, k, v):
            gap = np.arange(q.shape[2])
            gap = gap[:, None] - gap + 15
            bias = jnp.einsum("qkr,hr->hqk", np.eye(31)[gap], self.rows[...])
            return jax.nn.softmax(
                q @ k.swapaxes(2, 3) * K ** -0.5 + bias) @ v
    return attentions(places.Relative(True), Biased())


@sound
def to_nnx_packed():
    """Packed by heads in PyTorch, by thirds in NNX."""
    a = drawn(torch_.Model(torch_.Block(torch_packing.Packed("heads"))))
    b = drawn(nnx_.Model(nnx_.Block(nnx_attention.Packed(False))))
    a.layers[0].attn.groups = H
    give(b.blocks[0].attn.qkv, *(
        x.reshape(*x.shape[:-1], H, 3, K).swapaxes(-3, -2).reshape(x.shape)
        for x in arrays(a.layers[0].attn.qkv)))
    return both(a, b, IDS)


@sound
def to_nnx_rms():
    """rsqrt in PyTorch, nnx.RMSNorm in NNX."""
    return blocks(torch_.Block(norm=lambda _: Root()), nnx_.Block(
        norms=lambda: nnx.RMSNorm(D, epsilon=1e-6, rngs=nnx.Rngs(0))))


@inside
def to_nnx_rms_in_float32():
    """Llama's norm in float32 in PyTorch, nnx.RMSNorm in NNX."""
    return blocks(torch_.Block(norm=lambda _: Root(torch.float32)),
                  nnx_.Block(norms=lambda: nnx.RMSNorm(
                      D, epsilon=1e-6, rngs=nnx.Rngs(0))))


@sound
def to_nnx_scanned():
    """A list of blocks in PyTorch, nnx.scan over stacked ones in NNX."""
    a = drawn(torch_.Model(torch_.Block(), torch_.Block()))
    middle = drawn(nnx_.Model(nnx_.Block(), nnx_.Block()))
    return both(a, nnx_ways.stacked(middle, nnx_ways.Scanned()), IDS)


@sound
def to_nnx_residual_inside():
    """The block adds in PyTorch, each sublayer in NNX."""
    class Residual(nnx.Module):
        def __init__(self, layer):
            self.norm, self.layer = nnx_.norm(), layer

        def __call__(self, x):
            return x + self.layer(self.norm(x))
    return twins(torch_.Model(torch_.Block()), nnx_.Port(
        Residual(nnx_.Attention()), Residual(nnx_.Mlp())), IDS)


@sound
def to_nnx_activations():
    """tanh's GELU by the library in PyTorch, as a sigmoid in NNX."""
    def act(x):
        return x * jax.nn.sigmoid(
            2 * (2 / np.pi) ** 0.5 * (x + 0.044715 * x ** 3))
    return blocks(torch_.Block(mlp=torch_.Mlp(nn.GELU("tanh"))),
                  nnx_.Block(mlp=nnx_.Mlp(act)))


@sound
def to_nnx_jitted():
    """PyTorch in a; in NNX a block under nnx.jit."""
    class Jitted(nnx.Module):
        def __init__(self):
            self.inner = nnx_.Block()

        def __call__(self, x):
            return nnx.jit(lambda block, x: block(x))(self.inner, x)
    return blocks(torch_.Block(), Jitted())


@sound
def to_nnx_experts():
    """Experts in a list and index_add in PyTorch, stacked in NNX."""
    class Stacked(nnx.Module):
        def __init__(self, experts, router):
            self.router = nnx_.linear(D, 4, False)
            give(self.router, router)
            gate, up, down = map(np.stack, zip(*experts))
            self.gate, self.up, self.down = (
                nnx.Param(jnp.asarray(each)) for each in (gate, up, down))

        def __call__(self, x):
            weights, chosen = jax.lax.top_k(jax.nn.softmax(self.router(x)), 2)
            weights = weights / weights.sum(-1, keepdims=True)
            every = (jax.nn.one_hot(chosen, 4, dtype=x.dtype)
                     * weights[..., None]).sum(-2)
            y = jax.nn.silu(jnp.einsum("btd,edf->ebtf", x, self.gate[...]))
            y = y * jnp.einsum("btd,edf->ebtf", x, self.up[...])
            y = jnp.einsum("ebtf,efd->ebtd", y, self.down[...])
            return jnp.einsum("bte,ebtd->btd", every, y)

    class Frame(nnx.Module):
        def __init__(self, core):
            self.before, self.core = nnx_.linear(D, D), core
            self.after = nnx_.linear(D, 3)

        def __call__(self, x):
            return self.after(self.core(jnp.tanh(self.before(x))))
    a = drawn(torch_.Frame(Mixture()))
    b = Frame(Stacked([arrays(each) for each in a.core.experts],
                      *arrays(a.core.gate)))
    give(b.before, *arrays(a.proj_in))
    give(b.after, *arrays(a.classifier))
    return both(a, b, normal(2, 5, D))
