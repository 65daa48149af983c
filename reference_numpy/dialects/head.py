"""The head: what vectors pass before the projection.

The paper has none. BERT's, which is to guess masked tokens, is a linear map of
its own, the feed-forward's activation and a norm (R57). The projection
follows, tied, with a bias (R50).
"""

from reference_numpy import parts
from reference_numpy.dialects.feed_forward import (
    ACTIVATIONS, ACTIVATIONS_BACKWARD)
from reference_numpy.linear import Linear, under


class TransformHead:
    """BERT's: dense, activation, norm.

    Parameters: ``inner`` with ``kernel`` [D D] and ``bias`` [D], and those of
    ``norm``.
    """

    def __init__(self, config):
        self.inner = Linear(config.d_model, config.d_model)
        self.activation = ACTIVATIONS[config.activation]
        self.activation_backward = ACTIVATIONS_BACKWARD[config.activation]
        self.norm = parts.norm(config, config.norm_eps)

    def forward(self, x):
        """Map x [B T D] to what the projection reads."""
        c = {"inputs": (x,)}
        # [1] inner [B T D]: x W + b  (R57)
        inner = c["inner"] = self.inner(x)
        # [2] activated [B T D]: activation(inner)  (R37)
        activated = c["activated"] = self.activation(inner)
        normalized, c["norm"] = self.norm.forward(activated)
        return normalized, c

    def backward(self, dnormalized, c):
        """From dnormalized [B T D]: dx and g."""
        (x,), g = c["inputs"], {}
        dactivated, g["norm"] = self.norm.backward(dnormalized, c["norm"])
        g["activated"] = dactivated
        # [2'] inner: activated = activation(inner)
        dinner = g["inner"] = self.activation_backward(dactivated, c["inner"])
        # [1'] x, W, b: inner = x W + b
        dx, gradients = self.inner.backward(dinner, x)
        g |= under("inner", gradients)
        return dx, g
