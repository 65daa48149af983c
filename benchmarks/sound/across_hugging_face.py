"""Hugging Face's models in PyTorch, against ports to NNX and Keras."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import transformers
from flax import nnx
from keras import layers, ops

from benchmarks.sound import keras_parts as keras_
from benchmarks.sound.hugging_face import IDS, WHOLE, model_of
from benchmarks.sound.nnx_parts import (
    causal, embedding, gelu, linear, merge, norm, param, split)
from benchmarks.sound.pair import sound
from benchmarks.sound.weights import (
    arrays, call, copied, drawn, give, normal)

D, H, F = 24, 4, 40
inside = functools.partial(sound, dtype="float32 inside")


class Root(nnx.Module):
    """RMS norm."""

    def __init__(self, size):
        self.scale = param(size)

    def __call__(self, x):
        return self.scale[...] * x / jnp.sqrt(
            (x * x).mean(-1, keepdims=True) + 1e-5)


def turned(x, width):
    """Rotary by halves of the first columns of x [B H T K]."""
    rate = 10000.0 ** (-np.arange(0, width, 2) / width)
    turn = np.exp(1j * np.arange(x.shape[2])[:, None] * rate)
    y = jax.lax.complex(x[..., :width // 2], x[..., width // 2:width]) * turn
    return jnp.concatenate([y.real, y.imag, x[..., width:]], -1)


class Gated(nnx.Module):
    """Llama's block: norms in front, or, as OLMo 2, behind."""

    def __init__(self, c, normed):
        self.k = getattr(c, "head_dim", None) or D // H
        self.g, self.normed = c.num_key_value_heads, normed
        self.q = linear(D, H * self.k, False)
        self.kk = linear(D, self.g * self.k, False)
        self.v = linear(D, self.g * self.k, False)
        self.o = linear(H * self.k, D, False)
        if normed:
            one, two = (self.k, self.k) if normed == "head" else (
                H * self.k, self.g * self.k)
            self.nq, self.nk = Root(one), Root(two)
        self.w1, self.w3, self.w2 = (
            linear(D, F, False), linear(D, F, False), linear(F, D, False))
        self.n1, self.n2 = Root(D), Root(D)

    def mixed(self, x):
        """Attention of x."""
        q, k, v = self.q(x), self.kk(x), self.v(x)
        if self.normed == "flat":
            q, k = self.nq(q), self.nk(k)
        q, k, v = split(q), split(k, self.g), split(v, self.g)
        if self.normed == "head":
            q, k = self.nq(q), self.nk(k)
        q, k = turned(q, self.k), turned(k, self.k)
        b, _, t, d = q.shape
        scores = jnp.einsum("bgrqd,bgkd->bgrqk", q.reshape(
            b, self.g, -1, t, d), k) * d ** -0.5
        weights = jax.nn.softmax(jnp.where(causal(t), scores, -jnp.inf))
        return self.o(merge(jnp.einsum("bgrqk,bgkd->bgrqd", weights, v
                                       ).reshape(q.shape)))

    def forward(self, x):
        """The gated layer of x."""
        return self.w2(jax.nn.silu(self.w1(x)) * self.w3(x))

    def __call__(self, x):
        if self.normed == "flat":
            x = x + self.n1(self.mixed(x))
            return x + self.n2(self.forward(x))
        x = x + self.mixed(self.n1(x))
        return x + self.forward(self.n2(x))


class Llama(nnx.Module):
    """Llama, Qwen 3 and OLMo 2."""

    def __init__(self, c, normed=""):
        self.tok = embedding(32)
        self.blocks = nnx.List([Gated(c, normed) for _ in range(2)])
        self.final, self.out = Root(D), linear(D, 32, False)

    def __call__(self, ids):
        x = self.tok(ids)
        for block in self.blocks:
            x = block(x)
        return self.out(self.final(x))


def ported(family, port, attention="eager"):
    """A family's model, and a port that defines its layers in one order."""
    a = model_of(family, attention)
    b = copied(a, port(a.config))
    b.eval()
    return call(a, IDS, **WHOLE), call(b, IDS)


@inside
def llama_to_nnx():
    """Llama in a; complex numbers and groups by einsum in b."""
    return ported("Llama", Llama)


