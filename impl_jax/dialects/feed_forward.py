"""Feed-forward networks of other systems: activations, gates, no biases.

    FFN(x) = f(x W₁ + b₁) W₂ + b₂
    FFN(x) = (f(x W_g + b_g) · (x W₁ + b₁)) W₂ + b₂

The second is gated, as T5 1.1 and Llama have it (R38).
"""

import math

import jax
from flax import nnx

from transformer_contract.trace import tap
from impl_jax.dropout import Dropout
from impl_jax.feed_forward import FeedForward
from impl_jax.linear import Linear


def relu(x):
    """max(0, x)."""
    return jax.nn.relu(x)


def gelu(x):
    """x Φ(x) by erfc (R17); jax.nn.gelu is tanh by default."""
    return x * (jax.scipy.special.erfc(-x / math.sqrt(2)) / 2)


def gelu_tanh(x):
    """x σ(2u), u = √(2/π) (x + 0.044715 x³): GELU by tanh (R37)."""
    return x * jax.nn.sigmoid(
        math.sqrt(8 / math.pi) * (x + 0.044715 * x * x * x))


def silu(x):
    """x σ(x) (R37)."""
    return x * jax.nn.sigmoid(x)


ACTIVATIONS = {
    "relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu}


class DialectFeedForward(FeedForward):
    """Another activation, or no biases (R39)."""

    def __init__(self, config, *, rngs):
        super().__init__(config, rngs=rngs)
        d, f, biased = config.d_model, config.d_ff, config.feed_forward_bias
        self.inner = Linear(d, f, use_bias=biased, rngs=rngs)
        self.outer = Linear(f, d, use_bias=biased, rngs=rngs)
        self.activation = ACTIVATIONS[config.activation]

    def hidden(self, x):
        """What is between the two maps, [B T F]."""
        # [1] inner [B T F]: x W₁ + b₁
        inner = tap(self, "inner", self.inner(x))
        # [2] activated [B T F]: activation(inner)  (R17, R37)
        activated = tap(self, "activated", self.activation(inner))
        return activated


class GatedFeedForward(nnx.Module):
    """Shazeer 2020: an inner vector times an activated gate (R38)."""

    def __init__(self, config, *, rngs):
        d, f, biased = config.d_model, config.d_ff, config.feed_forward_bias
        self.gate = Linear(d, f, use_bias=biased, rngs=rngs)
        self.inner = Linear(d, f, use_bias=biased, rngs=rngs)
        self.outer = Linear(f, d, use_bias=biased, rngs=rngs)
        self.activation = ACTIVATIONS[config.activation]
        self.gated_dropout = Dropout(config.dropout, rngs=rngs)

    def __call__(self, x):
        """Map x [B T D] position by position."""
        # [1] gate [B T F]: x W_g + b_g  (R38)
        gate = tap(self, "gate", self.gate(x))
        # [2] inner [B T F]: x W₁ + b₁
        inner = tap(self, "inner", self.inner(x))
        # [3] activated [B T F]: activation(gate)  (R37)
        activated = tap(self, "activated", self.activation(gate))
        # [4] gated [B T F]: activated · inner  (R38)
        gated = tap(self, "gated", activated * inner)
        # [5] output [B T D]: gated W₂ + b₂
        output = tap(self, "output", self.outer(self.gated_dropout(gated)))
        return output
