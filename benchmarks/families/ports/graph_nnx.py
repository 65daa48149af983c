"""The graph networks in Flax NNX."""

import jax
import jax.numpy as jnp
from flax import nnx

from benchmarks.families.drawing import into_nnx

jax.config.update("jax_enable_x64", True)
KIND = {"param_dtype": jnp.float64}


class Convolution(nnx.Module):
    def __init__(self, given, width, rngs):
        self.lin = nnx.Linear(given, width, use_bias=False, rngs=rngs, **KIND)
        self.bias = nnx.Param(jnp.zeros(width))

    def __call__(self, x, edges):
        a = edges + jnp.eye(len(edges))
        root = 1 / jnp.sqrt(a.sum(1))
        return root[:, None] * (a @ (root[:, None] * self.lin(x))) + (
            self.bias[...])


class Attention(nnx.Module):
    def __init__(self, given, width, heads, rngs):
        self.heads = heads
        self.lin = nnx.Linear(
            given, heads * width, use_bias=False, rngs=rngs, **KIND)
        self.source = nnx.Param(jnp.zeros((heads, width)))
        self.target = nnx.Param(jnp.zeros((heads, width)))
        self.bias = nnx.Param(jnp.zeros(heads * width))

    def __call__(self, x, edges):
        h = self.lin(x).reshape(len(x), self.heads, -1)
        source = (h * self.source[...]).sum(-1)
        target = (h * self.target[...]).sum(-1)
        scores = target[:, None] + source[None]
        scores = jnp.where(scores > 0, scores, 0.2 * scores)
        kept = (edges + jnp.eye(len(edges)) > 0)[..., None]
        weights = jax.nn.softmax(jnp.where(kept, scores, -jnp.inf), axis=1)
        y = jnp.einsum("tsh,shk->thk", weights, h)
        return y.reshape(len(x), -1) + self.bias[...]


class Graph(nnx.Module):
    def __init__(self, c, rngs):
        self.first = Convolution(c["given"], c["width"], rngs)
        self.norm = nnx.BatchNorm(
            c["width"], use_running_average=True, epsilon=1e-5, rngs=rngs,
            **KIND)
        self.second = Attention(c["width"], c["width"], 2, rngs)
        self.head = nnx.Linear(2 * c["width"], 3, rngs=rngs, **KIND)

    def __call__(self, x, edges):
        x = jax.nn.relu(self.norm(self.first(x, edges)))
        x = jax.nn.elu(self.second(x, edges))
        return self.head(x.mean(0, keepdims=True))


def build(arrays, config):
    """The model with torch's arrays."""
    return into_nnx(Graph(config, nnx.Rngs(0)), arrays)
