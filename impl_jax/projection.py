"""The projection: from vectors back to a score for every token (§3.4)."""

import math

import jax
import jax.numpy as jnp
from flax import nnx

from contract.trace import tap


def log_softmax(x):
    """x - log Σ exp(x) over the last axis, shifted so nothing overflows."""
    return jax.nn.log_softmax(x, axis=-1)


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


class Projection(nnx.Linear):
    """x W + b, with the kernel stored as [D V]."""

    def __init__(self, d_model, vocab, *, rngs):
        super().__init__(d_model, vocab, rngs=rngs)

    def __call__(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x W + b  (§3.4)
        logits = tap(self, "logits", super().__call__(x))
        return logits


class ProjectionWithoutBias(nnx.Linear):
    """x W, with the kernel stored as [D V]."""

    def __init__(self, d_model, vocab, *, rngs):
        super().__init__(d_model, vocab, use_bias=False, rngs=rngs)

    def __call__(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x W
        logits = tap(self, "logits", super().__call__(x))
        return logits


class TiedProjection(nnx.Module):
    """x Eᵀ, E being the embedding's table; no bias (§3.4, R13)."""

    def __init__(self, embedding):
        self.embedding = embedding

    def __call__(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x Eᵀ  (§3.4, R13)
        logits = tap(self, "logits", x @ self.embedding.table.embedding.mT)
        return logits


class BiasedTiedProjection(nnx.Module):
    """x Eᵀ + b. Parameter: ``bias`` [V]."""

    def __init__(self, embedding):
        self.embedding = embedding
        self.bias = nnx.Param(jnp.zeros(embedding.table.num_embeddings))

    def __call__(self, x):
        """Map x [B T D] to logits."""
        # [1] logits [B T V]: x Eᵀ + b  (R50)
        logits = tap(self, "logits",
                     x @ self.embedding.table.embedding.mT + self.bias)
        return logits


#: By whether there is a bias.
PROJECTIONS = {True: Projection, False: ProjectionWithoutBias}
TIED_PROJECTIONS = {True: BiasedTiedProjection, False: TiedProjection}


def projection_of(config, embedding, *, rngs):
    """The projection of a model; an embedding's table where they are tied."""
    if config.output_tied:
        return TIED_PROJECTIONS[config.has_output_bias](embedding)
    return PROJECTIONS[config.has_output_bias](
        config.d_model, config.target_vocab, rngs=rngs)
