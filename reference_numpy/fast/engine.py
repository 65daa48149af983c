"""The fast form's engine; functions without one are the readable engine's."""

import warnings

import numpy as np

from transformer_contract import chosen, fast_forms
from transformer_contract.batch import check_inputs, check_search
from reference_numpy import engine
from reference_numpy.attention import MultiHeadAttention
from reference_numpy.dialects.attention import (
    DialectAttention, RotaryAttention)
from reference_numpy.dialects.linear import LinearWithoutBias
from reference_numpy.dialects.norms import ScalarStdLayerNorm, StdLayerNorm
from reference_numpy.dialects.projection import (
    Projection, ProjectionWithoutBias)
from reference_numpy.fast import (
    attention, blocks, layer_norm, linear, projection)
from reference_numpy.fast.predict import predict as predicted
from reference_numpy.fast.search import SEARCHES
from reference_numpy.fast.train import Trainer, covers, known
from reference_numpy.layer_norm import LayerNorm
from reference_numpy.linear import Linear
from reference_numpy.parameters import leaves, modules

#: The fast kind of each module that has one; they hold the same.
FAST = {
    Linear: linear.Linear,
    LinearWithoutBias: linear.LinearWithoutBias,
    Projection: projection.Projection,
    ProjectionWithoutBias: projection.ProjectionWithoutBias,
    MultiHeadAttention: attention.MultiHeadAttention,
    DialectAttention: attention.DialectAttention,
    RotaryAttention: attention.RotaryAttention,
    LayerNorm: layer_norm.LayerNorm,
    StdLayerNorm: layer_norm.StdLayerNorm,
    ScalarStdLayerNorm: layer_norm.ScalarStdLayerNorm,
}


def __getattr__(name):
    return getattr(engine, name)


def build(component, config, weights, dtype="float64", device="cpu"):
    """Make a component of fast modules; see the readable engine."""
    module = engine.build(component, config, weights, dtype, device)
    for _, below in modules(module):
        below.__class__ = FAST.get(type(below), type(below))
    if component == "transformer" and not np.issubdtype(
            np.dtype(dtype), np.floating):
        warnings.warn(
            f"{dtype} is not in NumPy's fast form; the readable form "
            "computes passes and training", stacklevel=2)
    return module


def not_fused(config, settings=None):
    """What is left to the readable form, in words each.

    Of a model, and of a search with some settings.
    """
    return tuple(fast_forms.left(config, training=known(config)))


def in_one_go(model):
    """Whether a pass of all rows at once knows a model's config and dtype.

    In bfloat16 NumPy rounds to float32 where another dtype joins, step by
    step; that is left to the readable form.
    """
    return (covers(model.config) and np.issubdtype(
        next(leaves(model)).get().dtype, np.floating))


def predict(model, source, target, source_mask, target_mask):
    """A Transformer's output alone: [B T V]."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    over_blocks = min(source.shape[1], target.shape[1]) >= blocks.SIZE
    if not in_one_go(model) or over_blocks:
        return model.forward(*inputs)[0]
    return predicted(model, *inputs)


def trainer(model, training):
    """A Trainer of a Transformer, at step 0; see the readable engine."""
    if not in_one_go(model):
        return engine.trainer(model, training)
    return Trainer(model, training)


def generate(model, source, settings, rows=None):
    """Find targets of sources; see the readable engine.

    For a model that fast/ does not know it is the readable form's own search.
    """
    if not fast_forms.searches(model.config):
        return engine.generate(model, source, settings, rows)
    rows = check_search(model.config, source, settings, rows)
    word = settings.method, chosen.search(model.config, settings)
    tokens, scores = SEARCHES[word](model, source, settings, rows).run()
    return {"tokens": tokens, "scores": scores}
