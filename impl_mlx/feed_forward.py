"""The feed-forward network, on nn.Linear (section 3.3)."""

import math

import mlx.core as mx
import mlx.nn as nn

from contract.trace import tap
from impl_mlx.dropout import Dropout
from impl_mlx.exact import erfc, sigmoid


def relu(x):
    """max(0, x)."""
    return mx.maximum(x, 0)


def gelu(x):
    """x Φ(x) by erfc (R17); nn.gelu says 1 + erf and loses the tail."""
    return x * (erfc(-x / math.sqrt(2)) / 2)


def gelu_tanh(x):
    """x σ(2u), u = √(2/π) (x + 0.044715 x³): GELU by tanh (R37)."""
    return x * sigmoid(
        math.sqrt(8 / math.pi) * (x + 0.044715 * x * x * x))


def silu(x):
    """x σ(x) (R37)."""
    return x * sigmoid(x)


ACTIVATIONS = {
    "relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu}


class FeedForward(nn.Module):
    """Two linear maps with an activation between."""

    def __init__(self, config):
        super().__init__()
        self.inner = nn.Linear(
            config.d_model, config.d_ff, bias=config.feed_forward_bias)
        self.outer = nn.Linear(
            config.d_ff, config.d_model, bias=config.feed_forward_bias)
        self.activation = ACTIVATIONS[config.activation]
        self.activated_dropout = Dropout(config.dropout)

    def __call__(self, x):
        """Map x [B T D] position by position."""
        # [1] inner [B T F]: x W₁ + b₁  (eq. 2)
        inner = tap(self, "inner", self.inner(x))
        # [2] activated [B T F]: max(0, inner), or as R37 names  (eq. 2, R17)
        activated = tap(self, "activated", self.activation(inner))
        # [3] output [B T D]: activated W₂ + b₂  (eq. 2)
        output = tap(self, "output", self.outer(
            self.activated_dropout(activated)))
        return output


class GatedFeedForward(nn.Module):
    """Shazeer 2020: an inner vector times an activated gate (R38)."""

    def __init__(self, config):
        super().__init__()
        self.gate = nn.Linear(
            config.d_model, config.d_ff, bias=config.feed_forward_bias)
        self.inner = nn.Linear(
            config.d_model, config.d_ff, bias=config.feed_forward_bias)
        self.outer = nn.Linear(
            config.d_ff, config.d_model, bias=config.feed_forward_bias)
        self.activation = ACTIVATIONS[config.activation]
        self.gated_dropout = Dropout(config.dropout)

    def __call__(self, x):
        """Map x [B T D] position by position."""
        # [1] gate [B T F]: x W_g + b_g  (R38)
        gate = tap(self, "gate", self.gate(x))
        # [2] inner [B T F]: x W₁ + b₁
        inner = tap(self, "inner", self.inner(x))
        # [3] activated [B T F]: max(0, gate), or as R37 names
        activated = tap(self, "activated", self.activation(gate))
        # [4] gated [B T F]: activated · inner, each by each  (R38)
        gated = tap(self, "gated", activated * inner)
        # [5] output [B T D]: gated W₂ + b₂
        output = tap(self, "output", self.outer(self.gated_dropout(gated)))
        return output


FEED_FORWARDS = {False: FeedForward, True: GatedFeedForward}
