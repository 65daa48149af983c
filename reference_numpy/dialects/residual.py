"""The residual connection of most later models: x + Sublayer(norm(x))."""

from reference_numpy.residual import Residual


class PreNorm(Residual):
    """x + y, y being a sub-layer's output of norm(x) (R11)."""

    def before(self, x):
        """What the sub-layer reads: x [B T D], normalised."""
        c = {}
        y, c["norm"] = self.norm.forward(x)
        return y, c

    def forward(self, x, y):
        """Add y to x [B T D]."""
        c = {}
        dropped, c["dropout"] = self.dropout.forward(y)
        # [1] output [B T D]: x + y
        output = c["output"] = x + dropped
        return output, c

    def backward(self, doutput, c):
        """From doutput [B T D]: dx, dy and g.

        The sum passes doutput unchanged to x, however deep the stack is.
        """
        g = {"output": doutput}
        # [1'] x, y: output = x + y
        dx = doutput
        dy = self.dropout.backward(doutput, c["dropout"])
        return dx, dy, g

    def before_backward(self, dy, c, g):
        """From dy [B T D]: dx; the norm's gradients are put into g."""
        dx, g["norm"] = self.norm.backward(dy, c["norm"])
        return dx
