"""Attention and blocks of Keras, written in other ways."""

import functools
import math

import keras
import numpy as np
from keras import layers, ops

from benchmarks.sound.keras_parts import (
    Attention, Block, D, F, H, K, Mlp, Model, V, causal, functional, gelu,
    merge, norm, split)
from benchmarks.sound.pair import sound
from benchmarks.sound.weights import arrays, both, drawn, give, tokens, twins

IDS = tokens(2, 7)
inside = functools.partial(sound, dtype="float32 inside")


class Attending(Attention):
    """Attention with this function instead of its own."""

    def __init__(self, function, **settings):
        super().__init__(**settings)
        self.function = function

    def attend(self, q, k, v):
        return self.function(q, k, v)


def against(function, mine=None, **settings):
    """A model with Attention, or this one, and another's."""
    a = Attending(mine, **settings) if mine else Attention(**settings)
    return twins(Model(Block(a)), functional(Block(Attending(
        function, **settings))), IDS)


@sound
def keras_subclass_or_functional():
    """A subclassed model in a, a functional one in b."""
    return twins(Model(Block(), Block()), functional(Block(), Block()), IDS)


@sound
def keras_subclass_or_sequential():
    """A subclassed model in a, keras.Sequential in b."""
    return twins(Model(Block()), keras.Sequential([
        layers.Embedding(V, D), Block(), norm(),
        layers.Dense(V, use_bias=False)]), IDS)


@sound
def keras_queries_scaled_before():
    """Scores are divided in a, queries multiplied in b; einsums."""
    def attend(q, k, v):
        scores = ops.einsum("bhqd,bhkd->bhqk", q * K ** -0.5, k)
        scores += -1e9 * (1 - ops.cast(causal(q.shape[2]), q.dtype))
        return ops.einsum("bhqk,bhkd->bhqd", ops.softmax(scores), v)
    return against(attend)


@sound
def keras_softmax_by_hand():
    """exp, shifted, over its sum in b."""
    def attend(q, k, v):
        scores = ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))) / K ** 0.5
        scores = ops.where(causal(q.shape[2]), scores, -1e30)
        e = ops.exp(scores - ops.max(scores, -1, keepdims=True))
        return ops.matmul(e / ops.sum(e, -1, keepdims=True), v)
    return against(attend)


@inside
def keras_dot_product_attention():
    """By hand in a, ops.dot_product_attention in b."""
    def attend(q, k, v):
        q, k, v = (ops.transpose(x, (0, 2, 1, 3)) for x in (q, k, v))
        return ops.transpose(ops.dot_product_attention(
            q, k, v, is_causal=True), (0, 2, 1, 3))
    return against(attend)


