"""Attention and blocks of Flax NNX, written in other ways."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from benchmarks.sound.nnx_parts import (
    Attention, Block, D, F, H, K, Mlp, Model, Port, causal, gelu, linear,
    merge, norm, param, split)
from benchmarks.sound.pair import sound
from benchmarks.sound.weights import arrays, both, drawn, give, tokens, twins

inside = functools.partial(sound, dtype="float32 inside")


class Attending(Attention):
    """Attention with this function instead of its own."""

    def __init__(self, function, **settings):
        super().__init__(**settings)
        self.function = function

    def attend(self, q, k, v):
        return self.function(q, k, v)


def against(function, mine=None, **settings):
    """A model with Attention, or this one, and a port with another."""
    a = Attending(mine, **settings) if mine else Attention(**settings)
    return twins(Model(Block(a)), Port(Block(Attending(function, **settings))),
                 tokens(2, 7))


@sound
def nnx_queries_scaled_before():
    """Scores are divided in a, queries multiplied in b."""
    def attend(q, k, v):
        scores = jnp.einsum("bhqd,bhkd->bhqk", q * K ** -0.5, k)
        scores += jnp.where(causal(q.shape[2]), 0.0, -jnp.inf)
        return jnp.einsum("bhqk,bhkd->bhqd", nnx.softmax(scores), v)
    return against(attend)


@sound
def nnx_least_number_or_infinity():
    """-inf in a, finfo.min in b."""
    def attend(q, k, v):
        scores = q @ k.swapaxes(2, 3) / K ** 0.5
        least = jnp.finfo(scores.dtype).min
        return jax.nn.softmax(jnp.where(
            causal(q.shape[2]), scores, least)) @ v
    return against(attend)


@sound
def nnx_softmax_by_hand():
    """exp, shifted, over its sum in b; a mask of where=."""
    def attend(q, k, v):
        scores = jnp.matmul(q, k.swapaxes(2, 3)) / jnp.sqrt(1.0 * K)
        seen = causal(q.shape[2])
        top = jnp.max(scores, -1, keepdims=True, where=seen, initial=-1e30)
        e = jnp.exp(scores - top) * seen
        return e @ v / e.sum(-1, keepdims=True)
    return against(attend)


@sound
def nnx_tensordot_over_heads():
    """A batched product in a; tensordot, mapped over batch and heads, in b.
    """
    def one(q, k, v):
        scores = jnp.tensordot(q, k, [[1], [1]]) * K ** -0.5
        return jnp.tensordot(jax.nn.softmax(jnp.where(
            causal(len(q)), scores, -jnp.inf)), v, 1)
    return against(lambda q, k, v: jax.vmap(jax.vmap(one))(q, k, v))


def fused(function):
    """A library's attention, whose heads are the third axis."""
    def attend(q, k, v):
        q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))
        return function(q, k, v).transpose(0, 2, 1, 3)
    return attend


@inside
def jax_attention_or_hand():
    """By hand in a, jax.nn.dot_product_attention in b."""
    return against(fused(lambda q, k, v: jax.nn.dot_product_attention(
        q, k, v, is_causal=True)))


@inside
def nnx_attention_or_hand():
    """By hand in a, nnx.dot_product_attention with a mask in b."""
    return against(fused(lambda q, k, v: nnx.dot_product_attention(
        q, k, v, mask=causal(q.shape[1])[None, None])))


