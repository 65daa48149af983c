"""The Transformer in JAX/Flax NNX."""

from impl_jax.transformer import Transformer

__all__ = ["Transformer"]
