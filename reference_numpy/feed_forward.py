"""The feed-forward network, the same at every position (section 3.3).

    FFN(x) = max(0, x W₁ + b₁) W₂ + b₂                               (eq. 2)

Other activations and gates are in dialects/feed_forward.py.
"""

import numpy as np

from reference_numpy.dropout import Dropout
from reference_numpy.linear import Linear, under


class FeedForward:
    """Two linear maps with max(0, x) between.

    Parameters: ``inner`` with ``kernel`` [D F] and ``bias`` [F], ``outer``
    with ``kernel`` [F D] and ``bias`` [D].
    """

    def __init__(self, config):
        self.inner = Linear(config.d_model, config.d_ff)
        self.outer = Linear(config.d_ff, config.d_model)
        self.activated_dropout = Dropout(config.dropout)

    def hidden(self, x, c):
        """What is between the two maps, [B T F]."""
        # [1] inner [B T F]: x W₁ + b₁  (eq. 2)
        inner = c["inner"] = self.inner(x)
        # [2] activated [B T F]: max(0, inner)  (eq. 2)
        activated = c["activated"] = np.maximum(inner, 0)
        return activated

    def forward(self, x):
        """Map x [B T D] position by position."""
        c = {"inputs": (x,)}
        activated = self.hidden(x, c)
        dropped, c["activated_dropout"] = self.activated_dropout.forward(
            activated)
        # [3] output [B T D]: activated W₂ + b₂  (eq. 2)
        output = c["output"] = self.outer(dropped)
        return output, c

    def backward(self, doutput, c):
        """From doutput [B T D]: dx and g."""
        g, (dropped, _) = {"output": doutput}, c["activated_dropout"]
        # [3'] activated, W₂, b₂: output = activated W₂ + b₂
        ddropped, gradients = self.outer.backward(doutput, dropped)
        dactivated = self.activated_dropout.backward(
            ddropped, c["activated_dropout"])
        g |= {"activated": dactivated, **under("outer", gradients)}
        return self.hidden_backward(dactivated, c, g), g

    def hidden_backward(self, dactivated, c, g):
        """From dactivated [B T F]: dx. The slope of max(0, x) at 0 is 0."""
        (x,) = c["inputs"]
        # [2'] inner: activated = max(0, inner)
        dinner = g["inner"] = np.where(c["inner"] > 0, dactivated, 0)
        # [1'] x, W₁, b₁: inner = x W₁ + b₁
        dx, gradients = self.inner.backward(dinner, x)
        g |= under("inner", gradients)
        return dx
