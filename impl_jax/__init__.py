"""The Transformer in JAX/Flax NNX."""

from impl_jax.public import create, load, save
from impl_jax.transformer import Transformer

__all__ = ["Transformer", "create", "load", "save"]
