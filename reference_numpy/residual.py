"""The residual connection around each sub-layer (section 3.1).

    LayerNorm(x + Sublayer(x))

Most later models normalise the sub-layer's input instead, which trains more
steadily where stacks are deep: dialects/residual.py.
"""

from reference_numpy import parts
from reference_numpy.dropout import Dropout


class Residual:
    """norm(x + y), y being a sub-layer's output. Parameters: ``norm``'s."""

    def __init__(self, config):
        self.norm = parts.norm(config, config.norm_eps)
        self.dropout = Dropout(config.dropout)

    def forward(self, x, y):
        """Add y to x [B T D], and normalise the sum."""
        c = {}
        dropped, c["dropout"] = self.dropout.forward(y)
        # [1] summed [B T D]: x + y  (§3.1)
        summed = c["summed"] = x + dropped
        output, c["norm"] = self.norm.forward(summed)
        return output, c

    def backward(self, doutput, c):
        """From doutput [B T D]: dx, dy and g."""
        g = {}
        dsummed, g["norm"] = self.norm.backward(doutput, c["norm"])
        g["summed"] = dsummed
        # [1'] x, y: summed = x + y
        dx = dsummed
        dy = self.dropout.backward(dsummed, c["dropout"])
        return dx, dy, g
