"""The Transformer in PyTorch."""

from transformer_contract.config import TransformerConfig
from impl_torch.public import create, load, save
from impl_torch.transformer import Transformer

__all__ = ["Transformer", "TransformerConfig", "create", "load", "save"]
