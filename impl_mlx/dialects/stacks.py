"""Stacks of other systems: a norm behind the layers, one table for all.

Where residual connections normalise first, a stack's last sum is normalised by
a norm of its own (R11). Relative positions are the first layer's (R45).
"""

import mlx.nn as nn

from transformer_contract.trace import tap
from impl_mlx import parts
from impl_mlx.decoder import Decoder
from impl_mlx.dialects.relative import tie
from impl_mlx.encoder import Encoder


class DialectStack:
    """What a stack has besides its layers. Parameters: those of ``norm``."""

    def complete(self, config):
        """Add the final norm, and let attentions share one table."""
        if config.positions == "relative":
            tie(self.layers)
        self.normed = config.final_norm
        if self.normed:
            self.norm = parts.norm(config, config.final_norm_eps)

    def finish(self, x):
        """x [B T D], normalised if the config says so."""
        return self.norm(x) if self.normed else x


class DialectEncoder(DialectStack, Encoder):
    """An encoder that may end in a norm."""

    def __init__(self, config):
        super().__init__(config)
        self.complete(config)

    def __call__(self, x, mask):
        """Map x [B S D], attending where mask [B 1 1 S] allows."""
        x = self.through(x, mask)
        # [1] output [B S D]: x, or norm(x) if config.final_norm  (R11)
        output = tap(self, "output", self.finish(x))
        return output


class DialectDecoder(DialectStack, Decoder):
    """A decoder that may end in a norm."""

    def __init__(self, config):
        super().__init__(config)
        self.complete(config)

    def __call__(self, x, memory, memory_mask, mask, caches):
        """Map x [B T D], reading memory [B S D]; masks as in a layer."""
        x = self.through(x, memory, memory_mask, mask, caches)
        # [1] output [B T D]: x, or norm(x) if config.final_norm  (R11)
        output = tap(self, "output", self.finish(x))
        return output


class CausalStack(DialectEncoder):
    """N layers of a decoder that has no source."""

    def __init__(self, config):
        nn.Module.__init__(self)
        self.layers = [
            parts.causal_layer(config) for _ in range(config.n_decoder_layers)]
        self.complete(config)

    def through(self, x, mask, caches):
        """x [B T D] after the last layer; mask and caches as in a Decoder."""
        for i, layer in enumerate(self.layers):
            cache = None if caches is None else caches[i]
            x = layer(x, mask, cache)
        return x

    def __call__(self, x, mask, caches):
        """Map x [B T D]; mask and caches as in a Decoder."""
        x = self.through(x, mask, caches)
        # [1] output [B T D]: x, or norm(x) if config.final_norm  (R11)
        output = tap(self, "output", self.finish(x))
        return output
