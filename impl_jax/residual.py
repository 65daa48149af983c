"""Residual connections, with the norm inside or after (section 3.1)."""

from flax import nnx

from contract.trace import tap
from impl_jax.dropout import Dropout
from impl_jax.layer_norm import NORMS


class PreNorm(nnx.Module):
    """x + Sublayer(norm(x)). Parameters: those of ``norm``."""

    def __init__(self, config):
        self.norm = NORMS[config.norm](config.d_model, config.norm_eps)
        self.dropout = Dropout(config.dropout)

    def __call__(self, x, sublayer):
        """Add to x [B T D] what ``sublayer`` makes of its norm."""
        normed = self.norm(x)
        # [1] output [B T D]: x + Sublayer(norm(x))
        output = tap(self, "output", x + self.dropout(sublayer(normed)))
        return output


class PostNorm(nnx.Module):
    """norm(x + Sublayer(x)). Parameters: those of ``norm``."""

    def __init__(self, config):
        self.norm = NORMS[config.norm](config.d_model, config.norm_eps)
        self.dropout = Dropout(config.dropout)

    def __call__(self, x, sublayer):
        """Norm the sum of x [B T D] and what ``sublayer`` makes of it."""
        # [1] summed [B T D]: x + Sublayer(x)  (§3.1)
        summed = tap(self, "summed", x + self.dropout(sublayer(x)))
        output = self.norm(summed)
        return output


RESIDUALS = {"pre": PreNorm, "post": PostNorm}
