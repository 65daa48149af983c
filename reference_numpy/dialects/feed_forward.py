"""Feed-forward networks of other systems: activations, gates, no biases.

    FFN(x) = f(x W₁ + b₁) W₂ + b₂
    FFN(x) = (f(x W_g + b_g) · (x W₁ + b₁)) W₂ + b₂

The second is gated, as T5 1.1 and Llama have it (R38).
"""

import math

import numpy as np

from reference_numpy.dialects.linear import LINEARS
from reference_numpy.dropout import Dropout
from reference_numpy.feed_forward import FeedForward
from reference_numpy.linear import under


def relu(x):
    """max(0, x)."""
    return np.maximum(x, 0)


def relu_backward(dy, x):
    """dy where x > 0, else 0; at 0 itself, where no slope is right, 0."""
    return np.where(x > 0, dy, 0)


def normal_cdf(x):
    """Φ(x) = erfc(-x / √2) / 2, the share of a normal below x.

    The usual 1 + erf(x / √2) cancels where x is very negative and leaves 2 %
    of relative error there. NumPy has no erfc, so the standard library's is
    called number by number, in float64.
    """
    z = np.asarray(-x / math.sqrt(2), np.float64)
    return (np.vectorize(math.erfc, otypes="d")(z) / 2).astype(x.dtype)


def gelu(x):
    """x Φ(x), Hendrycks and Gimpel 2016, in its exact form (R17)."""
    return x * normal_cdf(x)


def gelu_backward(dy, x):
    """dy (Φ(x) + x φ(x)), φ being the normal density."""
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return dy * (normal_cdf(x) + x * density)


def sigmoid(x):
    """σ(x) = 1 / (1 + exp(-x)), written so that nothing overflows."""
    return np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x)))


def gelu_tanh(x):
    """x σ(2u), u = √(2/π) (x + 0.044715 x³): GELU by tanh (R37).

    It is known as x (1 + tanh(u)) / 2, which is the same, but cancels where x
    is very negative.
    """
    return x * sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * x * x * x))


def gelu_tanh_backward(dy, x):
    """dy (σ(2u) + x σ(2u) σ(-2u) (2u)′)."""
    twice_u = math.sqrt(8 / math.pi) * (x + 0.044715 * x * x * x)
    slope = math.sqrt(8 / math.pi) * (1 + 3 * 0.044715 * x * x)
    return dy * sigmoid(twice_u) * (1 + x * sigmoid(-twice_u) * slope)


def silu(x):
    """x σ(x), Elfwing et al. 2018, also called swish (R37)."""
    return x * sigmoid(x)


def silu_backward(dy, x):
    """dy (σ(x) + x σ(x) σ(-x))."""
    return dy * sigmoid(x) * (1 + x * sigmoid(-x))


ACTIVATIONS = {
    "relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu}
ACTIVATIONS_BACKWARD = {
    "relu": relu_backward, "gelu": gelu_backward,
    "gelu_tanh": gelu_tanh_backward, "silu": silu_backward}


class DialectFeedForward(FeedForward):
    """Another activation, or no biases (R39)."""

    def __init__(self, config):
        super().__init__(config)
        Linear = LINEARS[config.feed_forward_bias]
        self.inner = Linear(config.d_model, config.d_ff)
        self.outer = Linear(config.d_ff, config.d_model)
        self.activation = ACTIVATIONS[config.activation]
        self.activation_backward = ACTIVATIONS_BACKWARD[config.activation]

    def hidden(self, x, c):
        """What is between the two maps, [B T F]."""
        # [1] inner [B T F]: x W₁ + b₁
        inner = c["inner"] = self.inner(x)
        # [2] activated [B T F]: activation(inner)  (R17, R37)
        activated = c["activated"] = self.activation(inner)
        return activated

    def hidden_backward(self, dactivated, c, g):
        """From dactivated [B T F]: dx."""
        (x,) = c["inputs"]
        # [2'] inner: activated = activation(inner)
        dinner = g["inner"] = self.activation_backward(dactivated, c["inner"])
        # [1'] x, W₁, b₁: inner = x W₁ + b₁
        dx, gradients = self.inner.backward(dinner, x)
        g |= under("inner", gradients)
        return dx


class GatedFeedForward:
    """Shazeer 2020: an inner vector times an activated gate (R38).

    Parameters: as FeedForward, and ``gate`` of the same shapes as ``inner``.
    """

    def __init__(self, config):
        Linear = LINEARS[config.feed_forward_bias]
        self.gate = Linear(config.d_model, config.d_ff)
        self.inner = Linear(config.d_model, config.d_ff)
        self.outer = Linear(config.d_ff, config.d_model)
        self.activation = ACTIVATIONS[config.activation]
        self.activation_backward = ACTIVATIONS_BACKWARD[config.activation]
        self.gated_dropout = Dropout(config.dropout)

    def forward(self, x):
        """Map x [B T D] position by position."""
        c = {"inputs": (x,)}
        # [1] gate [B T F]: x W_g + b_g  (R38)
        gate = c["gate"] = self.gate(x)
        # [2] inner [B T F]: x W₁ + b₁
        inner = c["inner"] = self.inner(x)
        # [3] activated [B T F]: activation(gate)  (R37)
        activated = c["activated"] = self.activation(gate)
        # [4] gated [B T F]: activated · inner  (R38)
        gated = c["gated"] = activated * inner
        dropped, c["gated_dropout"] = self.gated_dropout.forward(gated)
        # [5] output [B T D]: gated W₂ + b₂
        output = c["output"] = self.outer(dropped)
        return output, c

    def backward(self, doutput, c):
        """From doutput [B T D]: dx and g."""
        (x,), g = c["inputs"], {"output": doutput}
        # [5'] gated, W₂, b₂: output = gated W₂ + b₂
        dropped, _ = c["gated_dropout"]
        ddropped, gradients = self.outer.backward(doutput, dropped)
        dgated = self.gated_dropout.backward(ddropped, c["gated_dropout"])
        g |= {"gated": dgated, **under("outer", gradients)}
        # [4'] activated, inner: gated = activated · inner
        dactivated = g["activated"] = dgated * c["inner"]
        dinner = g["inner"] = dgated * c["activated"]
        # [3'] gate: activated = activation(gate)
        dgate = g["gate"] = self.activation_backward(dactivated, c["gate"])
        # [2'] x, W₁, b₁: inner = x W₁ + b₁
        dx, gradients = self.inner.backward(dinner, x)
        g |= under("inner", gradients)
        # [1'] x, W_g, b_g: gate = x W_g + b_g
        dx_gate, gradients = self.gate.backward(dgate, x)
        g |= under("gate", gradients)
        return dx + dx_gate, g
