"""Dropout by named keys; jax.random's where a run asks for native masks."""

import jax
import jax.numpy as jnp
from flax import nnx

from contract import dropping
from impl_jax import random


def kept(key, shape, rate):
    """Which values stay, bool: those whose bits are not below rate · 2³²."""
    return random.bits(key, shape) >= jnp.uint32(rate * 2**32)


def native_kept(key, shape, rate):
    """The same from XLA's own generator: quick, and never comparable."""
    key = jnp.concatenate([key, key])  # nnx: rbg keys have four words
    return jax.random.bernoulli(
        jax.random.wrap_key_data(key, impl="unsafe_rbg"), 1 - rate, shape)


class Dropout(nnx.Module):
    """Zero each value with the chance ``rate``. It has no parameters."""

    def __init__(self, rate):
        self.rate = rate

    def __call__(self, x):
        """Drop values of x, of any shape, while a run is open."""
        place = dropping.place(self)
        if place is None or not self.rate:
            return x
        draw = native_kept if dropping.native() else kept
        mask = draw(random.fold_in(*place), x.shape, self.rate)
        return jnp.where(mask, x / (1 - self.rate), 0)
