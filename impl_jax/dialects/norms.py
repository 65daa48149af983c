"""Norms that other systems have instead of the layer norm.

    StdLayerNorm        (x - mean) / (std + ε) · scale + bias
    ScalarStdLayerNorm  the same, one scale and one bias for all features
    RMSNorm             x / √(mean(x²) + ε) · scale

``std`` is the root of the sum of squares over D - 1 (unbiased; R4).
"""

import jax
import jax.numpy as jnp
from flax import nnx

from transformer_contract.trace import tap
from impl_jax.layer_norm import LayerNorm


class StdLayerNorm(LayerNorm):
    """Over the unbiased standard deviation; scale and bias are [D]."""

    def normalise(self, centered):
        """Over the standard deviation and ε."""
        # [1] std [B T 1]: √(Σ centered² / (D - 1))  (R4)
        std = tap(self, "std", jnp.sqrt(jnp.sum(
            centered * centered, axis=-1, keepdims=True)
            / (centered.shape[-1] - 1)))
        # [2] normalized [B T D]: centered / (std + ε)  (R4)
        normalized = tap(self, "normalized", centered / (std + self.eps))
        return normalized


class ScalarStdLayerNorm(StdLayerNorm):
    """StdLayerNorm with ``scale`` [1] and ``bias`` [1] (R5)."""

    def __init__(self, d_model, eps, *, rngs):
        super().__init__(d_model=1, eps=eps, rngs=rngs)


def rounded_to_float32(x):
    """x rounded to float32, in its own dtype (R41); its gradient is x's."""
    # nnx: XLA may leave out a cast there and back; this it keeps.
    rounded = jax.lax.reduce_precision(x, exponent_bits=8, mantissa_bits=23)
    return x + jax.lax.stop_gradient(rounded - x)


class RMSNorm(nnx.Module):
    """Zhang and Sennrich 2019: no mean, no bias. Parameter: ``scale`` [D]."""

    def __init__(self, d_model, eps, *, rngs):
        self.eps = eps
        self.scale = nnx.Param(jnp.ones(d_model, jnp.float32))

    def power(self, x):
        """The mean of squares of x [B T D] over D: [B T 1]."""
        return jnp.mean(x * x, axis=-1, keepdims=True)

    def __call__(self, x):
        """Normalise x [B T D] over D."""
        # [1] mean_square [B T 1]: Σ x² / D  (R40)
        mean_square = tap(self, "mean_square", self.power(x))
        # [2] normalized [B T D]: x / √(mean_square + ε)  (R40)
        normalized = tap(self, "normalized",
                         x / jnp.sqrt(mean_square + self.eps))
        # [3] output [B T D]: normalized · scale
        output = tap(self, "output", normalized * self.scale)
        return output


class Float32RMSNorm(RMSNorm):
    """RMSNorm whose mean square is rounded to float32 (R41)."""

    def power(self, x):
        """The mean of squares, rounded."""
        return rounded_to_float32(super().power(x))
