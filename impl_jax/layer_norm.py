"""Four normalisations; test_native.py shows what nnx.LayerNorm equals."""

import jax
import jax.numpy as jnp
from flax import nnx

from contract.trace import tap


class LayerNorm(nnx.Module):
    """Ba et al. 2016. Parameters: ``scale`` [D] and ``bias`` [D]."""

    def __init__(self, d_model, eps):
        self.eps = eps
        self.scale = nnx.Param(jnp.ones(d_model))
        self.bias = nnx.Param(jnp.zeros(d_model))

    def __call__(self, x):
        """Normalise x [B T D] over D."""
        # [1] mean [B T 1]: Σ x / D
        mean = tap(self, "mean", jnp.mean(x, axis=-1, keepdims=True))
        # [2] centered [B T D]: x - mean
        centered = tap(self, "centered", x - mean)
        # [3] variance [B T 1]: Σ centered² / D  (R3)
        variance = tap(self, "variance", jnp.mean(
            centered * centered, axis=-1, keepdims=True))
        # [4] normalized [B T D]: centered / √(variance + ε)  (R3)
        normalized = tap(self, "normalized",
                         centered / jnp.sqrt(variance + self.eps))
        # [5] output [B T D]: normalized · scale + bias
        output = tap(self, "output", normalized * self.scale + self.bias)
        return output


class StdLayerNorm(nnx.Module):
    """Divided by the unbiased standard deviation; scale and bias are [D]."""

    def __init__(self, d_model, eps):
        self.eps = eps
        self.scale = nnx.Param(jnp.ones(d_model))
        self.bias = nnx.Param(jnp.zeros(d_model))

    def __call__(self, x):
        """Normalise x [B T D] over D."""
        # [1] mean [B T 1]: Σ x / D
        mean = tap(self, "mean", jnp.mean(x, axis=-1, keepdims=True))
        # [2] centered [B T D]: x - mean
        centered = tap(self, "centered", x - mean)
        # [3] std [B T 1]: √(Σ centered² / (D - 1))  (R4)
        std = tap(self, "std", jnp.sqrt(jnp.sum(
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
    # nnx: XLA may leave out a cast there and back; this it keeps.
    rounded = jax.lax.reduce_precision(x, exponent_bits=8, mantissa_bits=23)
    return x + jax.lax.stop_gradient(rounded - x)


class RMSNorm(nnx.Module):
    """Zhang and Sennrich 2019: no mean, no bias. Parameter: ``scale`` [D]."""

    rounded = staticmethod(unrounded)

    def __init__(self, d_model, eps):
        self.eps = eps
        self.scale = nnx.Param(jnp.ones(d_model))

    def __call__(self, x):
        """Normalise x [B T D] over D."""
        # [1] mean_square [B T 1]: Σ x² / D, rounded where R41 says so  (R40)
        mean_square = tap(self, "mean_square", self.rounded(
            jnp.mean(x * x, axis=-1, keepdims=True)))
        # [2] normalized [B T D]: x / √(mean_square + ε)  (R40)
        normalized = tap(self, "normalized",
                         x / jnp.sqrt(mean_square + self.eps))
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


class NoNorm(nnx.Module):
    """The identity, where a stack ends without a norm (R11)."""

    def __call__(self, x):
        """Return x [B T D] as it is."""
        return x
