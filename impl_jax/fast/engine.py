"""The fast form's engine; functions without one are the readable engine's."""

import functools

import jax

from transformer_contract import fast_forms
from transformer_contract.batch import check_inputs, check_search
from impl_jax import engine
from impl_jax.fast import attention, layers
from impl_jax.fast.search import SEARCHES
from impl_jax.fast.split import split
from impl_jax.fast.train import Trainer
from impl_jax.dropout import evaluating
from impl_jax.parameters import home, modules

#: The fast kind of each module that has one; they hold the same.
FAST = attention.FAST | layers.FAST


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


def answer(model, *inputs):
    """A Transformer's output of native arrays, compiled."""
    return answered(*split(model), *inputs)


@functools.partial(jax.jit, static_argnums=0)
def answered(graph, arrays, *inputs):
    """The output of a model that is split."""
    return graph.merge(arrays)(*inputs)


def predict(model, source, target, source_mask, target_mask):
    """A Transformer's output alone: [B T V]."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    with evaluating(model):
        return engine.to_numpy(answer(model, *(
            engine.to_native(x, home(model)) for x in inputs)))


def trainer(model, training):
    """A Trainer of a Transformer, at step 0."""
    return Trainer(model, training)


def generate(model, source, settings, rows=None):
    """Find targets of sources; the readable form's search if need be."""
    if not fast_forms.compiles(model.config, settings):
        return engine.generate(model, source, settings, rows)
    rows = check_search(model.config, source, settings, rows)
    # Scores are float64, the model's dtype or not.
    with evaluating(model), jax.enable_x64(True):
        tokens, scores = SEARCHES[settings.method](
            model, engine.to_native(source, home(model)), settings, rows)
        return {"tokens": engine.to_numpy(tokens),
                "scores": engine.to_numpy(scores)}
