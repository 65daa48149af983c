"""Four normalisations; MLX's own have their root in float32."""

import mlx.core as mx
import mlx.nn as nn

from contract.trace import tap
from impl_mlx.exact import mean_of


class LayerNorm(nn.Module):
    """Ba et al. 2016. Parameters: ``scale`` [D] and ``bias`` [D]."""

    def __init__(self, d_model, eps):
        super().__init__()
        self.eps = eps
        self.scale = mx.ones(d_model)
        self.bias = mx.zeros(d_model)

    def __call__(self, x):
        """Normalise x [B T D] over D."""
        # [1] mean [B T 1]: Σ x / D
        mean = tap(self, "mean", mean_of(x))
        # [2] centered [B T D]: x - mean
        centered = tap(self, "centered", x - mean)
        # [3] variance [B T 1]: Σ centered² / D  (R3)
        variance = tap(self, "variance", mean_of(
            centered * centered))
        # [4] normalized [B T D]: centered / √(variance + ε)  (R3)
        normalized = tap(self, "normalized",
                         centered / mx.sqrt(variance + self.eps))
        # [5] output [B T D]: normalized · scale + bias
        output = tap(self, "output", normalized * self.scale + self.bias)
        return output


class StdLayerNorm(nn.Module):
    """Divided by the unbiased standard deviation; scale and bias are [D]."""

    def __init__(self, d_model, eps):
        super().__init__()
        self.eps = eps
        self.scale = mx.ones(d_model)
        self.bias = mx.zeros(d_model)

    def __call__(self, x):
        """Normalise x [B T D] over D."""
        # [1] mean [B T 1]: Σ x / D
        mean = tap(self, "mean", mean_of(x))
        # [2] centered [B T D]: x - mean
        centered = tap(self, "centered", x - mean)
        # [3] std [B T 1]: √(Σ centered² / (D - 1))  (R4)
        std = tap(self, "std", mx.sqrt(mx.sum(
            centered * centered, axis=-1, keepdims=True) / (x.shape[-1] - 1)))
        # [4] normalized [B T D]: centered / (std + ε)  (R4)
        normalized = tap(self, "normalized", centered / (std + self.eps))
        # [5] output [B T D]: normalized · scale + bias
        output = tap(self, "output", normalized * self.scale + self.bias)
        return output


class ScalarStdLayerNorm(StdLayerNorm):
    """StdLayerNorm with ``scale`` [1] and ``bias`` [1] (R5)."""

    def __init__(self, d_model, eps):
        super().__init__(d_model=1, eps=eps)


def unrounded(x):
    """x, where nothing is rounded."""
    return x


def rounded_to_float32(x):
    """x rounded to float32, in its own dtype (R41); its gradient is x's."""
    return x + mx.stop_gradient(x.astype(mx.float32).astype(x.dtype) - x)


class RMSNorm(nn.Module):
    """Zhang and Sennrich 2019: no mean, no bias. Parameter: ``scale`` [D]."""

    rounded = staticmethod(unrounded)

    def __init__(self, d_model, eps):
        super().__init__()
        self.eps = eps
        self.scale = mx.ones(d_model)

    def __call__(self, x):
        """Normalise x [B T D] over D."""
        # [1] mean_square [B T 1]: Σ x² / D, rounded where R41 says so  (R40)
        mean_square = tap(self, "mean_square", self.rounded(
            mean_of(x * x)))
        # [2] normalized [B T D]: x / √(mean_square + ε)  (R40)
        normalized = tap(self, "normalized",
                         x / mx.sqrt(mean_square + self.eps))
        # [3] output [B T D]: normalized · scale
        output = tap(self, "output", normalized * self.scale)
        return output


class Float32RMSNorm(RMSNorm):
    """RMSNorm whose mean square is rounded to float32 (R41)."""

    rounded = staticmethod(rounded_to_float32)


NORMS = {
    "layer": LayerNorm,
    "std": StdLayerNorm,
    "scalar_std": ScalarStdLayerNorm,
    "rms": RMSNorm,
    "rms_float32": Float32RMSNorm,
}


class NoNorm(nn.Module):
    """The identity, where a stack ends without a norm (R11)."""

    def __call__(self, x):
        """Return x [B T D] as it is."""
        return x
