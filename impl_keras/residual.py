"""The residual connection around each sub-layer (section 3.1).

    LayerNorm(x + Sublayer(x))

Most later models normalise the sub-layer's input instead: dialects/residual.py.
"""

from transformer_contract.trace import tap
from impl_keras import parts
from impl_keras.dropout import Dropout
from impl_keras.whole import Layer


class Residual(Layer):
    """norm(x + y), y being a sub-layer's output. Parameters: ``norm``'s."""

    def __init__(self, config):
        super().__init__()
        self.norm = parts.norm(config, config.norm_eps)
        self.dropout = Dropout(config.dropout)

    def call(self, x, y):
        """Add y to x [B T D], and normalise the sum."""
        dropped = self.dropout(y)
        # [1] summed [B T D]: x + y  (§3.1)
        summed = tap(self, "summed", x + dropped)
        output = self.norm(summed)
        return output