@inside
def llama_sdpa_to_nnx():
    """Llama in sdpa."""
    return ported("Llama", Llama, "sdpa")


@inside
def qwen3_to_nnx():
    """Qwen 3, with norms of each head."""
    return ported("Qwen3", lambda c: Llama(c, "head"))


@inside
def olmo2_to_nnx():
    """OLMo 2, with norms behind."""
    return ported("Olmo2", lambda c: Llama(c, "flat"))


class Packed(nnx.Module):
    """A block of BLOOM or GPT-NeoX."""

    def __init__(self, neox):
        self.n1 = norm()
        if neox:
            self.n2 = norm()
        self.qkv, self.out = linear(D, 3 * D), linear(D, D)
        if not neox:
            self.n2 = norm()
        width = F if neox else 4 * D
        self.up, self.down = linear(D, width), linear(width, D)
        self.neox = neox

    def __call__(self, x):
        y = self.qkv(self.n1(x)).reshape(*x.shape[:2], H, 3, -1)
        q, k, v = (y[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3))
        t, bias = x.shape[1], 0.0
        if self.neox:
            q, k = turned(q, 2), turned(k, 2)
        else:
            gap = np.arange(t) - np.arange(t)[:, None]
            bias = 2.0 ** (-2.0 * np.arange(1, H + 1))[:, None, None] * gap
        scores = q @ k.swapaxes(2, 3) / q.shape[-1] ** 0.5 + bias
        made = self.out(merge(jax.nn.softmax(jnp.where(
            causal(t), scores, -jnp.inf)) @ v))
        if self.neox:
            return x + made + self.down(gelu(self.up(self.n2(x))))
        x = x + made
        y = self.up(self.n2(x))  # BLOOM's own eight digits of √(2/π)
        return x + self.down(0.5 * y * (1 + jnp.tanh(
            0.79788456 * y * (1 + 0.044715 * y * y))))


class Decoder(nnx.Module):
    """Embedding, maybe a norm, blocks, a norm and a head."""

    def __init__(self, neox):
        self.tok = embedding(32)
        if not neox:
            self.first = norm()
        self.blocks = nnx.Sequential(*(Packed(neox) for _ in range(2)))
        self.final, self.out = norm(), linear(D, 32, False)
        self.neox = neox

    def __call__(self, ids):
        x = self.tok(ids)
        return self.out(self.final(self.blocks(
            x if self.neox else self.first(x))))


@inside
def bloom_to_nnx():
    """BLOOM, with ALiBi by distances in b."""
    return ported("Bloom", lambda _: Decoder(False))


@inside
def gpt_neox_to_nnx():
    """GPT-NeoX, packed by heads in both."""
    return ported("GPTNeoX", lambda _: Decoder(True))


class Gpt2(nnx.Module):
    """GPT-2 with linear layers."""

    def __init__(self):
        self.wte, self.wpe = embedding(32), embedding(32)
        self.blocks = nnx.List([Packed(True) for _ in range(2)])
        self.final = norm()
        self.head = linear(D, 32, False)

    def __call__(self, ids):
        x = self.wte(ids) + self.wpe.embedding[...][:ids.shape[1]]
        for b in self.blocks:
            q, k, v = map(split, jnp.split(b.qkv(b.n1(x)), 3, -1))
            scores = q @ k.swapaxes(2, 3) / q.shape[-1] ** 0.5
            x = x + b.out(merge(jax.nn.softmax(jnp.where(
                causal(ids.shape[1]), scores, -jnp.inf)) @ v))
            x = x + b.down(jax.nn.gelu(b.up(b.n2(x))))
        return self.head(self.final(x))


def gpt2(b, blocks, first, last):
    """GPT-2 and a port, whose layers are given GPT-2's arrays.

    Args:
        b: the port.
        blocks: a block's n1, qkv, out, n2, up and down, for each.
        first: the two tables.
        last: the last norm and the head.
    """
    a = model_of("GPT2")
    gpt = a.transformer
    for layer, mine in zip((*first, *last), (gpt.wte, gpt.wpe, gpt.ln_f,
                                             a.lm_head)):
        give(layer, *arrays(mine))
    for block, mine in zip(blocks, gpt.h):
        for layer, its in zip(block, (
                mine.ln_1, mine.attn.c_attn, mine.attn.c_proj, mine.ln_2,
                mine.mlp.c_fc, mine.mlp.c_proj)):
            give(layer, *arrays(its))
    return call(a, IDS, **WHOLE), call(b, IDS)


