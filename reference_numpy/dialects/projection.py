"""Projections of other systems: a matrix of their own, or a bias."""

import numpy as np

from reference_numpy.dialects.linear import LinearWithoutBias
from reference_numpy.linear import Linear
from reference_numpy.projection import TiedProjection


class Projection(Linear):
    """x W + b. Parameters: ``kernel`` [D V] and ``bias`` [V]."""

    def __init__(self, d_model, vocab):
        super().__init__(d_model, vocab)

    def forward(self, x):
        """Map x [B T D] to logits."""
        c = {"inputs": (x,)}
        # [1] logits [B T V]: x W + b  (§3.4)
        logits = c["logits"] = self(x)
        return logits, c

    def backward(self, dlogits, c):
        """From dlogits [B T V]: dx and g."""
        # [1'] x, W, b: logits = x W + b
        dx, g = super().backward(dlogits, *c["inputs"])
        return dx, {"logits": dlogits, **g}


class ProjectionWithoutBias(LinearWithoutBias):
    """x W. Parameter: ``kernel`` [D V]."""

    def __init__(self, d_model, vocab):
        super().__init__(d_model, vocab)

    def forward(self, x):
        """Map x [B T D] to logits."""
        c = {"inputs": (x,)}
        # [1] logits [B T V]: x W
        logits = c["logits"] = self(x)
        return logits, c

    def backward(self, dlogits, c):
        """From dlogits [B T V]: dx and g."""
        # [1'] x, W: logits = x W
        dx, g = super().backward(dlogits, *c["inputs"])
        return dx, {"logits": dlogits, **g}


class BiasedTiedProjection(TiedProjection):
    """x Eᵀ + b. Parameter: ``bias`` [V]."""

    def __init__(self, embedding):
        super().__init__(embedding)
        self.bias = np.zeros(len(embedding.table))

    def forward(self, x):
        """Map x [B T D] to logits."""
        product, c = super().forward(x)
        # [1] logits [B T V]: x Eᵀ + b  (R50)
        logits = c["logits"] = product + self.bias
        return logits, c

    def backward(self, dlogits, c):
        """From dlogits [B T V]: dx and g, in which ``table`` is a part."""
        # [1'] x, E, b: logits = x Eᵀ + b
        dx, g = super().backward(dlogits, c)
        g["bias"] = dlogits.reshape(-1, dlogits.shape[-1]).sum(axis=0)
        return dx, g
