"""The fast form's engine; functions without one are the readable engine's."""

import weakref

import jax
import numpy as np
from flax import nnx

from transformer_contract import fast_forms
from transformer_contract.batch import check_inputs, check_search
from transformer_contract.weights import no_weights
from impl_jax import engine
from impl_jax.fast import attention, layers
from impl_jax.fast.search import SEARCHES
from impl_jax.fast.train import Trainer
from impl_jax.dropout import evaluating
from impl_jax.parameters import home, modules

#: The fast kind of each module that has one; they hold the same.
FAST = attention.FAST | layers.FAST

#: What described a Transformer when it was built, by its config.
PLANS = {}

#: A model -> its answer to arrays, compiled for each shape that they have.
ANSWERS = weakref.WeakKeyDictionary()


def __getattr__(name):
    return getattr(engine, name)


def not_fused(config, settings=None):
    """What is left to the readable form, in words each.

    Of a model, and of a search with some settings.
    """
    return tuple(fast_forms.left(config, settings))


def described(model):
    """What a model's parts are, weights left out: {path: ...}."""
    return fast_forms.described(
        list(modules(model)), (nnx.Variable, jax.Array, np.ndarray),
        {"home", "deterministic", "rngs", "_pytree__state",
         "_pytree__nodes"}, shared=nnx.Variable)


def plan_of(config):
    """What describes a model as built; one is built if none has been."""
    if config not in PLANS:  # of a model from another process
        build("transformer", config, no_weights(config))
    return PLANS[config]


def strange(model):
    """What of a model is not as build made it: a path; "" if all is."""
    return fast_forms.strange(described(model), plan_of(model.config))


def as_built(model):
    """Whether all of a model is as build made it; warns of what is not."""
    return fast_forms.as_built(strange(model))


def searches(model, settings):
    """Whether this form finds what a model writes; warns of a strange part."""
    return fast_forms.compiles(model.config, settings) and as_built(model)


def build(component, config, weights, dtype="float64", device="cpu"):
    """Make a component of fast modules; see the readable engine."""
    module = engine.build(component, config, weights, dtype, device)
    for _, below in modules(module):
        below.__class__ = FAST.get(type(below), type(below))
    if component == "transformer":
        PLANS.setdefault(config, described(module))
    return module


def answer(model, *inputs):
    """A Transformer's output of native arrays, compiled if it is as built."""
    if not as_built(model):
        return model(*inputs)
    if model not in ANSWERS:
        graph = nnx.graphdef(model)
        ANSWERS[model] = jax.jit(
            lambda state, *inputs: nnx.merge(graph, state)(*inputs))
    return ANSWERS[model](nnx.state(model), *inputs)


def predict(model, source, target, source_mask, target_mask):
    """A Transformer's output alone: [B T V]."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    with evaluating(model):
        return engine.to_numpy(answer(model, *(
            engine.to_native(x, home(model)) for x in inputs)))


def trainer(model, training):
    """A Trainer of a Transformer, at step 0."""
    if not as_built(model):
        return engine.trainer(model, training)
    return fast_forms.watched(Trainer(model, training))


def train_step(trainer, sources, targets):
    """Make one step on A batches; see the readable engine."""
    if isinstance(trainer, Trainer):
        fast_forms.check_trained(strange(trainer.model), trainer)
    return engine.train_step(trainer, sources, targets)


def generate(model, source, settings, rows=None):
    """Find targets of sources; the readable form's search if need be."""
    if not searches(model, settings):
        return engine.generate(model, source, settings, rows)
    rows = check_search(model.config, source, settings, rows)
    # Scores are float64, the model's dtype or not.
    with evaluating(model), jax.enable_x64(True):
        tokens, scores = SEARCHES[settings.method](
            model, engine.to_native(source, home(model)), settings, rows)
        return {"tokens": engine.to_numpy(tokens),
                "scores": engine.to_numpy(scores)}
