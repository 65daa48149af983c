"""What other systems do to vectors before and behind the projection."""

import math

from transformer_contract.trace import tap
from impl_mlx import parts
from impl_mlx.dialects.head import TransformHead
from impl_mlx.projection import log_softmax


def identity(x):
    """x, for a model that ends in logits."""
    return x


OUTPUTS = {"logits": identity, "log_probs": log_softmax}


class Output:
    """A model's end: a head, a factor, logits or their log-softmax.

    Parameters: those of ``head``, if ``config.output_transform``.
    """

    def end(self, config, embedding):
        """Add what is behind the stacks; the projection may read a table."""
        self.headed = config.output_transform
        if self.headed:
            self.head = TransformHead(config)
        self.projection = parts.projection(config, embedding)
        self.output_factor = 1
        if config.output_scale == "root":  # T5 and Flax's examples, if tied
            self.output_factor = 1 / math.sqrt(config.d_model)
        self.output_function = OUTPUTS[config.output]

    def project(self, decoded):
        """Vectors [B T D] to a score for every token, [B T V]."""
        logits = self.projection(self.projected(decoded))
        # [1] output [B T V]: the logits, or their log-softmax  (R16)
        output = tap(self, "output", self.output_function(logits))
        return output

    def projected(self, decoded):
        """What the projection reads: [B T D]."""
        x = self.head(decoded) if self.headed else decoded
        return x * self.output_factor
