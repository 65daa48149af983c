"""Three normalisations over the last axis, D features each.

The frameworks' defaults disagree on epsilon, and lessons disagree with the
frameworks on the variance, so each form is written out (R3 to R5)::

    LayerNorm           (x - mean) / √(variance + ε) · scale + bias
    StdLayerNorm        (x - mean) / (std + ε) · scale + bias
    ScalarStdLayerNorm  the same, one scale and one bias for all features

``variance`` divides by D (biased); ``std`` is the root of the sum of squares
over D - 1 (unbiased). The mean is subtracted before squaring: the other way,
mean(x²) - mean(x)², loses every digit when the mean is large.
"""

import numpy as np


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


class StdLayerNorm:
    """Divided by the unbiased deviation. ``scale`` [D] and ``bias`` [D]."""

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


class ScalarStdLayerNorm(StdLayerNorm):
    """StdLayerNorm with ``scale`` [1] and ``bias`` [1] (R5)."""

    def __init__(self, d_model, eps):
        super().__init__(d_model=1, eps=eps)


NORMS = {
    "layer": LayerNorm,
    "std": StdLayerNorm,
    "scalar_std": ScalarStdLayerNorm,
}


class NoNorm:
    """The identity, where a stack ends without a norm (R11)."""

    def forward(self, x):
        """Return x [B T D] as it is."""
        return x, {}
