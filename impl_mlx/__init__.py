"""The Transformer in MLX."""

from impl_mlx.public import create, load, save
from impl_mlx.transformer import Transformer

__all__ = ["Transformer", "create", "load", "save"]
