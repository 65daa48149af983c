"""The fast form's engine; functions without one are the readable engine's."""

import keras
import numpy as np

from transformer_contract import fast_forms
from transformer_contract.batch import check_inputs, check_search
from transformer_contract.weights import no_weights
from impl_keras import engine
from impl_keras.attention import MultiHeadAttention
from impl_keras.dialects.attention import (
    DialectAttention, RelativeAttention, RotaryAttention)
from impl_keras.engine import home, on, to_native, to_numpy
from impl_keras.fast import attention, search, traced
from impl_keras.fast.train import Trainer
from impl_keras.parameters import leaves, modules

#: The fast kind of each module that has one; they hold the same.
FAST = {MultiHeadAttention: attention.MultiHeadAttention,
        DialectAttention: attention.DialectAttention,
        RotaryAttention: attention.RotaryAttention,
        RelativeAttention: attention.RelativeAttention}


def kept_by_keras():
    """Names of what Keras itself keeps in each layer."""
    model = keras.Model()
    model.part = keras.layers.Layer()  # of parts it keeps more
    model.compile()
    return set(vars(model)) - {"part"}


KEPT = kept_by_keras()

#: What described a Transformer when it was built, by its config and dtype.
PLANS = {}


def __getattr__(name):
    return getattr(engine, name)


def not_fused(config, settings=None):
    """What is left to the readable form, in words each.

    Of a model, and of a search with some settings.
    """
    backend = keras.backend.backend()
    return (*fast_forms.left(config, settings), *(
        [f"training as one compiled function (backend {backend})"]
        if backend != "tensorflow" else []))


def described(model):
    """What a model's layers are, weights left out: {path: ...}."""
    found = list(traced.parts(model))
    told = fast_forms.described(
        found, (keras.Variable, np.ndarray, keras.initializers.Initializer),
        {"home", "build", "quantize", "_compiled_functions", *KEPT})
    return {path: (*told[path], layer.dtype_policy.name)
            for path, layer in found}


def plan_of(config, dtype):
    """What describes a model as built; one is built if none has been."""
    if (config, dtype) not in PLANS:  # of a model from another process
        build("transformer", config, no_weights(config), dtype)
    return PLANS[config, dtype]


def strange(model):
    """What of a model is not as build made it: a path; "" if all is."""
    return fast_forms.strange(
        described(model), plan_of(model.config, model.dtype_policy.name))


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
        PLANS.setdefault((config, module.dtype_policy.name), described(module))
    return module


def predict(model, source, target, source_mask, target_mask):
    """A Transformer's output alone: [B T V]."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    if not as_built(model):
        return engine.predict(model, *inputs)
    traced.forget_others(model)
    # XLA takes half of the time of large batches.
    xla = max(source.size, target.size) >= search.LARGE
    call = traced.compiled(
        model, ("predict", xla), type(model).__call__, xla=xla)
    with on(home(model)):
        return to_numpy(call(*(to_native(x, home(model)) for x in inputs)))


def trainer(model, training):
    """A Trainer of a Transformer, at step 0."""
    if not as_built(model):
        return engine.trainer(model, training)
    with on(home(model)):
        return fast_forms.watched(Trainer(model, training))


def train_step(trainer, sources, targets):
    """Make one step on A batches; see the readable engine."""
    if isinstance(trainer, Trainer):
        fast_forms.check_trained(strange(trainer.model), trainer)
    return engine.train_step(trainer, sources, targets)


def resume(trainer, step, moments):
    """Have a Trainer go on after ``step``, from moments as exported."""
    if not isinstance(trainer, Trainer):
        return engine.resume(trainer, step, moments)
    trainer.step = step
    for kind, held in (("m", trainer.m), ("v", trainer.v)):
        for weight, variable in zip(leaves(trainer.model), held):
            variable.assign(to_native(weight.to_theirs(
                moments[f"{kind}.{weight.name}"]), home(trainer.model)))


def generate(model, source, settings, rows=None):
    """Find targets of sources; the readable form's search if need be."""
    if not searches(model, settings):
        return engine.generate(model, source, settings, rows)
    rows = check_search(model.config, source, settings, rows)
    with on(home(model)):
        tokens, scores = search.run(
            model, to_native(source, home(model)), settings, rows)
        return {"tokens": to_numpy(tokens).astype(np.int64),
                "scores": to_numpy(scores)}
