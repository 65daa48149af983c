"""Layer normalisation over the last axis, D features (Ba et al. 2016).

    LayerNorm(x) = (x - mean) / √(variance + ε) · scale + bias

``variance`` divides by D (biased; R3). The mean is subtracted before squaring:
the other way, mean(x²) - mean(x)², loses every digit when the mean is large.
Other norms are in dialects/norms.py.
"""

import numpy as np


def sum_to(shape, x):
    """Sum x down to a parameter's shape: [D], or [1]."""
    rows = x.reshape(-1, x.shape[-1]).sum(axis=0)
    return rows if rows.shape == shape else rows.sum().reshape(shape)


class LayerNorm:
    """Parameters: ``scale`` [D] and ``bias`` [D]."""

    def __init__(self, d_model, eps):
        self.eps = eps
        self.scale = np.ones(d_model)
        self.bias = np.zeros(d_model)

    def centre(self, x, c):
        """x [B T D] less its mean over D."""
        # [1] mean [B T 1]: Σ x / D
        mean = c["mean"] = np.mean(x, axis=-1, keepdims=True)
        # [2] centered [B T D]: x - mean
        centered = c["centered"] = x - mean
        return centered

    def normalise(self, centered, c):
        """Divide by the standard deviation, so that the variance is 1."""
        # [3] variance [B T 1]: Σ centered² / D  (R3)
        variance = c["variance"] = np.mean(
            centered * centered, axis=-1, keepdims=True)
        # [4] normalized [B T D]: centered / √(variance + ε)  (R3)
        normalized = c["normalized"] = centered / np.sqrt(variance + self.eps)
        return normalized

    def forward(self, x):
        """Normalise x [B T D] over D."""
        c = {}
        normalized = self.normalise(self.centre(x, c), c)
        # [5] output [B T D]: normalized · scale + bias
        output = c["output"] = normalized * self.scale + self.bias
        return output, c

    def backward(self, doutput, c):
        """From doutput [B T D]: dx and g.

        x reaches the output by three ways, and each adds its part: as itself,
        through the variance, and through the mean.
        """
        g = {"output": doutput}
        # [5'] normalized, scale, bias: output = normalized · scale + bias
        dnormalized = g["normalized"] = doutput * self.scale
        g["scale"] = sum_to(self.scale.shape, doutput * c["normalized"])
        g["bias"] = sum_to(self.bias.shape, doutput)
        dcentered = self.normalise_backward(dnormalized, c, g)
        return self.centre_backward(dcentered, g), g

    def normalise_backward(self, dnormalized, c, g):
        """From dnormalized [B T D]: dcentered."""
        centered, root = c["centered"], np.sqrt(c["variance"] + self.eps)
        # [4'] centered, variance: normalized = centered / √(variance + ε)
        dcentered = dnormalized / root
        dvariance = g["variance"] = -np.sum(
            dnormalized * centered, axis=-1, keepdims=True) / (2 * root**3)
        # [3'] centered: variance = Σ centered² / D
        return dcentered + 2 * centered * dvariance / centered.shape[-1]

    def centre_backward(self, dcentered, g):
        """From dcentered [B T D]: dx."""
        g["centered"] = dcentered
        # [2'] x, mean: centered = x - mean
        dx = dcentered
        dmean = g["mean"] = -np.sum(dcentered, axis=-1, keepdims=True)
        # [1'] x: mean = Σ x / D
        return dx + dmean / dcentered.shape[-1]
