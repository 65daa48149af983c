"""What other systems do to vectors before and behind the projection."""

import math

import numpy as np

from reference_numpy import parts
from reference_numpy.dialects.head import TransformHead
from reference_numpy.projection import log_softmax


def identity(x):
    """x, for a model that ends in logits."""
    return x


def log_softmax_backward(dy, y):
    """From dy and y = log_softmax(x): dx = dy - softmax(x) Σ dy."""
    return dy - np.exp(y) * np.sum(dy, axis=-1, keepdims=True)


def identity_backward(dy, y):
    """dy as it is."""
    return dy


OUTPUTS = {"logits": identity, "log_probs": log_softmax}
OUTPUTS_BACKWARD = {
    "logits": identity_backward, "log_probs": log_softmax_backward}


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
        self.output_backward = OUTPUTS_BACKWARD[config.output]

    def project(self, decoded):
        """Vectors [B T D] to a score for every token, [B T V]."""
        c, x = {}, decoded
        if self.headed:
            x, c["head"] = self.head.forward(x)
        logits, c["projection"] = self.projection.forward(
            x * self.output_factor)
        # [1] output [B T V]: the logits, or their log-softmax  (R16)
        output = c["output"] = self.output_function(logits)
        return output, c

    def project_backward(self, doutput, c):
        """From doutput [B T V]: ddecoded [B T D] and g."""
        g = {"output": doutput}
        # [1'] logits: output = the logits, or their log-softmax
        dlogits = self.output_backward(doutput, c["output"])
        dscaled, g["projection"] = self.projection.backward(
            dlogits, c["projection"])
        ddecoded = dscaled * self.output_factor
        if self.headed:
            ddecoded, g["head"] = self.head.backward(ddecoded, c["head"])
        return ddecoded, g
