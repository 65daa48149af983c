"""Residual connections, with the norm inside or after (section 3.1).

The paper norms the sum, ``norm(x + Sublayer(x))``; most later models norm the
sub-layer's input, ``x + Sublayer(norm(x))``, which trains more steadily when
stacks are deep. ``sublayer`` is a function of one array.
"""

from reference_numpy.dropout import Dropout
from reference_numpy.layer_norm import NORMS


class PreNorm:
    """x + Sublayer(norm(x)). Parameters: those of ``norm``."""

    def __init__(self, config):
        self.norm = NORMS[config.norm](config.d_model, config.norm_eps)
        self.dropout = Dropout(config.dropout)

    def forward(self, x, sublayer):
        """Add to x [B T D] what ``sublayer`` makes of its norm."""
        c = {}
        normed, c["norm"] = self.norm.forward(x)
        dropped, c["dropout"] = self.dropout.forward(sublayer(normed))
        # [1] output [B T D]: x + Sublayer(norm(x))
        output = c["output"] = x + dropped
        return output, c

    def backward(self, doutput, c, sublayer):
        """From doutput [B T D]: dx and g.

        ``sublayer`` takes the gradient of its output to that of its input. The
        sum hands doutput on unchanged beside it, however deep the stack is.
        """
        g = {"output": doutput}
        # [1'] x: output = x + Sublayer(norm(x))
        dsublayer = self.dropout.backward(doutput, c["dropout"])
        dx, g["norm"] = self.norm.backward(sublayer(dsublayer), c["norm"])
        return doutput + dx, g


class PostNorm:
    """norm(x + Sublayer(x)). Parameters: those of ``norm``."""

    def __init__(self, config):
        self.norm = NORMS[config.norm](config.d_model, config.norm_eps)
        self.dropout = Dropout(config.dropout)

    def forward(self, x, sublayer):
        """Norm the sum of x [B T D] and what ``sublayer`` makes of it."""
        c = {}
        dropped, c["dropout"] = self.dropout.forward(sublayer(x))
        # [1] summed [B T D]: x + Sublayer(x)  (§3.1)
        summed = c["summed"] = x + dropped
        output, c["norm"] = self.norm.forward(summed)
        return output, c

    def backward(self, doutput, c, sublayer):
        """From doutput [B T D]: dx and g; ``sublayer`` as in PreNorm."""
        g = {}
        dsummed, g["norm"] = self.norm.backward(doutput, c["norm"])
        g["summed"] = dsummed
        # [1'] x: summed = x + Sublayer(x)
        dsublayer = self.dropout.backward(dsummed, c["dropout"])
        return dsummed + sublayer(dsublayer), g


RESIDUALS = {"pre": PreNorm, "post": PostNorm}
