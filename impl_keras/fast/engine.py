"""The fast form's engine; functions without one are the readable engine's."""

import weakref

import keras
import numpy as np

from contract import fast_forms
from contract.batch import check_inputs, check_search
from impl_keras import engine
from impl_keras.attention import MultiHeadAttention
from impl_keras.engine import on, to_native, to_numpy
from impl_keras.fast import attention, search
from impl_keras.fast.train import Trainer
from impl_keras.parameters import PARAMETERS, leaves, modules

#: The fast kind of each module that has one; they hold the same.
FAST = {MultiHeadAttention: attention.MultiHeadAttention}
PARAMETERS |= {
    FAST[kind]: held for kind, held in PARAMETERS.items() if kind in FAST}

#: A model -> its call as graphs of TensorFlow's for each shape: its own, and
#: XLA's, which takes half of the time of large batches.
GRAPHS = weakref.WeakKeyDictionary()


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


def graphs_of(model):
    """A model's call, traced once for each shape; elsewhere as it is.

    Returns:
        As it is, and as XLA compiles it.
    """
    call = type(model).__call__
    if keras.backend.backend() != "tensorflow":
        return call, call
    import tensorflow as tf
    return tf.function(call), tf.function(call, jit_compile=True)


def predict(model, source, target, source_mask, target_mask):
    """A Transformer's output alone: [B T V]."""
    inputs = (source, target, source_mask, target_mask)
    check_inputs(model.config, *inputs)
    if model not in GRAPHS:
        GRAPHS[model] = graphs_of(model)
    call = GRAPHS[model][max(source.size, target.size) >= search.LARGE]
    with on(model.home):
        return to_numpy(call(
            model, *(to_native(x, model.home) for x in inputs)))


def trainer(model, training):
    """A Trainer of a Transformer, at step 0."""
    with on(model.home):
        return Trainer(model, training)


def resume(trainer, step, moments):
    """Have a Trainer go on after ``step``, from moments as exported."""
    trainer.step = step
    for kind, held in (("m", trainer.m), ("v", trainer.v)):
        for (name, _, _), variable in zip(leaves(trainer.model), held):
            variable.assign(to_native(
                moments[f"{kind}.{name}"].reshape(variable.shape),
                trainer.model.home))


def generate(model, source, settings, rows=None):
    """Find targets of sources; the readable form's search if need be."""
    if not fast_forms.compiles(model.config, settings):
        return engine.generate(model, source, settings, rows)
    rows = check_search(model.config, source, settings, rows)
    with on(model.home):
        tokens, scores = search.run(
            model, to_native(source, model.home), settings, rows)
        return {"tokens": to_numpy(tokens).astype(np.int64),
                "scores": to_numpy(scores)}
