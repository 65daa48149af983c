"""Pools, positions and heads, across frameworks."""

import functools

import jax.numpy as jnp
import keras
import numpy as np
import torch
from flax import nnx
from keras import layers, ops
from torch import nn

from benchmarks.sound import torch_positions as places
from benchmarks.sound.nnx_parts import (
    Block, D, F, V, embedding, linear, param)
from benchmarks.sound.pair import sound
from benchmarks.sound.torch_places import EDGES, Messages, Pooled, scattered
from benchmarks.sound.torch_places import masked_mean
from benchmarks.sound.weights import (
    arrays, both, call, drawn, give, normal, tokens, twins)

IDS = tokens(2, 6)
PADDED = tokens(3, 7)
PADDED[1, 5:] = PADDED[2, 3:] = 0
fn = nn.functional
inside = functools.partial(sound, dtype="float32 inside")


@sound
def pooled_to_nnx():
    """The mean of what is seen: summed in PyTorch, mean(where=) in NNX."""
    class Mean(nnx.Module):
        def __init__(self):
            self.table, self.fc, self.out = (
                embedding(), linear(D, D), linear(D, 3))

        def __call__(self, ids):
            x = jnp.tanh(self.fc(self.table(ids)))
            return self.out(x.mean(1, where=(ids != 0)[..., None]))
    return twins(Pooled(masked_mean), Mean(), PADDED)


@sound
def pooled_to_keras():
    """A masked sum in PyTorch; mask_zero and a pooling layer in Keras."""
    return twins(Pooled(masked_mean), keras.Sequential([
        layers.Embedding(V, D, mask_zero=True),
        layers.Dense(D, activation="tanh"), layers.GlobalAveragePooling1D(),
        layers.Dense(3)]), PADDED)


@sound
def messages_to_nnx():
    """index_add in PyTorch, an adjacency matrix in NNX."""
    class Graph(nnx.Module):
        def __init__(self):
            self.send, self.update, self.out = (
                linear(D, D), linear(2 * D, D), linear(D, 3))

        def __call__(self, nodes):
            source, target = EDGES.numpy()
            matrix = np.zeros((6, 6))
            matrix[target, source] = 1
            for _ in range(2):
                nodes = jnp.tanh(self.update(jnp.concatenate(
                    [nodes, matrix @ self.send(nodes)], -1)))
            return self.out(nodes.sum(0))
    return twins(Messages(scattered), Graph(), normal(6, D))


class NnxPlaced(nnx.Module):
    """Embedding, sinusoids and a block."""

    def __init__(self, table):
        self.embed, self.block, self.head = embedding(), Block(), linear(D, V)
        self.rows = nnx.Variable(jnp.asarray(table))

    def __call__(self, ids):
        return self.head(self.block(
            self.embed(ids) + self.rows[...][:ids.shape[1]]))


@sound
def sinusoids_to_nnx():
    """Written into columns in PyTorch, a kept table in NNX."""
    angle = np.arange(50)[:, None] / 10000.0 ** (np.arange(0, D, 2) / D)
    table = np.stack([np.sin(angle), np.cos(angle)], -1).reshape(50, D)
    return twins(places.Placed(places.assigned, False), NnxPlaced(table), IDS)


@inside
def sinusoids_in_float32_to_nnx():
    """float64 in PyTorch; NNX's table is float32."""
    angle = np.arange(50, dtype=np.float32)[:, None] * np.exp(
        np.arange(0, D, 2, dtype=np.float32) * np.float32(-np.log(1e4) / D))
    table = np.stack([np.sin(angle), np.cos(angle)], -1).reshape(50, D)
    return twins(places.Placed(places.assigned, False), NnxPlaced(table), IDS)


