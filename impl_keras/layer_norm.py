"""Layer normalisation over the last axis, D features (Ba et al. 2016).

    LayerNorm(x) = (x - mean) / √(variance + ε) · scale + bias

``variance`` divides by D (biased; R3). keras.layers.LayerNormalization is the
same, as parity_tests/ports/test_native.py checks. Other norms are in
dialects/norms.py.
"""

import keras
from keras import ops

from transformer_contract.trace import tap
from impl_keras.whole import Layer


def average(x):
    """Σ x / D, kept as an axis of 1."""
    if keras.backend.standardize_dtype(x.dtype) == "float64":
        # keras: ops.mean is float32 inside, on JAX and on torch.
        return ops.sum(x, axis=-1, keepdims=True) / x.shape[-1]
    return ops.mean(x, axis=-1, keepdims=True)


class LayerNorm(Layer):
    """Parameters: ``scale`` [D] and ``bias`` [D]."""

    def __init__(self, d_model, eps):
        super().__init__()
        self.eps = eps
        self.scale = self.add_weight((d_model,), "ones", name="scale")
        self.bias = self.add_weight((d_model,), "zeros", name="bias")

    def centre(self, x):
        """x [B T D] less its mean over D."""
        # [1] mean [B T 1]: Σ x / D
        mean = tap(self, "mean", average(x))
        # [2] centered [B T D]: x - mean
        centered = tap(self, "centered", x - mean)
        return centered

    def normalise(self, centered):
        """Divide by the standard deviation, so that the variance is 1."""
        # [3] variance [B T 1]: Σ centered² / D  (R3)
        variance = tap(self, "variance", average(centered * centered))
        # [4] normalized [B T D]: centered / √(variance + ε)  (R3)
        normalized = tap(self, "normalized",
                         centered / ops.sqrt(variance + self.eps))
        return normalized

    def call(self, x):
        """Normalise x [B T D] over D."""
        normalized = self.normalise(self.centre(x))
        # [5] output [B T D]: normalized · scale + bias
        output = tap(self, "output", normalized * self.scale + self.bias)
        return output
