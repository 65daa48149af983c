"""Feed-forward networks of other systems: activations, gates, no biases.

    FFN(x) = f(x W₁ + b₁) W₂ + b₂
    FFN(x) = (f(x W_g + b_g) · (x W₁ + b₁)) W₂ + b₂

The second is gated, as T5 1.1 and Llama have it (R38).
"""

import math

from keras import ops

from transformer_contract.trace import tap
from impl_keras.dropout import Dropout
from impl_keras.feed_forward import FeedForward
from impl_keras.whole import Layer, dense


def relu(x):
    """max(0, x)."""
    return ops.relu(x)


def gelu(x):
    """x Φ(x) by erfc (R17); on TensorFlow ops.gelu is not float64's."""
    return x * (ops.erfc(-x / math.sqrt(2)) / 2)


def gelu_tanh(x):
    """x σ(2u), u = √(2/π) (x + 0.044715 x³): GELU by tanh (R37)."""
    return x * ops.sigmoid(
        math.sqrt(8 / math.pi) * (x + 0.044715 * x * x * x))


def silu(x):
    """x σ(x) (R37)."""
    return x * ops.sigmoid(x)


ACTIVATIONS = {
    "relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu}


class DialectFeedForward(FeedForward):
    """Another activation, or no biases (R39)."""

    def __init__(self, config):
        Layer.__init__(self)  # keras: would keep the weights of other maps
        d, f, biased = config.d_model, config.d_ff, config.feed_forward_bias
        self.inner = dense(d, f, use_bias=biased)
        self.outer = dense(f, d, use_bias=biased)
        self.activation = ACTIVATIONS[config.activation]
        self.activated_dropout = Dropout(config.dropout)

    def hidden(self, x):
        """What is between the two maps, [B T F]."""
        # [1] inner [B T F]: x W₁ + b₁
        inner = tap(self, "inner", self.inner(x))
        # [2] activated [B T F]: activation(inner)  (R17, R37)
        activated = tap(self, "activated", self.activation(inner))
        return activated


class GatedFeedForward(Layer):
    """Shazeer 2020: an inner vector times an activated gate (R38)."""

    def __init__(self, config):
        super().__init__()
        d, f, biased = config.d_model, config.d_ff, config.feed_forward_bias
        self.gate = dense(d, f, use_bias=biased)
        self.inner = dense(d, f, use_bias=biased)
        self.outer = dense(f, d, use_bias=biased)
        self.activation = ACTIVATIONS[config.activation]
        self.gated_dropout = Dropout(config.dropout)

    def call(self, x):
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