@inside
def jax_attention_of_groups():
    """Keys are repeated in a; jax.nn's own groups in b."""
    def repeated(q, k, v):
        return Attention.attend(None, q, *(
            jnp.repeat(x, H // 2, 1) for x in (k, v)))
    return against(fused(lambda q, k, v: jax.nn.dot_product_attention(
        q, k, v, is_causal=True)), repeated, groups=2)


@sound
def nnx_groups_repeated_or_split():
    """Keys are repeated in a; in b queries are split into groups."""
    def repeated(q, k, v):
        return Attention.attend(None, q, *(
            jnp.repeat(x, H // 2, 1) for x in (k, v)))

    def attend(q, k, v):
        b, h, t, d = q.shape
        q = q.reshape(b, 2, h // 2, t, d) * d ** -0.5
        scores = jnp.einsum("bgrqd,bgkd->bgrqk", q, k)
        scores = jnp.where(causal(t), scores, -1e30)
        return jnp.einsum("bgrqk,bgkd->bgrqd", jax.nn.softmax(scores), v
                          ).reshape(b, h, t, d)
    return against(attend, repeated, groups=2)


@inside
def nnx_multi_head_or_hand():
    """nnx.MultiHeadAttention in a, four projections in b."""
    class Library(nnx.Module):
        def __init__(self):
            self.mha = nnx.MultiHeadAttention(
                H, D, decode=False, rngs=nnx.Rngs(0))

        def __call__(self, x):
            t = x.shape[1]
            return self.mha(x, mask=nnx.make_causal_mask(jnp.ones((1, t))))
    a, b = drawn(Model(Block(Library()))), drawn(Port(Block()))
    mha, port = a.blocks[0].attn.mha, b.trunk.layers[0].attn
    for name in ("query", "key", "value"):
        kernel, bias = arrays(getattr(mha, name))
        give(getattr(port, f"{name[0]}_proj"), kernel.reshape(D, D),
             bias.reshape(D))
    kernel, bias = arrays(mha.out)
    give(port.o_proj, kernel.reshape(D, D), bias)
    for name in ("ln_1", "ln_2", "mlp"):
        give(getattr(b.trunk.layers[0], name),
             *arrays(getattr(a.blocks[0], name)))
    give(b.wte, *arrays(a.embed))
    give(b.end, *arrays(a.final_norm), *arrays(a.head))
    return both(a, b, tokens(2, 7))


class Packed(nnx.Module):
    """Attention with one projection: by thirds, or by heads."""

    def __init__(self, by_heads):
        self.qkv, self.out = linear(D, 3 * D), linear(D, D)
        self.by_heads = by_heads

    def __call__(self, x):
        y = self.qkv(x)
        if self.by_heads:
            y = y.reshape(*y.shape[:2], H, 3, K)
            q, k, v = (y[..., i, :].transpose(0, 2, 1, 3) for i in range(3))
        else:
            q, k, v = map(split, jnp.split(y, 3, -1))
        return self.out(merge(Attention.attend(None, q, k, v)))


@sound
def nnx_packed_thirds_or_heads():
    """One projection in both: by thirds in a, by heads in b."""
    a = drawn(Model(Block(Packed(False))))
    b = drawn(Port(Block(Packed(True))))
    give(b.trunk.layers[0].attn.qkv, *(
        x.reshape(*x.shape[:-1], 3, H, K).swapaxes(-3, -2).reshape(x.shape)
        for x in arrays(a.blocks[0].attn.qkv)))
    return both(a, b, tokens(2, 7))


@sound
def nnx_general_projection():
    """Linear and a reshape in a; LinearGeneral to heads in b."""
    class General(nnx.Module):
        def __init__(self):
            def made(size, features, axis=-1):
                return nnx.LinearGeneral(size, features, axis=axis,
                                         rngs=nnx.Rngs(0))
            self.q, self.k, self.v = (made(D, (H, K)) for _ in range(3))
            self.o = made((H, K), D, (-2, -1))

        def __call__(self, x):
            q, k, v = (f(x) for f in (self.q, self.k, self.v))
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / K ** 0.5
            weights = jax.nn.softmax(jnp.where(
                causal(x.shape[1]), scores, -jnp.inf))
            return self.o(jnp.einsum("bhqk,bkhd->bqhd", weights, v))
    a, b = drawn(Model(Block())), drawn(Port(Block(General())))
    mine, port = a.blocks[0].attn, b.trunk.layers[0].attn
    for name in "qkv":
        kernel, bias = arrays(getattr(mine, f"{name}_proj"))
        give(getattr(port, name), kernel.reshape(D, H, K), bias.reshape(H, K))
    kernel, bias = arrays(mine.o_proj)
    give(port.o, kernel.reshape(H, K, D), bias)
    for name in ("ln_1", "ln_2", "mlp"):
        give(getattr(b.trunk.layers[0], name),
             *arrays(getattr(a.blocks[0], name)))
    give(b.wte, *arrays(a.embed))
    give(b.end, *arrays(a.final_norm), *arrays(a.head))
    return both(a, b, tokens(2, 7))


@sound
def nnx_residual_inside():
    """The block adds in a; each sublayer in b."""
    class Residual(nnx.Module):
        def __init__(self, layer):
            self.norm, self.layer = norm(), layer

        def __call__(self, x):
            return x + self.layer(self.norm(x))
    return twins(Model(Block()), Port(Residual(Attention()), Residual(Mlp())),
                 tokens(2, 7))


@sound
def nnx_projection_outside():
    """Attention's output is projected inside in a, by the block in b."""
    class Bare(nnx.Module):
        def __init__(self):
            self.query, self.key, self.value = (linear(D, D)
                                                for _ in range(3))

        def __call__(self, x):
            return merge(Attention.attend(None, *(
                split(f(x)) for f in (self.query, self.key, self.value))))

    class Outer(nnx.Module):
        def __init__(self):
            self.before, self.mixer, self.dense = norm(), Bare(), linear(D, D)
            self.after, self.up, self.down = norm(), linear(D, F), linear(F, D)

        def __call__(self, x):
            x = x + self.dense(self.mixer(self.before(x)))
            return x + self.down(gelu(self.up(self.after(x))))
    return twins(Model(Block()), Port(Outer()), tokens(2, 7))


class Rotary(Attention):
    """Attention with rotary angles: complex, or of halves."""

    def __init__(self, turn):
        super().__init__()
        self.turn = turn

    def attend(self, q, k, v):
        return super().attend(self.turn(q), self.turn(k), v)


def angles(t):
    """[T K/2] in float64."""
    return np.arange(t)[:, None] * 10000.0 ** (-np.arange(0, K, 2) / K)


def halves(x):
    """Rotary by halves."""
    angle = np.concatenate([angles(x.shape[2])] * 2, -1)
    one, two = jnp.split(x, 2, -1)
    return x * np.cos(angle) + jnp.concatenate([-two, one], -1) * np.sin(angle)


def halves_complex(x):
    """The same by complex numbers."""
    one, two = jnp.split(x, 2, -1)
    y = jax.lax.complex(one, two) * jnp.exp(1j * angles(x.shape[2]))
    return jnp.concatenate([y.real, y.imag], -1)


@sound
def nnx_rotary_complex():
    """Cosines and sines in a, complex numbers in b."""
    return twins(Model(Block(Rotary(halves))),
                 Port(Block(Rotary(halves_complex))), tokens(2, 7))


@sound
def nnx_relative_bias_by_take():
    """A learned bias by distance: indexed in a, by one-hot rows in b."""
    class Biased(Attention):
        def __init__(self, taken):
            super().__init__()
            self.rows = param(15, H)
            self.taken = taken

        def attend(self, q, k, v):
            place = np.arange(q.shape[2])
            gap = place[:, None] - place + 7
            if self.taken:
                bias = jnp.take(self.rows[...], gap, 0).transpose(2, 0, 1)
            else:
                bias = jnp.einsum("qkr,rh->hqk", np.eye(15)[gap],
                                  self.rows[...])
            scores = q @ k.swapaxes(2, 3) * K ** -0.5 + bias
            return jax.nn.softmax(scores) @ v
    return twins(Model(Block(Biased(True))), Port(Block(Biased(False))),
                 tokens(2, 7))
