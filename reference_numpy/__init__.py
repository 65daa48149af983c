"""The definition: one Transformer in plain NumPy."""

from reference_numpy.transformer import Transformer

__all__ = ["Transformer"]
