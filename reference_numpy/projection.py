"""The projection: from vectors back to a score for every token (section 3.4).

Some systems end in logits, some in their log-softmax (R16); the loss is the
same from either, since log-softmax leaves log-probabilities as they are.
"""

import math

import numpy as np

from reference_numpy.linear import Linear, LinearWithoutBias


def log_softmax(x):
    """x - log Σ exp(x) over the last axis, shifted so nothing overflows."""
    shifted = x - np.max(x, axis=-1, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))


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


def one(d_model):
    """1, for vectors as they are."""
    return 1


def over_root(d_model):
    """1/√d_model, by which T5 and Flax's examples multiply tied vectors."""
    return 1 / math.sqrt(d_model)


SCALES = {"none": one, "root": over_root}


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


class TiedProjection:
    """x Eᵀ, E being the embedding's table; no bias (§3.4, R13)."""

    def __init__(self, embedding):
        self.embedding = embedding

    def forward(self, x):
        """Map x [B T D] to logits."""
        c = {"inputs": (x,)}
        flat = x.reshape(-1, x.shape[-1]) @ self.embedding.table.T
        # [1] logits [B T V]: x Eᵀ  (§3.4, R13)
        logits = c["logits"] = flat.reshape(*x.shape[:-1], -1)
        return logits, c

    def backward(self, dlogits, c):
        """From dlogits [B T V]: dx and g, in which ``table`` is a part.

        The table's gradient has another part from each embedding.
        """
        (x,), table = c["inputs"], self.embedding.table
        flat = dlogits.reshape(-1, dlogits.shape[-1])
        # [1'] x, E: logits = x Eᵀ
        dx = (flat @ table).reshape(x.shape)
        dtable = flat.T @ x.reshape(-1, x.shape[-1])
        return dx, {"logits": dlogits, "table": dtable}


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


#: By whether there is a bias.
PROJECTIONS = {True: Projection, False: ProjectionWithoutBias}
TIED_PROJECTIONS = {True: BiasedTiedProjection, False: TiedProjection}


def projection_of(config, embedding):
    """The projection of a model; an embedding's table where they are tied."""
    if config.output_tied:
        return TIED_PROJECTIONS[config.has_output_bias](embedding)
    return PROJECTIONS[config.has_output_bias](
        config.d_model, config.target_vocab)
