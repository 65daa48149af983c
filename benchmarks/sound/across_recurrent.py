"""Recurrent layers and scans, across frameworks."""

import jax
import jax.numpy as jnp
import keras
import numpy as np
from flax import nnx
from keras import layers, ops
from torch import nn

from benchmarks.sound.nnx_parts import D, V, embedding, linear, norm, param
from benchmarks.sound.pair import sound
from benchmarks.sound.torch_recurrent import (
    Decay, Selective, Tagger, stepwise)
from benchmarks.sound.weights import arrays, both, drawn, give, tokens, twins

S = 6
IDS = tokens(2, 6)


class NnxTagger(nnx.Module):
    """Embedding, a core and a head of its last step."""

    def __init__(self, core):
        self.table, self.core, self.head = embedding(), core, linear(S, 3)

    def __call__(self, ids):
        return self.head(self.core(self.table(ids))[:, -1])


def keras_tagger(core):
    """The same in Keras; the core gives the last step."""
    return keras.Sequential([layers.Embedding(V, D), core, layers.Dense(3)])


def lstm():
    """An LSTM of PyTorch whose second bias is zero."""
    model = drawn(Tagger(nn.LSTM(D, S, batch_first=True)))
    model.rnn.bias_hh_l0.data.zero_()
    return model


@sound
def lstm_to_keras():
    """Two biases in PyTorch, of which one is zero; one in Keras."""
    a, b = lstm(), drawn(keras_tagger(layers.LSTM(S)), IDS)
    kernel, recurrent, bias, _ = arrays(a.rnn)
    give(b.layers[0], *arrays(a.embedding))
    cell = b.layers[1].cell
    for variable, array in ((cell.kernel, kernel), (
            cell.recurrent_kernel, recurrent), (cell.bias, bias)):
        variable.assign(array)
    give(b.layers[2], *arrays(a.out))
    return both(a, b, IDS)


@sound
def lstm_to_nnx():
    """PyTorch's packed gates in a; NNX's cell in a scan in b."""
    a = lstm()
    b = drawn(NnxTagger(nnx.RNN(nnx.OptimizedLSTMCell(
        D, S, param_dtype=jnp.float64, rngs=nnx.Rngs(0)))))
    kernel, recurrent, bias, _ = arrays(a.rnn)
    cell = b.core.cell
    give(cell.dense_i, kernel)
    give(cell.dense_h, recurrent, bias)
    give(b.table, *arrays(a.embedding))
    give(b.head, *arrays(a.out))
    return both(a, b, IDS)


def gates(array, order):
    """The three gates of an array, in another order."""
    return np.concatenate([np.split(array, 3, -1)[i] for i in order], -1)


@sound
def gru_to_keras():
    """PyTorch's gates r, z, n; Keras' z, r, n, with both biases."""
    a, b = drawn(Tagger(nn.GRU(D, S, batch_first=True))), drawn(
        keras_tagger(layers.GRU(S)), IDS)
    kernel, recurrent, one, two = (gates(array, (1, 0, 2))
                                   for array in arrays(a.rnn))
    cell = b.layers[1].cell
    for variable, array in ((cell.kernel, kernel), (
            cell.recurrent_kernel, recurrent), (
                cell.bias, np.stack([one, two]))):
        variable.assign(array)
    give(b.layers[0], *arrays(a.embedding))
    give(b.layers[2], *arrays(a.out))
    return both(a, b, IDS)


class NnxGru(nnx.Module):
    """A GRU by lax.scan."""

    def __init__(self):
        self.kernel, self.recurrent = param(D, 3 * S), param(S, 3 * S)
        self.one, self.two = param(3 * S), param(3 * S)

    def __call__(self, x):
        given = x @ self.kernel[...] + self.one[...]

        def step(h, x):
            y = h @ self.recurrent[...] + self.two[...]
            r, z = (jax.nn.sigmoid(x[:, i * S:(i + 1) * S]
                                   + y[:, i * S:(i + 1) * S]) for i in (0, 1))
            n = jnp.tanh(x[:, 2 * S:] + r * y[:, 2 * S:])
            h = (1 - z) * n + z * h
            return h, h
        _, made = jax.lax.scan(step, jnp.zeros((len(x), S), x.dtype),
                               given.swapaxes(0, 1))
        return made.swapaxes(0, 1)


@sound
def gru_to_nnx():
    """nn.GRU in PyTorch; lax.scan in NNX."""
    a = drawn(Tagger(nn.GRU(D, S, batch_first=True)))
    b = drawn(NnxTagger(NnxGru()))
    for name, array in zip(("kernel", "recurrent", "one", "two"),
                           arrays(a.rnn)):
        getattr(b.core, name).set_value(jnp.asarray(array))
    give(b.table, *arrays(a.embedding))
    give(b.head, *arrays(a.out))
    return both(a, b, IDS)


@sound
def decay_to_nnx():
    """A loop in PyTorch, an associative scan in NNX."""
    class Scanned(nnx.Module):
        def __init__(self):
            self.norm, self.rate, self.out = norm(), linear(D, S), linear(D, S)

        def __call__(self, x):
            x = self.norm(x)

            def joined(one, two):
                return one[0] * two[0], two[0] * one[1] + two[1]
            return jax.lax.associative_scan(joined, (
                jax.nn.sigmoid(self.rate(x)), self.out(x)), axis=1)[1]
    return twins(Tagger(Decay(stepwise)), NnxTagger(Scanned()), IDS)


@sound
def selective_to_nnx():
    """Mamba's scan: a loop in PyTorch, lax.scan in NNX."""
    class Scanned(nnx.Module):
        def __init__(self):
            self.a_log, self.d = param(D, S), param(D)
            self.dt, self.b = linear(D, D), linear(D, S, False)
            self.c, self.out = linear(D, S, False), linear(D, S)

        def __call__(self, x):
            dt, a = jax.nn.softplus(self.dt(x)), -jnp.exp(self.a_log[...])

            def step(h, each):
                x, dt, b, c = each
                h = jnp.exp(dt[..., None] * a) * h + (
                    (dt * x)[..., None] * b[:, None])
                return h, jnp.einsum("bds,bs->bd", h, c)
            _, y = jax.lax.scan(step, jnp.zeros((len(x), D, S), x.dtype), [
                z.swapaxes(0, 1) for z in (x, dt, self.b(x), self.c(x))])
            return self.out(y.swapaxes(0, 1) + self.d[...] * x)
    return twins(Tagger(Selective(False)), NnxTagger(Scanned()), IDS)


@sound
def decay_to_keras():
    """A loop in PyTorch, ops.scan in Keras."""
    class Scanned(layers.Layer):
        def __init__(self):
            super().__init__()
            self.norm = layers.LayerNormalization(epsilon=1e-5)
            self.rate, self.out = layers.Dense(S), layers.Dense(S)

        def call(self, x):
            x = self.norm(x)
            a, y = ops.sigmoid(self.rate(x)), self.out(x)

            def step(h, each):
                h = each[0] * h + each[1]
                return h, h
            return ops.scan(step, ops.zeros_like(y[:, 0]), (
                ops.swapaxes(a, 0, 1), ops.swapaxes(y, 0, 1)))[0]
    return twins(Tagger(Decay(stepwise)), keras_tagger(Scanned()), IDS)
