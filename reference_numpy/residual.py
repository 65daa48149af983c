"""Residual connections, with the norm inside or after (section 3.1).

The paper normalises the sum, ``norm(x + Sublayer(x))``; most later models the
sub-layer's input, ``x + Sublayer(norm(x))``, which trains more steadily when
stacks are deep. A residual has two parts, with the sub-layer between them::

    y = residual.before(x)
    y = sublayer(y)
    output = residual.after(x, y)
"""

from reference_numpy.dropout import Dropout
from reference_numpy.layer_norm import NORMS


class PreNorm:
    """x + Sublayer(norm(x)). Parameters: those of ``norm``."""

    def __init__(self, config):
        self.norm = NORMS[config.norm_form](config.d_model, config.norm_eps)
        self.dropout = Dropout(config.dropout)

    def before(self, x):
        """The sub-layer's input: x [B T D], normalised."""
        c = {}
        y, c["norm"] = self.norm.forward(x)
        return y, c

    def after(self, x, y, c):
        """The sum of x and the sub-layer's y [B T D]; c is before's."""
        dropped, c["dropout"] = self.dropout.forward(y)
        # [1] output [B T D]: x + Sublayer(norm(x))
        output = c["output"] = x + dropped
        return output

    def after_backward(self, doutput, c):
        """From doutput [B T D]: dx, dy and g.

        The sum passes doutput unchanged to x, however deep the stack is.
        """
        g = {"output": doutput}
        # [1'] x, y: output = x + Sublayer(norm(x))
        dx = doutput
        dy = self.dropout.backward(doutput, c["dropout"])
        return dx, dy, g

    def before_backward(self, dy, c, g):
        """From dy [B T D]: dx; the norm's gradients are put into g."""
        dx, g["norm"] = self.norm.backward(dy, c["norm"])
        return dx


class PostNorm:
    """norm(x + Sublayer(x)). Parameters: those of ``norm``."""

    def __init__(self, config):
        self.norm = NORMS[config.norm_form](config.d_model, config.norm_eps)
        self.dropout = Dropout(config.dropout)

    def before(self, x):
        """The sub-layer's input: x [B T D] as it is."""
        return x, {}

    def after(self, x, y, c):
        """The sum of x and the sub-layer's y [B T D], normalised."""
        dropped, c["dropout"] = self.dropout.forward(y)
        # [1] summed [B T D]: x + Sublayer(x)  (§3.1)
        summed = c["summed"] = x + dropped
        output, c["norm"] = self.norm.forward(summed)
        return output

    def after_backward(self, doutput, c):
        """From doutput [B T D]: dx, dy and g."""
        g = {}
        dsummed, g["norm"] = self.norm.backward(doutput, c["norm"])
        g["summed"] = dsummed
        # [1'] x, y: summed = x + Sublayer(x)
        dx = dsummed
        dy = self.dropout.backward(dsummed, c["dropout"])
        return dx, dy, g

    def before_backward(self, dx, c, g):
        """From dx [B T D]: itself."""
        return dx


RESIDUALS = {"pre": PreNorm, "post": PostNorm}
