"""The Transformer in MLX."""

from transformer_contract.config import TransformerConfig
from impl_mlx.public import create, load, save
from impl_mlx.transformer import Transformer

__all__ = ["Transformer", "TransformerConfig", "create", "load", "save"]
