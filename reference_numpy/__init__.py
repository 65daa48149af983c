"""The definition: one Transformer in plain NumPy.

``forward`` returns its output and c: each step by its name, and what the way
back needs besides. ``backward`` turns the output's gradient into those of the
inputs and g: the gradient by each step and parameter. ``dx`` is that by x.
A part's own are below its attribute's name, as c["encoder"]["output"].
"""

from transformer_contract.config import TransformerConfig
from reference_numpy.public import create, load, save
from reference_numpy.transformer import Transformer

__all__ = ["Transformer", "TransformerConfig", "create", "load", "save"]
