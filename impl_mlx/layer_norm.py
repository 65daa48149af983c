"""Layer normalisation over the last axis, D features (Ba et al. 2016).

    LayerNorm(x) = (x - mean) / √(variance + ε) · scale + bias

``variance`` divides by D (biased; R3). nn.LayerNorm is the same but for its
root, which has float32's digits. Other norms are in dialects/norms.py.
"""

import mlx.core as mx
import mlx.nn as nn

from transformer_contract.trace import tap
from impl_mlx.exact import mean_of


class LayerNorm(nn.Module):
    """Parameters: ``scale`` [D] and ``bias`` [D]."""

    def __init__(self, d_model, eps):
        super().__init__()
        self.eps = eps
        self.scale = mx.ones(d_model)
        self.bias = mx.zeros(d_model)

    def centre(self, x):
        """x [B T D] less its mean over D."""
        # [1] mean [B T 1]: Σ x / D
        mean = tap(self, "mean", mean_of(x))
        # [2] centered [B T D]: x - mean
        centered = tap(self, "centered", x - mean)
        return centered

    def normalise(self, centered):
        """Divide by the standard deviation, so that the variance is 1."""
        # [3] variance [B T 1]: Σ centered² / D  (R3)
        variance = tap(self, "variance", mean_of(centered * centered))
        # [4] normalized [B T D]: centered / √(variance + ε)  (R3)
        normalized = tap(self, "normalized",
                         centered / mx.sqrt(variance + self.eps))
        return normalized

    def __call__(self, x):
        """Normalise x [B T D] over D."""
        normalized = self.normalise(self.centre(x))
        # [5] output [B T D]: normalized · scale + bias
        output = tap(self, "output", normalized * self.scale + self.bias)
        return output