@sound
def learned_positions_to_nnx():
    """Looked up in PyTorch, cut out of a parameter in NNX."""
    class Cut(nnx.Module):
        def __init__(self):
            self.rows = param(32, D)
            self.embed, self.block = embedding(), Block()
            self.head = linear(D, V)

        def __call__(self, ids):
            x = self.embed(ids) + self.rows[...][None, :ids.shape[1]]
            return self.head(self.block(x))
    a, b = drawn(places.Learned("ids")), drawn(Cut())
    b.rows.set_value(jnp.asarray(arrays(a.wpe)[0]))
    give(b.embed, *arrays(a.wte))
    give(b.block, *arrays(a.block))
    give(b.head, *arrays(a.head))
    return both(a, b, IDS)


@sound
def logits_to_keras():
    """log_softmax in PyTorch, x - logsumexp(x) in Keras."""
    class Last(layers.Layer):
        def __init__(self):
            super().__init__()
            self.up, self.down = layers.Dense(F), layers.Dense(5)

        def call(self, x):
            x = self.down(ops.tanh(self.up(x)))
            return x - ops.logsumexp(x, -1, keepdims=True)
    return twins(nn.Sequential(nn.Linear(D, F), nn.Tanh(), nn.Linear(F, 5),
                               nn.LogSoftmax(-1)), Last(), normal(4, D))


@sound
def tower_nnx_to_keras():
    """Two towers and a cosine: normalised in NNX, divided in Keras."""
    class Towers(nnx.Module):
        def __init__(self):
            self.one, self.two = linear(D, 8), linear(F, 8)

        def __call__(self, x, y):
            x, y = (z / jnp.linalg.norm(z, axis=-1, keepdims=True)
                    for z in (self.one(x), self.two(y)))
            return x @ y.T / 0.07

    class Cosines(keras.Model):
        def __init__(self):
            super().__init__()
            self.left, self.right = layers.Dense(8), layers.Dense(8)

        def call(self, x, y):
            x, y = self.left(x), self.right(y)
            scale = ops.sqrt(ops.sum(x * x, -1))[:, None] * ops.sqrt(
                ops.sum(y * y, -1))
            return ops.einsum("id,jd->ij", x, y) / (scale * 0.07)
    return twins(Towers(), Cosines(), normal(4, D), normal(3, F, seed=5))


@sound
def outputs_as_dictionary_to_nnx():
    """A tuple of logits and states in PyTorch, a dictionary in NNX."""
    class Torch(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.fc = nn.Embedding(V, D), nn.Linear(D, 4)

        def forward(self, ids):
            x = torch.tanh(self.embed(ids))
            return self.fc(x), x

    class Named(nnx.Module):
        def __init__(self):
            self.embed, self.fc = embedding(), linear(D, 4)

        def __call__(self, ids):
            x = jnp.tanh(self.embed(ids))
            return {"logits": self.fc(x), "states": x}
    return twins(Torch(), Named(), IDS)


@inside
def attention_library_to_keras():
    """nn.MultiheadAttention in PyTorch, MultiHeadAttention in Keras."""
    class Torch(nn.Module):
        def __init__(self):
            super().__init__()
            self.mha = nn.MultiheadAttention(D, 4, batch_first=True)
            self.fc = nn.Linear(D, 3)

        def forward(self, x):
            return self.fc(self.mha(x, x, x)[0])

    class Library(keras.Model):
        def __init__(self):
            super().__init__()
            self.mha = layers.MultiHeadAttention(4, D // 4)
            self.fc = layers.Dense(3)

        def call(self, x):
            return self.fc(self.mha(x, x))
    x = normal(2, 5, D)
    a, b = drawn(Torch()), drawn(Library(), x)
    for at, name in enumerate(("query", "key", "value")):
        weight, bias = (part.detach().chunk(3)[at].numpy() for part in (
            a.mha.in_proj_weight, a.mha.in_proj_bias))
        give(getattr(b.mha, f"{name}_dense"), weight.T.reshape(D, 4, -1),
             bias.reshape(4, -1))
    kernel, bias = arrays(a.mha.out_proj)
    give(b.mha.output_dense, kernel.reshape(4, -1, D), bias)
    give(b.fc, *arrays(a.fc))
    return call(a, x), call(b, x)
