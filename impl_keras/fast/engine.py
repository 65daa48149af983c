"""The fast form's engine; functions without one are the readable engine's."""

import keras
import numpy as np

from transformer_contract import fast_forms
from transformer_contract.batch import check_inputs, check_search
from impl_keras import engine
from impl_keras.attention import MultiHeadAttention
from impl_keras.dialects.attention import (
    DialectAttention, RelativeAttention, RotaryAttention)
from impl_keras.engine import home, on, to_native, to_numpy
from impl_keras.fast import attention, search
from impl_keras.fast.traced import compiled
from impl_keras.fast.train import Trainer
from impl_keras.parameters import leaves, modules

#: The fast kind of each module that has one; they hold the same.
FAST = {MultiHeadAttention: attention.MultiHeadAttention,
        DialectAttention: attention.DialectAttention,
        RotaryAttention: attention.RotaryAttention,
        RelativeAttention: attention.RelativeAttention}


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


def build(component, config, weights, dtype="float64", device="cpu"):
    """Make a component of fast modules; see the readable engine."""
    module = engine.build(component, config, weights, dtype, device)
    for _, below in modules(module):
        below.__class__ = FAST.get(type(below), type(below))
    return module


def predict(model, source, target, source_mask, target_mask):
    """A Transformer's output alone: [B T V]."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    # XLA takes half of the time of large batches.
    xla = max(source.size, target.size) >= search.LARGE
    call = compiled(
        model, ("predict", xla), type(model).__call__, xla=xla)
    with on(home(model)):
        return to_numpy(call(*(to_native(x, home(model)) for x in inputs)))


def trainer(model, training):
    """A Trainer of a Transformer, at step 0."""
    with on(home(model)):
        return Trainer(model, training)


def resume(trainer, step, moments):
    """Have a Trainer go on after ``step``, from moments as exported."""
    trainer.step = step
    for kind, held in (("m", trainer.m), ("v", trainer.v)):
        for weight, variable in zip(leaves(trainer.model), held):
            variable.assign(to_native(weight.to_theirs(
                moments[f"{kind}.{weight.name}"]), home(trainer.model)))


def generate(model, source, settings, rows=None):
    """Find targets of sources; the readable form's search if need be."""
    if not fast_forms.compiles(model.config, settings):
        return engine.generate(model, source, settings, rows)
    rows = check_search(model.config, source, settings, rows)
    with on(home(model)):
        tokens, scores = search.run(
            model, to_native(source, home(model)), settings, rows)
        return {"tokens": to_numpy(tokens).astype(np.int64),
                "scores": to_numpy(scores)}
