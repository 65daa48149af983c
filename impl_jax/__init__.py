"""The Transformer in JAX/Flax NNX."""

from transformer_contract.config import TransformerConfig
from impl_jax.public import create, load, save
from impl_jax.transformer import Transformer

__all__ = ["Transformer", "TransformerConfig", "create", "load", "save"]
