"""The fast form's engine; functions without one are the readable engine's."""

import weakref

import jax
from flax import nnx

from contract import fast_forms
from contract.batch import check_inputs, check_search
from impl_jax import engine
from impl_jax.attention import MultiHeadAttention
from impl_jax.fast import attention
from impl_jax.fast.search import SEARCHES
from impl_jax.fast.train import Trainer
from impl_jax.parameters import modules

#: The fast kind of each module that has one; they hold the same.
FAST = {MultiHeadAttention: attention.MultiHeadAttention}

#: A model -> its answer to arrays, compiled for each shape that they have.
ANSWERS = weakref.WeakKeyDictionary()


def __getattr__(name):
    return getattr(engine, name)


def not_fused(config, settings=None):
    """What is left to the readable form, in words each.

    Of a model, and of a search with some settings.
    """
    return tuple(fast_forms.left(config, settings))


def build(component, config, weights, dtype="float64", device="cpu"):
    """Make a component of fast modules; see the readable engine."""
    module = engine.build(component, config, weights, dtype, device)
    for _, below in modules(module):
        below.__class__ = FAST.get(type(below), type(below))
    return module


def answer_of(model):
    """A model's call as one compiled function of its state and arrays."""
    graph = nnx.graphdef(model)
    return jax.jit(lambda state, *inputs: nnx.merge(graph, state)(*inputs))


def predict(model, source, target, source_mask, target_mask):
    """A Transformer's output alone: [B T V]."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    if model not in ANSWERS:
        ANSWERS[model] = answer_of(model)
    return engine.to_numpy(ANSWERS[model](nnx.state(model), *(
        engine.to_native(x, model.home) for x in inputs)))


def trainer(model, training):
    """A Trainer of a Transformer, at step 0."""
    return Trainer(model, training)


def generate(model, source, settings, rows=None):
    """Find targets of sources; the readable form's search if need be."""
    if not fast_forms.compiles(model.config, settings):
        return engine.generate(model, source, settings, rows)
    rows = check_search(model.config, source, settings, rows)
    with jax.enable_x64(True):  # scores are float64, the model's dtype or not
        tokens, scores = SEARCHES[settings.method](
            model, engine.to_native(source, model.home), settings, rows)
        return {"tokens": engine.to_numpy(tokens),
                "scores": engine.to_numpy(scores)}
