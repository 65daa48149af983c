"""Models of Keras that pairs share; their layers stand as PyTorch's do."""

import math

import keras
from keras import layers, ops

D, H, V, F = 24, 4, 20, 40
K = D // H


def split(x, heads=H):
    """[B T D] -> [B H T K]."""
    b, t, d = x.shape
    return ops.transpose(ops.reshape(x, (b, t, heads, d // heads)),
                         (0, 2, 1, 3))


def merge(x):
    """[B H T K] -> [B T D]."""
    b, h, t, k = x.shape
    return ops.reshape(ops.transpose(x, (0, 2, 1, 3)), (b, t, h * k))


def causal(t):
    """Whether a query may see a key: [T T]."""
    return ops.tril(ops.ones((t, t), "bool"))


def gelu(x):
    """By erf."""
    return ops.gelu(x, approximate=False)


def norm():
    """LayerNormalization with PyTorch's ε."""
    return layers.LayerNormalization(epsilon=1e-5)


class Attention(layers.Layer):
    """Causal self-attention, as in a textbook."""

    def __init__(self, groups=H):
        super().__init__()
        self.q_proj = layers.Dense(D)
        self.k_proj = layers.Dense(D * groups // H)
        self.v_proj = layers.Dense(D * groups // H)
        self.o_proj = layers.Dense(D)
        self.groups = groups

    def call(self, x):
        q = split(self.q_proj(x))
        k = split(self.k_proj(x), self.groups)
        v = split(self.v_proj(x), self.groups)
        return self.o_proj(merge(self.attend(q, k, v)))

    def attend(self, q, k, v):
        """Queries, keys and values [B H T K] -> contexts."""
        scores = q @ ops.swapaxes(k, -2, -1) / math.sqrt(q.shape[-1])
        scores = ops.where(causal(q.shape[2]), scores, -math.inf)
        return ops.softmax(scores, -1) @ v


class Mlp(layers.Layer):
    """Two layers."""

    def __init__(self, act=gelu):
        super().__init__()
        self.fc1, self.fc2 = layers.Dense(F), layers.Dense(D)
        self.act = act

    def call(self, x):
        return self.fc2(self.act(self.fc1(x)))


class Block(layers.Layer):
    """Pre-norm: x + attention, then x + MLP."""

    def __init__(self, attention=None, mlp=None, norms=norm):
        super().__init__()
        self.ln_1 = norms()
        self.attn = attention or Attention()
        self.ln_2 = norms()
        self.mlp = mlp or Mlp()

    def call(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Model(keras.Model):
    """Embedding, some blocks, a norm and a head: ids [B T] -> [B T V]."""

    def __init__(self, *blocks):
        super().__init__()
        self.embed = layers.Embedding(V, D)
        self.blocks = list(blocks)
        self.final_norm = norm()
        self.head = layers.Dense(V, use_bias=False)

    def call(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.final_norm(x))


def functional(*blocks, length=7):
    """The same as Model, as a functional model."""
    ids = keras.Input((length,), dtype="int64", batch_size=2)
    x = layers.Embedding(V, D)(ids)
    for block in blocks:
        x = block(x)
    return keras.Model(ids, layers.Dense(V, use_bias=False)(norm()(x)))
