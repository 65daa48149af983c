"""A small nnx.Module, as it is and as functions that are compiled."""

import functools

import jax
import jax.numpy as jnp
from flax import nnx

D = 8


class JittedNet(nnx.Module):
    """A norm and a feed-forward layer."""

    def __init__(self, wrong=""):
        rngs = nnx.Rngs(0)
        self.norm = nnx.LayerNorm(
            D, epsilon=1e-2 if wrong == "epsilon" else 1e-6, rngs=rngs)
        self.inner = nnx.Linear(D, 2 * D, rngs=rngs)
        self.outer = nnx.Linear(2 * D, D, rngs=rngs)
        self.wrong = wrong

    def __call__(self, x):
        h = self.inner(self.norm(x))
        return x + self.outer(nnx.gelu(
            h, approximate=self.wrong == "tanh"))


def x():
    """The input."""
    return (jax.random.normal(jax.random.key(1), (2, 5, D), jnp.float32),)


def plain(wrong):
    """The module."""
    return JittedNet(wrong), x(), {}


def jit(wrong):
    """A function of it, under jax.jit."""
    return jax.jit(functools.partial(_call, JittedNet(wrong))), x(), {}


def nnx_jit(wrong):
    """A function of it, under nnx.jit."""
    return nnx.jit(functools.partial(_call, JittedNet(wrong))), x(), {}


def _call(model, x):
    return model(x)
