"""Residual connections, with the norm inside or after (section 3.1)."""

import mlx.nn as nn

from contract.trace import tap
from impl_mlx.dropout import Dropout
from impl_mlx.layer_norm import NORMS


class PreNorm(nn.Module):
    """x + Sublayer(norm(x)). Parameters: those of ``norm``."""

    def __init__(self, config):
        super().__init__()
        self.norm = NORMS[config.norm_form](config.d_model, config.norm_eps)
        self.dropout = Dropout(config.dropout)

    def before(self, x):
        """The sub-layer's input: x [B T D], normalised."""
        return self.norm(x)

    def after(self, x, y):
        """The sum of x and the sub-layer's y [B T D]."""
        # [1] output [B T D]: x + Sublayer(norm(x))
        output = tap(self, "output", x + self.dropout(y))
        return output


class PostNorm(nn.Module):
    """norm(x + Sublayer(x)). Parameters: those of ``norm``."""

    def __init__(self, config):
        super().__init__()
        self.norm = NORMS[config.norm_form](config.d_model, config.norm_eps)
        self.dropout = Dropout(config.dropout)

    def before(self, x):
        """The sub-layer's input: x [B T D] as it is."""
        return x

    def after(self, x, y):
        """The sum of x and the sub-layer's y [B T D], normalised."""
        # [1] summed [B T D]: x + Sublayer(x)  (§3.1)
        summed = tap(self, "summed", x + self.dropout(y))
        output = self.norm(summed)
        return output


RESIDUALS = {"pre": PreNorm, "post": PostNorm}
