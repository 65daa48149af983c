"""Four normalisations over the last axis, D features each.

The frameworks' defaults disagree on epsilon, and lessons disagree with the
frameworks on the variance, so each form is written out (R3 to R5)::

    LayerNorm           (x - mean) / √(variance + ε) · scale + bias
    StdLayerNorm        (x - mean) / (std + ε) · scale + bias
    ScalarStdLayerNorm  the same, one scale and one bias for all features
    RMSNorm             x / √(mean(x²) + ε) · scale

``variance`` divides by D (biased); ``std`` is the root of the sum of squares
over D - 1 (unbiased). The mean is subtracted before squaring: the other way,
mean(x²) - mean(x)², loses every digit when the mean is large.
"""

import numpy as np


def sum_to(shape, x):
    """Sum x over all axes but the last, and over that too for shape [1]."""
    rows = x.reshape(-1, x.shape[-1]).sum(axis=0)
    return rows if rows.shape == shape else rows.sum().reshape(shape)


class LayerNorm:
    """Ba et al. 2016. Parameters: ``scale`` [D] and ``bias`` [D]."""

    def __init__(self, d_model, eps):
        self.eps = eps
        self.scale = np.ones(d_model)
        self.bias = np.zeros(d_model)

    def forward(self, x):
        """Normalise x [B T D] over D."""
        c = {}
        # [1] mean [B T 1]: Σ x / D
        mean = c["mean"] = np.mean(x, axis=-1, keepdims=True)
        # [2] centered [B T D]: x - mean
        centered = c["centered"] = x - mean
        # [3] variance [B T 1]: Σ centered² / D  (R3)
        variance = c["variance"] = np.mean(
            centered * centered, axis=-1, keepdims=True)
        # [4] normalized [B T D]: centered / √(variance + ε)  (R3)
        normalized = c["normalized"] = centered / np.sqrt(variance + self.eps)
        # [5] output [B T D]: normalized · scale + bias
        output = c["output"] = normalized * self.scale + self.bias
        return output, c

    def backward(self, doutput, c):
        """From doutput [B T D]: dx and g.

        x reaches the output by three ways, and each adds its part: as itself,
        through the variance, and through the mean.
        """
        g = {"output": doutput}
        centered, root = c["centered"], np.sqrt(c["variance"] + self.eps)
        # [5'] normalized, scale, bias: output = normalized · scale + bias
        dnormalized = g["normalized"] = doutput * self.scale
        g["scale"] = sum_to(self.scale.shape, doutput * c["normalized"])
        g["bias"] = sum_to(self.bias.shape, doutput)
        # [4'] centered, variance: normalized = centered / √(variance + ε)
        dcentered = dnormalized / root
        dvariance = g["variance"] = -np.sum(
            dnormalized * centered, axis=-1, keepdims=True) / (2 * root**3)
        # [3'] centered: variance = Σ centered² / D
        dcentered = dcentered + 2 * centered * dvariance / centered.shape[-1]
        g["centered"] = dcentered
        # [2'] x, mean: centered = x - mean
        dx = dcentered
        dmean = g["mean"] = -np.sum(dcentered, axis=-1, keepdims=True)
        # [1'] x: mean = Σ x / D
        dx = dx + dmean / centered.shape[-1]
        return dx, g


class StdLayerNorm:
    """Divided by the unbiased standard deviation; scale and bias are [D]."""

    def __init__(self, d_model, eps):
        self.eps = eps
        self.scale = np.ones(d_model)
        self.bias = np.zeros(d_model)

    def forward(self, x):
        """Normalise x [B T D] over D."""
        c = {}
        # [1] mean [B T 1]: Σ x / D
        mean = c["mean"] = np.mean(x, axis=-1, keepdims=True)
        # [2] centered [B T D]: x - mean
        centered = c["centered"] = x - mean
        # [3] std [B T 1]: √(Σ centered² / (D - 1))  (R4)
        std = c["std"] = np.sqrt(np.sum(
            centered * centered, axis=-1, keepdims=True) / (x.shape[-1] - 1))
        # [4] normalized [B T D]: centered / (std + ε)  (R4)
        normalized = c["normalized"] = centered / (std + self.eps)
        # [5] output [B T D]: normalized · scale + bias
        output = c["output"] = normalized * self.scale + self.bias
        return output, c

    def backward(self, doutput, c):
        """From doutput [B T D]: dx and g; as in LayerNorm, through the std."""
        g = {"output": doutput}
        centered, std = c["centered"], c["std"]
        # [5'] normalized, scale, bias: output = normalized · scale + bias
        dnormalized = g["normalized"] = doutput * self.scale
        g["scale"] = sum_to(self.scale.shape, doutput * c["normalized"])
        g["bias"] = sum_to(self.bias.shape, doutput)
        # [4'] centered, std: normalized = centered / (std + ε)
        dcentered = dnormalized / (std + self.eps)
        dstd = g["std"] = -np.sum(
            dnormalized * centered, axis=-1, keepdims=True
        ) / (std + self.eps)**2
        # [3'] centered: std = √(Σ centered² / (D - 1))
        dcentered = dcentered + dstd * centered / (
            std * (centered.shape[-1] - 1))
        g["centered"] = dcentered
        # [2'] x, mean: centered = x - mean
        dx = dcentered
        dmean = g["mean"] = -np.sum(dcentered, axis=-1, keepdims=True)
        # [1'] x: mean = Σ x / D
        dx = dx + dmean / centered.shape[-1]
        return dx, g


class ScalarStdLayerNorm(StdLayerNorm):
    """StdLayerNorm with ``scale`` [1] and ``bias`` [1] (R5)."""

    def __init__(self, d_model, eps):
        super().__init__(d_model=1, eps=eps)


def unrounded(x):
    """x, where nothing is rounded."""
    return x


def rounded_to_float32(x):
    """x rounded to float32, in its own dtype (R41)."""
    return x.astype(np.float32).astype(x.dtype)


class RMSNorm:
    """Zhang and Sennrich 2019: no mean, no bias. Parameter: ``scale`` [D]."""

    rounded = staticmethod(unrounded)

    def __init__(self, d_model, eps):
        self.eps = eps
        self.scale = np.ones(d_model)

    def forward(self, x):
        """Normalise x [B T D] over D."""
        c = {"inputs": (x,)}
        # [1] mean_square [B T 1]: Σ x² / D, rounded where R41 says so  (R40)
        mean_square = c["mean_square"] = self.rounded(
            np.mean(x * x, axis=-1, keepdims=True))
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

    rounded = staticmethod(rounded_to_float32)


NORMS = {
    "layer": LayerNorm,
    "std": StdLayerNorm,
    "scalar_std": ScalarStdLayerNorm,
    "rms": RMSNorm,
    "rms_float32": Float32RMSNorm,
}


class NoNorm:
    """The identity, where a stack ends without a norm (R11)."""

    def forward(self, x):
        """Return x [B T D] as it is."""
        return x, {}

    def backward(self, doutput, c):
        """Return doutput [B T D] as it is."""
        return doutput, {}
