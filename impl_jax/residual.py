"""The residual connection around each sub-layer (section 3.1).

    LayerNorm(x + Sublayer(x))

Most later models normalise the sub-layer's input instead: dialects/residual.py.
"""

from flax import nnx

from transformer_contract.trace import tap
from impl_jax import parts
from impl_jax.dropout import Dropout


class Residual(nnx.Module):
    """norm(x + y), y being a sub-layer's output. Parameters: ``norm``'s."""

    def __init__(self, config, *, rngs):
        self.norm = parts.norm(config, config.norm_eps, rngs=rngs)
        self.dropout = Dropout(config.dropout, rngs=rngs)

    def __call__(self, x, y):
        """Add y to x [B T D], and normalise the sum."""
        dropped = self.dropout(y)
        # [1] summed [B T D]: x + y  (§3.1)
        summed = tap(self, "summed", x + dropped)
        output = self.norm(summed)
        return output
