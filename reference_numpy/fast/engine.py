"""The fast form's engine; functions without one are the readable engine's."""

import functools

import numpy as np

from contract import components, fast_forms
from contract.batch import check_inputs, check_search
from reference_numpy import engine
from reference_numpy.attention import MultiHeadAttention
from reference_numpy.fast import (
    attention, blocks, layer_norm, linear, projection)
from reference_numpy.fast.predict import predict as predicted
from reference_numpy.fast.search import Beam, Greedy, Sample
from reference_numpy.fast.train import Trainer, covers, known
from reference_numpy.layer_norm import (
    LayerNorm, ScalarStdLayerNorm, StdLayerNorm)
from reference_numpy.linear import Linear, LinearWithoutBias
from reference_numpy.parameters import PARAMETERS, modules
from reference_numpy.projection import Projection, ProjectionWithoutBias

#: The fast kind of each module that has one; they hold the same.
FAST = {
    Linear: linear.Linear,
    LinearWithoutBias: linear.LinearWithoutBias,
    Projection: projection.Projection,
    ProjectionWithoutBias: projection.ProjectionWithoutBias,
    MultiHeadAttention: attention.MultiHeadAttention,
    LayerNorm: layer_norm.LayerNorm,
    StdLayerNorm: layer_norm.StdLayerNorm,
    ScalarStdLayerNorm: layer_norm.ScalarStdLayerNorm,
}
PARAMETERS |= {
    FAST[kind]: leaves for kind, leaves in PARAMETERS.items() if kind in FAST}

SEARCHES = {"greedy": Greedy, "sample": Sample, "beam": Beam}


def __getattr__(name):
    return getattr(engine, name)


def build(component, config, weights, dtype="float64", device="cpu"):
    """Make a component of fast modules; see the readable engine."""
    module = engine.build(component, config, weights, dtype, device)
    for _, below in modules(module):
        below.__class__ = FAST.get(type(below), type(below))
    return module


def described(parts):
    """What each part of a model is, but modules and arrays.

    Args:
        parts: (path, module) of each.

    Returns:
        {path: (its kind, {name: what it holds under it})}.
    """
    inside = {id(part) for _, part in parts}

    def besides(value):
        if isinstance(value, list):
            return [item for item in value if id(item) not in inside]
        known = isinstance(value, np.ndarray) or id(value) in inside
        return None if known else value

    return {path: (FAST.get(type(part), type(part)), {
        name: besides(value) for name, value in vars(part).items()
        if name != "home"}) for path, part in parts}


@functools.lru_cache
def planned(config):
    """What the parts of a new model are; see ``described``."""
    make, arguments = components.component(
        engine.__package__, "transformer", config)
    return described(list(modules(make(*arguments))))


def as_built(model):
    """Whether all parts are as build makes them; warns of one that is not."""
    parts, plan = list(modules(model)), planned(model.config)
    found = described(parts)
    strange = {id(part) for path, part in parts
               if found[path] != plan.get(path)}
    return fast_forms.as_built(parts, lambda part: id(part) not in strange)


def not_fused(config, settings=None):
    """What is left to the readable form, in words each.

    Of a model, and of a search with some settings.
    """
    return tuple(fast_forms.left(config, training=known(config)))


def predict(model, source, target, source_mask, target_mask):
    """A Transformer's output alone: [B T V]."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    if (not covers(model.config)
            or min(source.shape[1], target.shape[1]) >= blocks.SIZE
            or not as_built(model)):  # attention goes over blocks there
        return model.forward(*inputs)[0]
    return predicted(model, *inputs)


def trainer(model, training):
    """A Trainer of a Transformer, at step 0; see the readable engine."""
    if not covers(model.config) or not as_built(model):
        return engine.trainer(model, training)
    return Trainer(model, training)


def generate(model, source, settings, rows=None):
    """Find targets of sources; see the readable engine.

    For a model that fast/ does not know it is the readable form's own search.
    """
    if not fast_forms.searches(model.config) or not as_built(model):
        return engine.generate(model, source, settings, rows)
    rows = check_search(model.config, source, settings, rows)
    tokens, scores = SEARCHES[settings.method](
        model, source, settings, rows).run()
    return {"tokens": tokens, "scores": scores}
