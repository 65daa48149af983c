"""Stacks of other systems: a norm behind the layers, one table for all.

Where residual connections normalise first, a stack's last sum is normalised by
a norm of its own (R11). Relative positions are the first layer's (R45).
"""

from reference_numpy import parts
from reference_numpy.decoder import Decoder
from reference_numpy.dialects.relative import tie, tie_backward
from reference_numpy.encoder import Encoder


class DialectStack:
    """What a stack has besides its layers. Parameters: those of ``norm``."""

    def complete(self, config):
        """Add the final norm, and let attentions share one table."""
        self.tied = config.positions == "relative"
        if self.tied:
            tie(self.layers)
        self.normed = config.final_norm
        if self.normed:
            self.norm = parts.norm(config, config.final_norm_eps)

    def finish(self, x, c):
        """x [B T D], normalised if the config says so."""
        if not self.normed:
            return x
        output, c["norm"] = self.norm.forward(x)
        return output

    def finish_backward(self, doutput, c, g):
        """From doutput [B T D]: dx."""
        if not self.normed:
            return doutput
        dx, g["norm"] = self.norm.backward(doutput, c["norm"])
        return dx

    def through_backward(self, dx, c, g):
        """As the paper's; the first layer's table has all gradients."""
        found = super().through_backward(dx, c, g)
        if self.tied:
            tie_backward([g[f"layers.{i}"] for i in range(len(self.layers))])
        return found


class DialectEncoder(DialectStack, Encoder):
    """An encoder that may end in a norm."""

    def __init__(self, config):
        super().__init__(config)
        self.complete(config)

    def forward(self, x, mask):
        """Map x [B S D], attending where mask [B 1 1 S] allows."""
        c = {}
        x = self.through(x, mask, c)
        # [1] output [B S D]: x, or norm(x) if config.final_norm  (R11)
        output = c["output"] = self.finish(x, c)
        return output, c

    def backward(self, doutput, c):
        """From doutput [B S D]: dx and g."""
        g = {"output": doutput}
        # [1'] x: output = x, or norm(x) if config.final_norm
        dx = self.finish_backward(doutput, c, g)
        return self.through_backward(dx, c, g), g


class DialectDecoder(DialectStack, Decoder):
    """A decoder that may end in a norm."""

    def __init__(self, config):
        super().__init__(config)
        self.complete(config)

    def forward(self, x, memory, memory_mask, mask, caches):
        """Map x [B T D], reading memory [B S D]; see the paper's."""
        c = {}
        x = self.through(x, memory, memory_mask, mask, caches, c)
        # [1] output [B T D]: x, or norm(x) if config.final_norm  (R11)
        output = c["output"] = self.finish(x, c)
        return output, c

    def backward(self, doutput, c):
        """From doutput [B T D]: dx, dmemory and g."""
        g = {"output": doutput}
        # [1'] x: output = x, or norm(x) if config.final_norm
        dx = self.finish_backward(doutput, c, g)
        return *self.through_backward(dx, c, g), g


class CausalStack(DialectEncoder):
    """N layers of a decoder that has no source."""

    def __init__(self, config):
        self.layers = [parts.causal_layer(config)
                       for _ in range(config.n_decoder_layers)]
        self.complete(config)

    def through(self, x, mask, caches, c):
        """x [B T D] after the last layer; mask and caches as in a Decoder."""
        for i, layer in enumerate(self.layers):
            cache = None if caches is None else caches[i]
            x, c[f"layers.{i}"] = layer.forward(x, mask, cache)
        return x

    def forward(self, x, mask, caches):
        """Map x [B T D]; mask and caches as in a Decoder."""
        c = {}
        x = self.through(x, mask, caches, c)
        # [1] output [B T D]: x, or norm(x) if config.final_norm  (R11)
        output = c["output"] = self.finish(x, c)
        return output, c
