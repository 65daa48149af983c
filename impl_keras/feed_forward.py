"""The feed-forward network, on keras.layers.Dense (section 3.3)."""

import math

import keras
from keras import ops

from contract.trace import tap
from impl_keras.dropout import Dropout


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


class FeedForward(keras.layers.Layer):
    """Two linear maps with an activation between."""

    def __init__(self, config):
        super().__init__()
        self.built = True  # keras: nothing of its own to build
        self.inner = keras.layers.Dense(config.d_ff)
        self.outer = keras.layers.Dense(config.d_model)
        self.activation = ACTIVATIONS[config.activation]
        self.activated_dropout = Dropout(config.dropout)

    def call(self, x):
        """Map x [B T D] position by position."""
        # [1] inner [B T F]: x W₁ + b₁  (eq. 2)
        inner = tap(self, "inner", self.inner(x))
        # [2] activated [B T F]: max(0, inner), or as R37 names  (eq. 2, R17)
        activated = tap(self, "activated", self.activation(inner))
        # [3] output [B T D]: activated W₂ + b₂  (eq. 2)
        output = tap(self, "output", self.outer(
            self.activated_dropout(activated)))
        return output
