"""The residual connection of most later models: x + Sublayer(norm(x))."""

from transformer_contract.trace import tap
from impl_jax.residual import Residual


class PreNorm(Residual):
    """x + y, y being a sub-layer's output of norm(x) (R11)."""

    def before(self, x):
        """What the sub-layer reads: x [B T D], normalised."""
        return self.norm(x)

    def __call__(self, x, y):
        """Add y to x [B T D]."""
        # [1] output [B T D]: x + y
        output = tap(self, "output", x + self.dropout(y))
        return output
