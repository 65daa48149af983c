"""The Transformer in PyTorch."""

from impl_torch.transformer import Transformer

__all__ = ["Transformer"]
