"""BLOOM in Flax NNX: linear biases by distance, and packed heads."""

import math

import jax
import jax.numpy as jnp
from flax import nnx

from benchmarks.families.drawing import into_nnx

jax.config.update("jax_enable_x64", True)
KIND = {"param_dtype": jnp.float64}


def slopes(heads):
    """One slope a head; those past a power of two from the next power's."""
    power = 2 ** math.floor(math.log2(heads))
    first = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    more = [2 ** (-4 * (2 * i + 1) / power) for i in range(heads - power)]
    return jnp.array(first + more)


def norm(c, rngs):
    """A layer norm."""
    return nnx.LayerNorm(c["hidden_size"], epsilon=1e-5, rngs=rngs,
                         use_fast_variance=False, **KIND)


class Attention(nnx.Module):
    def __init__(self, c, rngs):
        width = c["hidden_size"]
        self.query_key_value = nnx.Linear(width, 3 * width, rngs=rngs, **KIND)
        self.dense = nnx.Linear(width, width, rngs=rngs, **KIND)
        self.heads = c["n_head"]

    def __call__(self, x, bias):
        rows, length, width = x.shape
        packed = self.query_key_value(x).reshape(
            rows, length, self.heads, 3, -1)
        q, k, v = packed.transpose(3, 0, 2, 1, 4)
        scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(q.shape[-1]) + bias
        y = jax.nn.softmax(scores, -1) @ v
        return self.dense(y.transpose(0, 2, 1, 3).reshape(x.shape))


class MLP(nnx.Module):
    def __init__(self, c, rngs):
        width = c["hidden_size"]
        self.dense_h_to_4h = nnx.Linear(width, 4 * width, rngs=rngs, **KIND)
        self.dense_4h_to_h = nnx.Linear(4 * width, width, rngs=rngs, **KIND)

    def __call__(self, x):
        x = self.dense_h_to_4h(x)
        inner = 0.79788456 * x * (1 + 0.044715 * x * x)
        return self.dense_4h_to_h(0.5 * x * (1 + jnp.tanh(inner)))


class Block(nnx.Module):
    def __init__(self, c, rngs):
        self.input_layernorm = norm(c, rngs)
        self.post_attention_layernorm = norm(c, rngs)
        self.self_attention = Attention(c, rngs)
        self.mlp = MLP(c, rngs)

    def __call__(self, x, bias):
        x = x + self.self_attention(self.input_layernorm(x), bias)
        return x + self.mlp(self.post_attention_layernorm(x))


class Bloom(nnx.Module):
    def __init__(self, c, rngs):
        self.word_embeddings = nnx.Embed(
            c["vocab_size"], c["hidden_size"], rngs=rngs, **KIND)
        self.word_embeddings_layernorm = norm(c, rngs)
        self.h = nnx.List([Block(c, rngs) for _ in range(c["n_layer"])])
        self.ln_f = norm(c, rngs)
        self.heads = c["n_head"]

    def __call__(self, ids, mask):
        length = ids.shape[1]
        places = (jnp.cumsum(mask, -1) - 1) * mask
        bias = slopes(self.heads)[:, None, None] * places[:, None, None]
        kept = jnp.tril(jnp.ones((length, length), bool)) & (
            mask[:, None, None] > 0)
        bias = jnp.where(kept, bias, -1e30)
        x = self.word_embeddings_layernorm(self.word_embeddings(ids))
        for block in self.h:
            x = block(x, bias)
        return self.ln_f(x)


def build(arrays, config):
    """The model with torch's arrays."""
    return into_nnx(Bloom(config, nnx.Rngs(0)), arrays)
