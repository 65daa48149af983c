"""The Transformer in MLX."""

from impl_mlx.transformer import Transformer

__all__ = ["Transformer"]
