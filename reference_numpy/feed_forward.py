"""The feed-forward network, the same at every position (section 3.3).

    FFN(x) = max(0, x W₁ + b₁) W₂ + b₂                               (eq. 2)
"""

import math

import numpy as np

from reference_numpy.linear import Linear


def relu(x):
    """max(0, x)."""
    return np.maximum(x, 0)


def gelu(x):
    """x Φ(x), Hendrycks and Gimpel 2016, in its exact form (R17).

    Φ(x) = erfc(-x / √2) / 2. The usual 1 + erf(x / √2) cancels where x is
    very negative and leaves 2 % of relative error there. NumPy has no erfc,
    so the standard library's is called number by number, in float64.
    """
    z = np.asarray(-x / math.sqrt(2), np.float64)
    return x * (np.vectorize(math.erfc, otypes="d")(z) / 2).astype(x.dtype)


ACTIVATIONS = {"relu": relu, "gelu": gelu}


class FeedForward:
    """Two linear maps with an activation between.

    Parameters: ``inner`` with ``kernel`` [D F] and ``bias`` [F], ``outer``
    with ``kernel`` [F D] and ``bias`` [D].
    """

    def __init__(self, config):
        self.inner = Linear(config.d_model, config.d_ff)
        self.outer = Linear(config.d_ff, config.d_model)
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, x):
        """Map x [B T D] position by position."""
        c = {"inputs": (x,)}
        # [1] inner [B T F]: x W₁ + b₁  (eq. 2)
        inner = c["inner"] = self.inner(x)
        # [2] activated [B T F]: max(0, inner), or its GELU  (eq. 2, R17)
        activated = c["activated"] = self.activation(inner)
        # [3] output [B T D]: activated W₂ + b₂  (eq. 2)
        output = c["output"] = self.outer(activated)
        return output, c
