"""Layers of Flax NNX, written in other ways."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from benchmarks.sound.nnx_parts import (
    Block, D, F, Mlp, Model, Port, V, conv, embedding, gelu, linear, norm,
    param)
from benchmarks.sound.pair import sound
from benchmarks.sound.weights import arrays, both, drawn, give, normal, tokens
from benchmarks.sound.weights import twins

inside = functools.partial(sound, dtype="float32 inside")
IMAGE = normal(2, 8, 8, 3)


class Root(nnx.Module):
    """RMS norm, in float32 or not."""

    def __init__(self, dtype=None):
        self.scale = param(D)
        self.dtype = dtype

    def __call__(self, x):
        y = x.astype(self.dtype or x.dtype)
        y = y * jax.lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-6)
        return y.astype(x.dtype) * self.scale[...]


@sound
def nnx_rms_or_hand():
    """nnx.RMSNorm in a."""
    return twins(Model(Block(norms=lambda: nnx.RMSNorm(
        D, epsilon=1e-6, rngs=nnx.Rngs(0)))),
        Port(Block(norms=Root)), tokens(2, 7))


@inside
def nnx_rms_in_float32():
    """RMS norm in float32 in a, in float64 in b."""
    return twins(Model(Block(norms=lambda: Root(jnp.float32))),
                 Port(Block(norms=Root)), tokens(2, 7))


@sound
def nnx_layer_norm_fast_or_slow():
    """The mean of squares in a, of centred squares in b."""
    return twins(Model(Block()), Port(Block(norms=lambda: nnx.LayerNorm(
        D, epsilon=1e-5, use_fast_variance=False, rngs=nnx.Rngs(0)))),
        tokens(2, 7))


def acting(one, two):
    """Two models whose MLPs have these functions."""
    return twins(Model(Block(mlp=Mlp(one))), Port(Block(mlp=Mlp(two))),
                 tokens(2, 7))


@sound
def nnx_gelu_by_erf():
    """jax.nn.gelu, by erfc, in a; erf in b."""
    return acting(gelu, lambda x: x * (1 + jax.lax.erf(x / 2 ** 0.5)) / 2)


@sound
def nnx_silu_by_sigmoid():
    """nnx.silu in a, x sigmoid(x) in b."""
    return acting(nnx.silu, lambda x: x / (1.0 + jnp.exp(-x)))


@sound
def nnx_gelu_tanh_by_hand():
    """jax.nn.gelu by tanh in a."""
    return acting(jax.nn.gelu, lambda x: 0.5 * x * (1 + jnp.tanh(
        (2 / np.pi) ** 0.5 * (x + 0.044715 * x * x * x))))


class Vision(nnx.Module):
    """A convolution, a core and a pooled head: [B S S 3] -> [B 5]."""

    def __init__(self, core, channels=8):
        self.stem, self.core = conv(3, 8, 3), core
        self.head = linear(channels, 5)

    def __call__(self, x):
        return self.head(self.core(jax.nn.relu(self.stem(x))).mean((1, 2)))


class Seeing(nnx.Module):
    """The same, in one Sequential."""

    def __init__(self, core, channels=8):
        self.net = nnx.Sequential(
            conv(3, 8, 3), jax.nn.relu, core, lambda x: jnp.mean(x, (1, 2)),
            linear(channels, 5))

    def __call__(self, x):
        return self.net(x)


class Patched(nnx.Module):
    """A convolution as a product of patches."""

    def __init__(self):
        self.kernel, self.bias = param(3, 3, 8, 12), param(12)

    def __call__(self, x):
        patches = jax.lax.conv_general_dilated_patches(
            x, (3, 3), (1, 1), "SAME", dimension_numbers=(
                "NHWC", "HWIO", "NHWC"))
        kernel = self.kernel[...].transpose(2, 0, 1, 3).reshape(-1, 12)
        return patches @ kernel + self.bias[...]


@sound
def nnx_convolution_by_patches():
    """nnx.Conv in a; patches and a product in b."""
    return twins(Vision(conv(8, 12, 3), 12), Seeing(Patched(), 12), IMAGE)


@sound
def nnx_width_one_as_linear():
    """A convolution of width 1 in a, nnx.Linear in b."""
    a = drawn(Vision(conv(8, 12, 1), 12))
    b = drawn(Seeing(linear(8, 12), 12))
    kernel, bias = arrays(a.core)
    give(b.net, *arrays(a.stem), kernel[0, 0], bias, *arrays(a.head))
    return both(a, b, IMAGE)


@sound
def nnx_depthwise_by_shifts():
    """feature_group_count in a, a sum over shifts in b."""
    class Shifts(nnx.Module):
        def __init__(self):
            self.kernel, self.bias = param(3, 3, 1, 8), param(8)

        def __call__(self, x):
            h, w = x.shape[1:3]
            x = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
            return self.bias[...] + sum(
                x[:, i:i + h, j:j + w] * self.kernel[i, j, 0]
                for i in range(3) for j in range(3))
    return twins(Vision(conv(8, 8, 3, feature_group_count=8)),
                 Seeing(Shifts()), IMAGE)


@sound
def nnx_batch_norm_folded():
    """Batch norm in a, in the convolution in b."""
    class Conv(nnx.Module):
        def __init__(self):
            self.conv = conv(8, 12, 3, use_bias=False)
            self.bn = nnx.BatchNorm(12, epsilon=1e-5, rngs=nnx.Rngs(0))

        def __call__(self, x):
            return jax.nn.relu(self.bn(self.conv(x)))
    a = drawn(Vision(Conv(), 12))
    b = drawn(Vision(nnx.Sequential(conv(8, 12, 3), jax.nn.relu), 12))
    kernel, = arrays(a.core.conv)
    scale, bias, mean, variance = arrays(a.core.bn)
    factor = scale / np.sqrt(variance + 1e-5)
    give(b.stem, *arrays(a.stem))
    give(b.core, kernel * factor, bias - mean * factor)
    give(b.head, *arrays(a.head))
    return both(a, b, IMAGE)


@sound
def nnx_group_norm_by_reshape():
    """nnx.GroupNorm in a."""
    class Grouped(nnx.Module):
        def __init__(self):
            self.scale, self.bias = param(8), param(8)

        def __call__(self, x):
            y = x.reshape(x.shape[0], -1, 4, 2)
            y = (y - y.mean((1, 3), keepdims=True)) / jnp.sqrt(
                y.var((1, 3), keepdims=True) + 1e-5)
            return y.reshape(x.shape) * self.scale[...] + self.bias[...]
    return twins(Vision(nnx.GroupNorm(8, 4, epsilon=1e-5, rngs=nnx.Rngs(0))),
                 Seeing(Grouped()), IMAGE)


@sound
def nnx_pool_by_reshape():
    """nnx.avg_pool in a, a mean of blocks in b."""
    return twins(
        Vision(lambda x: nnx.avg_pool(x, (2, 2), (2, 2))),
        Seeing(lambda x: x.reshape(2, 4, 2, 4, 2, 8).mean((2, 4))), IMAGE)


class OneHot(nnx.Module):
    """An embedding as a product with one-hot rows."""

    def __init__(self):
        self.embedding = param(V, D)

    def __call__(self, ids):
        return jax.nn.one_hot(ids, V, dtype=jnp.float64) @ self.embedding[...]


@inside
def nnx_embedding_in_float32():
    """nnx.Embed made in float32 and given float64 in a; one-hot in b."""
    a, b = Model(Block()), Port(Block())
    a.embed = nnx.Embed(V, D, rngs=nnx.Rngs(0))
    b.wte = OneHot()
    return twins(a, b, tokens(2, 7))


@sound
def nnx_embedding_by_one_hot():
    """nnx.Embed in a, one-hot rows and a product in b."""
    b = Port(Block())
    b.wte = OneHot()
    return twins(Model(Block()), b, tokens(2, 7))


@sound
def nnx_attend_or_transposed():
    """Tied: Embed.attend in a, a product with the table's transpose in b."""
    class Tied(nnx.Module):
        def __init__(self, attend):
            self.embed, self.block, self.norm = embedding(), Block(), norm()
            self.attend = attend

        def __call__(self, ids):
            x = self.norm(self.block(self.embed(ids)))
            return (self.embed.attend(x) if self.attend
                    else x @ self.embed.embedding[...].T)
    return twins(Tied(True), Tied(False), tokens(2, 7))


