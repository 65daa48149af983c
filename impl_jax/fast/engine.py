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

#: What build makes of NNX's own.
KINDS = {nnx.List, nnx.Linear, nnx.Embed}

#: A model -> its structure, and its answer to arrays, compiled for each shape
#: that they have.
ANSWERS = weakref.WeakKeyDictionary()


def __getattr__(name):
    return getattr(engine, name)


def not_fused(config, settings=None):
    """What is left to the readable form, in words each.

    Of a model, and of a search with some settings.
    """
    return tuple(fast_forms.left(config, settings))


def parts(model):
    """Yield (path, module) of each, in a tenth of the time of ``modules``."""
    queue, seen = [("", model)], {id(model)}
    for path, owner in queue:
        yield path, owner
        for name, value in vars(owner).items():
            if isinstance(value, nnx.Module) and id(value) not in seen:
                seen.add(id(value))
                queue.append((f"{path}.{name}" if path else name, value))


def as_built(model):
    """Whether all parts are as build makes them; warns of one that is not."""
    own = __package__.partition(".")[0]
    return fast_forms.as_built(parts(model), lambda part: (
        type(part) in KINDS or fast_forms.defined_in(part, own)))


def searches(model, settings):
    """Whether this form finds what a model writes; warns of a strange part."""
    return fast_forms.compiles(model.config, settings) and as_built(model)


def build(component, config, weights, dtype="float64", device="cpu"):
    """Make a component of fast modules; see the readable engine."""
    module = engine.build(component, config, weights, dtype, device)
    for _, below in modules(module):
        below.__class__ = FAST.get(type(below), type(below))
    return module


def answer(model, *inputs):
    """A model's call as one compiled function: of arrays, its own."""
    graph, state = nnx.split(model)
    if model not in ANSWERS or ANSWERS[model][0] != graph:
        ANSWERS[model] = graph, jax.jit(
            lambda state, *inputs: nnx.merge(graph, state)(*inputs))
    return ANSWERS[model][1](state, *inputs)


def predict(model, source, target, source_mask, target_mask):
    """A Transformer's output alone: [B T V]."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    if not as_built(model):
        return engine.predict(model, *inputs)
    return engine.to_numpy(answer(model, *(
        engine.to_native(x, model.home) for x in inputs)))


def trainer(model, training):
    """A Trainer of a Transformer, at step 0."""
    if not as_built(model):
        return engine.trainer(model, training)
    return Trainer(model, training)


def generate(model, source, settings, rows=None):
    """Find targets of sources; the readable form's search if need be."""
    if not searches(model, settings):
        return engine.generate(model, source, settings, rows)
    rows = check_search(model.config, source, settings, rows)
    with jax.enable_x64(True):  # scores are float64, the model's dtype or not
        tokens, scores = SEARCHES[settings.method](
            model, engine.to_native(source, model.home), settings, rows)
        return {"tokens": engine.to_numpy(tokens),
                "scores": engine.to_numpy(scores)}