@sound
def gpt2_to_nnx():
    """GPT-2, whose kernels are [in, out] as NNX's."""
    b = Gpt2()
    for block in b.blocks:
        block.up, block.down = linear(D, 4 * D), linear(4 * D, D)
    b = drawn(b)
    return gpt2(b, [(x.n1, x.qkv, x.out, x.n2, x.up, x.down)
                    for x in b.blocks], (b.wte, b.wpe), (b.final, b.head))


class KerasBlock(layers.Layer):
    """A block of GPT-2 in Keras."""

    def __init__(self):
        super().__init__()
        self.parts = [keras_.norm(), layers.Dense(3 * D), layers.Dense(D),
                      keras_.norm(), layers.Dense(4 * D), layers.Dense(D)]

    def call(self, x):
        n1, qkv, out, n2, up, down = self.parts
        q, k, v = map(keras_.split, ops.split(qkv(n1(x)), 3, -1))
        x = x + out(keras_.merge(keras_.Attention.attend(None, q, k, v)))
        y = up(n2(x))
        y = 0.5 * y * (1 + ops.tanh((2 / np.pi) ** 0.5 * (
            y + 0.044715 * y ** 3)))
        return x + down(y)


@sound
def gpt2_to_keras():
    """GPT-2 in Keras, with GELU's formula."""
    import keras

    class Gpt(keras.Model):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = layers.Embedding(32, D), layers.Embedding(
                32, D)
            self.blocks = [KerasBlock(), KerasBlock()]
            self.final = keras_.norm()
            self.head = layers.Dense(32, use_bias=False)

        def call(self, ids):
            x = self.wte(ids) + self.wpe(ops.arange(ids.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.final(x))
    b = drawn(Gpt(), IDS)
    return gpt2(b, [x.parts for x in b.blocks], (b.wte, b.wpe),
                (b.final, b.head))


@sound
def vit_to_nnx():
    """ViT in a; patches by a reshape and a linear layer in b."""
    class Layer(nnx.Module):
        def __init__(self):
            self.q, self.k, self.v, self.o = (linear(D, D) for _ in range(4))
            self.n1, self.n2 = norm(D, 1e-12), norm(D, 1e-12)
            self.up, self.down = linear(D, F), linear(F, D)

        def __call__(self, x):
            y = self.n1(x)
            q, k, v = (split(f(y)) for f in (self.q, self.k, self.v))
            weights = jax.nn.softmax(q * (D // H) ** -0.5 @ k.swapaxes(2, 3))
            x = x + self.o(merge(weights @ v))
            return x + self.down(gelu(self.up(self.n2(x))))

    class Vit(nnx.Module):
        def __init__(self):
            self.cls, self.places = param(1, 1, D), param(1, 5, D)
            self.patches = linear(48, D)
            self.layers = nnx.List([Layer(), Layer()])
            self.norm = norm(D, 1e-12)

        def __call__(self, x):
            b = len(x)
            x = x.reshape(b, 2, 4, 2, 4, 3).swapaxes(2, 3).reshape(b, 4, 48)
            x = jnp.concatenate([jnp.repeat(self.cls[...], b, 0),
                                 self.patches(x)], 1) + self.places[...]
            for layer in self.layers:
                x = layer(x)
            return self.norm(x)
    config = transformers.ViTConfig(
        hidden_size=D, num_hidden_layers=2, num_attention_heads=H,
        intermediate_size=F, image_size=8, patch_size=4,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    a = drawn(transformers.ViTModel(config, add_pooling_layer=False))
    mine = arrays(a)
    mine[2] = mine[2].reshape(48, D)
    b = Vit()
    give(b, *mine)
    image = normal(2, 3, 8, 8)
    return call(a, image), call(b, image.transpose(0, 2, 3, 1).copy())
