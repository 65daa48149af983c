"""The projection: from vectors back to a score for every token (§3.4)."""

import math

import mlx.core as mx
import mlx.nn as nn

from contract.trace import tap
from impl_mlx.exact import exp, sum_of


def log_softmax(x):
    """x - log Σ exp(x) over the last axis, shifted so nothing overflows."""
    # mlx: mx.logsumexp is float32's, and mx.sum a running one
    shifted = x - mx.stop_gradient(mx.max(x, axis=-1, keepdims=True))
    return shifted - mx.log(sum_of(exp(shifted)))


def identity(x):
    """x, for a model that ends in logits."""
    return x


OUTPUTS = {"logits": identity, "log_probs": log_softmax}


def one(d_model):
    """1, for vectors as they are."""
    return 1


def over_root(d_model):
    """1/√d_model, by which T5 and Flax's examples multiply tied vectors."""
    return 1 / math.sqrt(d_model)


SCALES = {"none": one, "root": over_root}


class Projection(nn.Linear):
    """x W + b, with the kernel stored as [V D]."""

    def __init__(self, d_model, vocab):
        super().__init__(d_model, vocab)

    def __call__(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x W + b  (§3.4)
        logits = tap(self, "logits", super().__call__(x))
        return logits


class ProjectionWithoutBias(nn.Linear):
    """x W, with the kernel stored as [V D]."""

    def __init__(self, d_model, vocab):
        super().__init__(d_model, vocab, bias=False)

    def __call__(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x W
        logits = tap(self, "logits", super().__call__(x))
        return logits


class TiedProjection(nn.Module):
    """x Eᵀ, E being the embedding's table; no bias (§3.4, R13)."""

    def __init__(self, embedding):
        super().__init__()
        self.embedding = embedding

    def __call__(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x Eᵀ  (§3.4, R13)
        logits = tap(self, "logits", x @ self.embedding.table.weight.mT)
        return logits


class BiasedTiedProjection(nn.Module):
    """x Eᵀ + b. Parameter: ``bias`` [V]."""

    def __init__(self, embedding):
        super().__init__()
        self.embedding = embedding
        self.bias = mx.zeros(embedding.table.weight.shape[0])

    def __call__(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x Eᵀ + b  (R50)
        logits = tap(self, "logits",
                     x @ self.embedding.table.weight.mT + self.bias)
        return logits


#: By whether there is a bias.
PROJECTIONS = {True: Projection, False: ProjectionWithoutBias}
TIED_PROJECTIONS = {True: BiasedTiedProjection, False: TiedProjection}


def projection_of(config, embedding):
    """The projection of a model; an embedding's table where they are tied."""
    if config.output_tied:
        return TIED_PROJECTIONS[config.has_output_bias](embedding)
    return PROJECTIONS[config.has_output_bias](
        config.d_model, config.target_vocab)
