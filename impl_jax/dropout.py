"""Dropout: some values are zeroed while training (section 5.4).

    left = x / (1 - rate) where kept, else 0

The kept values follow from named keys (R25), or from JAX's own generator.
"""

import contextlib

import jax
import jax.numpy as jnp
from flax import nnx

from transformer_contract import dropping
from impl_jax import random
from impl_jax.parameters import modules


def kept(key, shape, rate):
    """Which values stay, bool: those whose bits are not below rate · 2³²."""
    return random.bits(key, shape) >= jnp.uint32(rate * 2**32)


def native_kept(key, shape, rate):
    """The same from XLA's own generator: fast, but not comparable."""
    key = jnp.concatenate([key, key])  # nnx: rbg's have four words
    return jax.random.bernoulli(
        jax.random.wrap_key_data(key, impl="unsafe_rbg"), 1 - rate, shape)


def draw(key, places, rate, native):
    """The values that a run keeps in every place: path -> bool."""
    masks = native_kept if native else kept
    keys = random.fold_in_each(key, places)
    return {name: masks(keys[i], shape, rate)
            for i, (name, shape) in enumerate(places.items())}


class Dropout(nnx.Dropout):
    """Zero each value with probability ``rate``. It has no parameters.

    A run of the harness says what is kept. Outside of one it is NNX's own,
    which train() and eval() turn on and off.
    """

    def __init__(self, rate, *, rngs):
        super().__init__(rate, rngs=rngs)

    def __call__(self, x):
        """Drop values of x, of any shape, in a run or in training mode."""
        mask = dropping.kept(self)
        if mask is None:
            return super().__call__(x)
        # [1] left [*]: x / (1 - rate) where kept, else 0  (§5.4, R25)
        left = jnp.where(mask, x / (1 - self.rate), 0)
        return left


class FixedStream(nnx.RngStream):
    """Gives one key again and again, for modules in which nothing is drawn."""

    def __call__(self):
        """The key, and no count of how often it was asked for."""
        return self.key[...]


def unmoved():
    """Streams of numbers for modules of which only shapes are computed."""
    rngs = nnx.Rngs(0)
    # nnx: a count that is traced takes most of the time of a model
    rngs.default.__class__ = FixedStream
    return rngs


def reseed(module, seed):
    """Let what a module drops in training follow from a seed."""
    stream = nnx.Rngs(seed).dropout
    for _, below in modules(module):
        if isinstance(below, Dropout):
            below.rngs = stream.fork()


@contextlib.contextmanager
def evaluating(module):
    """Drop nothing within a ``with`` block that no run asks for."""
    training = [below for _, below in modules(module)
                if isinstance(below, Dropout) and not below.deterministic]
    for below in training:
        below.deterministic = True
    try:
        yield
    finally:
        for below in training:
            below.deterministic = False