@sound
def nnx_gate_and_up_packed():
    """Two projections in a, one in b."""
    class Apart(nnx.Module):
        def __init__(self):
            self.gate, self.up, self.down = (
                linear(D, F, False), linear(D, F, False), linear(F, D, False))

        def __call__(self, x):
            return self.down(jax.nn.silu(self.gate(x)) * self.up(x))

    class Packed(nnx.Module):
        def __init__(self):
            self.wi, self.wo = linear(D, 2 * F, False), linear(F, D, False)

        def __call__(self, x):
            gate, up = jnp.split(self.wi(x), 2, -1)
            return self.wo(gate * jax.nn.sigmoid(gate) * up)
    a, b = drawn(Model(Block(mlp=Apart()))), drawn(Model(Block(mlp=Packed())))
    gate, up, down = arrays(a.blocks[0].mlp)
    give(b.blocks[0].mlp, np.concatenate([gate, up], 1), down)
    for name in ("ln_1", "attn", "ln_2"):
        give(getattr(b.blocks[0], name), *arrays(getattr(a.blocks[0], name)))
    for name in ("embed", "final_norm", "head"):
        give(getattr(b, name), *arrays(getattr(a, name)))
    return both(a, b, tokens(2, 7))


class Cells(nnx.Module):
    """A head on a recurrent layer: a library's, or a loop over its cell."""

    def __init__(self, cell, loop):
        self.cell = cell
        self.rnn = None if loop else nnx.RNN(cell)
        self.out = linear(6, 3)

    def __call__(self, x):
        if self.rnn is not None:
            return self.out(self.rnn(x)[:, -1])
        carry = self.cell.initialize_carry((x.shape[0], D), nnx.Rngs(0))
        carry = jax.tree.map(lambda c: c.astype(x.dtype), carry)
        for t in range(x.shape[1]):
            carry, y = self.cell(carry, x[:, t])
        return self.out(y)


@sound
def nnx_gru_scan_or_loop():
    """nnx.RNN's scan in a, a loop over the cell in b."""
    def cell():
        return nnx.GRUCell(D, 6, param_dtype=jnp.float64, rngs=nnx.Rngs(0))
    return twins(Cells(cell(), False), Cells(cell(), True), normal(2, 5, D))


@sound
def nnx_lstm_scan_or_loop():
    """nnx.RNN's scan in a, a loop over the cell in b."""
    def cell():
        return nnx.OptimizedLSTMCell(
            D, 6, param_dtype=jnp.float64, rngs=nnx.Rngs(0))
    return twins(Cells(cell(), False), Cells(cell(), True), normal(2, 5, D))
