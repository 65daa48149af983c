"""Models of Flax NNX that pairs share; their layers stand as PyTorch's do."""

import functools
import math

import jax
import jax.numpy as jnp
from flax import nnx

from benchmarks.sound.weights import current

D, H, V, F = 24, 4, 20, 40
K = D // H

gelu = functools.partial(jax.nn.gelu, approximate=False)


def linear(size, features, bias=True):
    """nnx.Linear."""
    return nnx.Linear(size, features, use_bias=bias, rngs=nnx.Rngs(0))


def norm(features=D, epsilon=1e-5):
    """nnx.LayerNorm."""
    return nnx.LayerNorm(features, epsilon=epsilon, rngs=nnx.Rngs(0))


def embedding(count=V, features=D):
    """nnx.Embed, which would be float32 whatever its table becomes."""
    return nnx.Embed(count, features, param_dtype=current(),
                     rngs=nnx.Rngs(0))


def param(*shape):
    """nnx.Param of zeros."""
    return nnx.Param(jnp.zeros(shape))


def conv(channels, features, size, **settings):
    """nnx.Conv of two dimensions, or of as many as size has."""
    size = (size, size) if isinstance(size, int) else size
    return nnx.Conv(channels, features, size, rngs=nnx.Rngs(0), **settings)


def split(x, heads=H):
    """[B T D] -> [B H T K]."""
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def merge(x):
    """[B H T K] -> [B T D]."""
    x = x.transpose(0, 2, 1, 3)
    return x.reshape(*x.shape[:2], -1)


def causal(t):
    """Whether a query may see a key: [T T]."""
    return jnp.tril(jnp.ones((t, t), bool))


class Attention(nnx.Module):
    """Causal self-attention, as in a textbook."""

    def __init__(self, groups=H, bias=True):
        self.q_proj = linear(D, D, bias)
        self.k_proj = linear(D, D * groups // H, bias)
        self.v_proj = linear(D, D * groups // H, bias)
        self.o_proj = linear(D, D, bias)
        self.groups = groups

    def __call__(self, x):
        q = split(self.q_proj(x))
        k = split(self.k_proj(x), self.groups)
        v = split(self.v_proj(x), self.groups)
        return self.o_proj(merge(self.attend(q, k, v)))

    def attend(self, q, k, v):
        """Queries, keys and values [B H T K] -> contexts."""
        scores = q @ k.swapaxes(-2, -1) / math.sqrt(q.shape[-1])
        scores = jnp.where(causal(q.shape[2]), scores, -jnp.inf)
        return jax.nn.softmax(scores, -1) @ v


class Mlp(nnx.Module):
    """Two layers."""

    def __init__(self, act=gelu):
        self.fc1, self.fc2 = linear(D, F), linear(F, D)
        self.act = act

    def __call__(self, x):
        return self.fc2(self.act(self.fc1(x)))


class Block(nnx.Module):
    """Pre-norm: x + attention, then x + MLP."""

    def __init__(self, attention=None, mlp=None, norms=norm):
        self.ln_1 = norms()
        self.attn = attention or Attention()
        self.ln_2 = norms()
        self.mlp = mlp or Mlp()

    def __call__(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Model(nnx.Module):
    """Embedding, some blocks, a norm and a head: ids [B T] -> [B T V]."""

    def __init__(self, *blocks):
        self.embed = embedding()
        self.blocks = nnx.List(blocks)
        self.final_norm = norm()
        self.head = linear(D, V, False)

    def __call__(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.final_norm(x))


class Port(nnx.Module):
    """The same as Model, by other names and nested otherwise."""

    def __init__(self, *blocks):
        self.wte = embedding()
        self.trunk = nnx.Sequential(*blocks)
        self.end = nnx.Sequential(norm(), linear(D, V, False))

    def __call__(self, ids):
        return self.end(self.trunk(self.wte(ids)))