@sound
def keras_groups_repeated_or_split():
    """Keys are repeated in a; in b queries are split into groups."""
    def repeated(q, k, v):
        return Attention.attend(None, q, *(
            ops.repeat(x, H // 2, 1) for x in (k, v)))

    def attend(q, k, v):
        b, h, t, d = q.shape
        q = ops.reshape(q, (b, 2, h // 2, t, d))
        scores = ops.einsum("bgrqd,bgkd->bgrqk", q, k) * d ** -0.5
        weights = ops.softmax(ops.where(causal(t), scores, -math.inf))
        return ops.reshape(ops.einsum("bgrqk,bgkd->bgrqd", weights, v),
                           (b, h, t, d))
    return against(attend, repeated, groups=2)


def fill(b, a, names):
    """Give b's layers of these names a's numbers."""
    for name in names:
        give(getattr(b, name), *arrays(getattr(a, name)))


def compared(a, b):
    """Two models whose attention has its numbers; the rest is a's."""
    fill(b.blocks[0], a.blocks[0], ("ln_1", "ln_2", "mlp"))
    fill(b, a, ("embed", "final_norm", "head"))
    return both(a, b, IDS)


@inside
def keras_multi_head_or_hand():
    """layers.MultiHeadAttention in a, four Dense in b."""
    class Library(layers.Layer):
        def __init__(self):
            super().__init__()
            self.mha = layers.MultiHeadAttention(H, K)

        def call(self, x):
            return self.mha(x, x, use_causal_mask=True)
    a = drawn(Model(Block(Library())), IDS)
    b = drawn(Model(Block()), IDS)
    mine, port = a.blocks[0].attn.mha, b.blocks[0].attn
    for name in ("query", "key", "value"):
        kernel, bias = arrays(getattr(mine, f"{name}_dense"))
        give(getattr(port, f"{name[0]}_proj"), kernel.reshape(D, D),
             bias.reshape(D))
    kernel, bias = arrays(mine.output_dense)
    give(port.o_proj, kernel.reshape(D, D), bias)
    return compared(a, b)


@inside
def keras_grouped_or_hand():
    """layers.GroupQueryAttention in a, repeated keys in b."""
    def repeated(q, k, v):
        return Attention.attend(None, q, *(
            ops.repeat(x, H // 2, 1) for x in (k, v)))

    class Library(layers.Layer):
        def __init__(self):
            super().__init__()
            self.gqa = layers.GroupQueryAttention(K, H, 2)

        def call(self, x):
            return self.gqa(x, x, use_causal_mask=True)
    a = drawn(Model(Block(Library())), IDS)
    b = drawn(Model(Block(Attending(repeated, groups=2))), IDS)
    mine, port = a.blocks[0].attn.gqa, b.blocks[0].attn
    for name in ("query", "key", "value"):
        kernel, bias = arrays(getattr(mine, f"_{name}_dense"))
        give(getattr(port, f"{name[0]}_proj"), kernel.reshape(D, -1),
             bias.reshape(-1))
    kernel, bias = arrays(mine._output_dense)
    give(port.o_proj, kernel.reshape(D, D), bias)
    return compared(a, b)


class Packed(layers.Layer):
    """Attention with one projection."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = layers.Dense(3 * D), layers.Dense(D)

    def call(self, x):
        q, k, v = map(split, ops.split(self.qkv(x), 3, -1))
        return self.out(merge(Attention.attend(None, q, k, v)))


@sound
def keras_packed_by_thirds():
    """Three projections in a, one in b."""
    a = drawn(Model(Block()), IDS)
    b = drawn(Model(Block(Packed())), IDS)
    mine, port = a.blocks[0].attn, b.blocks[0].attn
    give(port.qkv, *(np.concatenate(each, -1) for each in zip(*(
        arrays(getattr(mine, f"{name}_proj")) for name in "qkv"))))
    give(port.out, *arrays(mine.o_proj))
    return compared(a, b)


@sound
def keras_einsum_dense():
    """Dense and a reshape in a, EinsumDense to heads in b."""
    class General(layers.Layer):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = (layers.EinsumDense(
                "btd,dhk->bthk", (None, H, K), bias_axes="hk")
                for _ in range(3))
            self.o = layers.EinsumDense("bthk,hkd->btd", (None, D),
                                        bias_axes="d")

        def call(self, x):
            scores = ops.einsum("bqhd,bkhd->bhqk", self.q(x), self.k(x))
            weights = ops.softmax(ops.where(
                causal(x.shape[1]), scores * K ** -0.5, -math.inf))
            return self.o(ops.einsum("bhqk,bkhd->bqhd", weights, self.v(x)))
    a = drawn(Model(Block()), IDS)
    b = drawn(Model(Block(General())), IDS)
    mine, port = a.blocks[0].attn, b.blocks[0].attn
    for name in "qkv":
        kernel, bias = arrays(getattr(mine, f"{name}_proj"))
        give(getattr(port, name), kernel.reshape(D, H, K), bias.reshape(H, K))
    kernel, bias = arrays(mine.o_proj)
    give(port.o, kernel.reshape(H, K, D), bias)
    return compared(a, b)


@sound
def keras_residual_inside():
    """The block adds in a; each sublayer in b."""
    class Residual(layers.Layer):
        def __init__(self, layer):
            super().__init__()
            self.norm, self.layer = norm(), layer

        def call(self, x):
            return x + self.layer(self.norm(x))
    return twins(Model(Block()), Model(Residual(Attention()),
                                       Residual(Mlp())), IDS)


@sound
def keras_projection_outside():
    """Attention's output is projected inside in a, by the block in b."""
    class Bare(layers.Layer):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value = (layers.Dense(D)
                                                for _ in range(3))

        def call(self, x):
            return merge(Attention.attend(None, *(
                split(f(x)) for f in (self.query, self.key, self.value))))

    class Outer(layers.Layer):
        def __init__(self):
            super().__init__()
            self.before, self.mixer, self.dense = norm(), Bare(), layers.Dense(
                D)
            self.after, self.up = norm(), layers.Dense(F, activation=gelu)
            self.down, self.drop = layers.Dense(D), layers.Dropout(0.2)

        def call(self, x):
            x = x + self.drop(self.dense(self.mixer(self.before(x))))
            return x + self.drop(self.down(self.up(self.after(x))))
    return twins(Model(Block()), Model(Outer()), IDS)


@sound
def keras_rotary_halves():
    """rotate_half in a, each half by itself in b."""
    angle = np.arange(7)[:, None] * 10000.0 ** (-np.arange(0, K, 2) / K)

    def whole(x):
        one, two = ops.split(x, 2, -1)
        wide = np.concatenate([angle, angle], -1)
        return x * np.cos(wide) + ops.concatenate([-two, one], -1
                                                  ) * np.sin(wide)

    def apart(x):
        one, two = x[..., :K // 2], x[..., K // 2:]
        cos, sin = np.cos(angle), np.sin(angle)
        return ops.concatenate([one * cos - two * sin,
                                one * sin + two * cos], -1)

    def turning(turn):
        return lambda q, k, v: Attention.attend(None, turn(q), turn(k), v)
    return against(turning(apart), turning(whole))
