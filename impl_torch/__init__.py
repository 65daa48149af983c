"""The Transformer in PyTorch."""

from impl_torch.public import create, load, save
from impl_torch.transformer import Transformer

__all__ = ["Transformer", "create", "load", "save"]
