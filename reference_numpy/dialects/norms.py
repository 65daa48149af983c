"""Norms that other systems have instead of the layer norm.

    StdLayerNorm        (x - mean) / (std + ε) · scale + bias
    ScalarStdLayerNorm  the same, one scale and one bias for all features
    RMSNorm             x / √(mean(x²) + ε) · scale

``std`` is the root of the sum of squares over D - 1 (unbiased; R4).
"""

import numpy as np

from reference_numpy.layer_norm import LayerNorm, sum_to


class StdLayerNorm(LayerNorm):
    """Over the unbiased standard deviation; scale and bias are [D]."""

    def normalise(self, centered, c):
        """Over the standard deviation and ε."""
        # [1] std [B T 1]: √(Σ centered² / (D - 1))  (R4)
        std = c["std"] = np.sqrt(np.sum(
            centered * centered, axis=-1, keepdims=True)
            / (centered.shape[-1] - 1))
        # [2] normalized [B T D]: centered / (std + ε)  (R4)
        normalized = c["normalized"] = centered / (std + self.eps)
        return normalized

    def normalise_backward(self, dnormalized, c, g):
        """From dnormalized [B T D]: dcentered."""
        centered, std = c["centered"], c["std"]
        # [2'] centered, std: normalized = centered / (std + ε)
        dcentered = dnormalized / (std + self.eps)
        dstd = g["std"] = -np.sum(
            dnormalized * centered, axis=-1, keepdims=True
        ) / (std + self.eps)**2
        # [1'] centered: std = √(Σ centered² / (D - 1))
        return dcentered + dstd * centered / (
            std * (centered.shape[-1] - 1))


class ScalarStdLayerNorm(StdLayerNorm):
    """StdLayerNorm with ``scale`` [1] and ``bias`` [1] (R5)."""

    def __init__(self, d_model, eps):
        super().__init__(d_model=1, eps=eps)


def rounded_to_float32(x):
    """x rounded to float32, in its own dtype (R41)."""
    return x.astype(np.float32).astype(x.dtype)


class RMSNorm:
    """Zhang and Sennrich 2019: no mean, no bias. Parameter: ``scale`` [D]."""

    def __init__(self, d_model, eps):
        self.eps = eps
        self.scale = np.ones(d_model)

    def power(self, x):
        """The mean of squares of x [B T D] over D: [B T 1]."""
        return np.mean(x * x, axis=-1, keepdims=True)

    def forward(self, x):
        """Normalise x [B T D] over D."""
        c = {"inputs": (x,)}
        # [1] mean_square [B T 1]: Σ x² / D  (R40)
        mean_square = c["mean_square"] = self.power(x)
        # [2] normalized [B T D]: x / √(mean_square + ε)  (R40)
        normalized = c["normalized"] = x / np.sqrt(mean_square + self.eps)
        # [3] output [B T D]: normalized · scale
        output = c["output"] = normalized * self.scale
        return output, c

    def backward(self, doutput, c):
        """From doutput [B T D]: dx and g; what is rounded passes it on."""
        (x,), g = c["inputs"], {"output": doutput}
        root = np.sqrt(c["mean_square"] + self.eps)
        # [3'] normalized, scale: output = normalized · scale
        dnormalized = g["normalized"] = doutput * self.scale
        g["scale"] = sum_to(self.scale.shape, doutput * c["normalized"])
        # [2'] x, mean_square: normalized = x / √(mean_square + ε)
        dx = dnormalized / root
        dmean_square = g["mean_square"] = -np.sum(
            dnormalized * x, axis=-1, keepdims=True) / (2 * root**3)
        # [1'] x: mean_square = Σ x² / D
        dx = dx + 2 * x * dmean_square / x.shape[-1]
        return dx, g


class Float32RMSNorm(RMSNorm):
    """RMSNorm whose mean square is rounded to float32 (R41)."""

    def power(self, x):
        """The mean of squares, rounded."""
        return rounded_to_float32(super().power(x))
