"""The native form's engine; functions without one are the readable engine's."""

import keras
import numpy as np

from parity_io.errors import InputError
from impl_keras import engine
from impl_keras.engine import on
from impl_keras.native.model import Transformer
from impl_keras.whole import parts_in


def __getattr__(name):
    return getattr(engine, name)


def build(component, config, weights, dtype="float64", device="cpu"):
    """Make a whole model of Keras' own layers; see the readable engine.

    Raises:
        InputError: it is no whole model, or one that they cannot be.
    """
    if component != "transformer":
        raise InputError(f"the native form makes whole models, and no "
                         f"{component}; choose another form.")
    with on(device), parts_in(dtype):
        model = Transformer(config)
    for layer in model.layers:
        if isinstance(layer, keras.layers.MultiHeadAttention):
            # keras: a Python float becomes float32 before it is cast
            layer._inverse_sqrt_key_dim = np.float64(config.d_k**-0.5)
    return engine.filled(model, weights, device)


def forward(model, source, target, source_mask, target_mask, key=None):
    """The output, as the only step that is seen; nothing is dropped."""
    return {"output": engine.predict(
        model, source, target, source_mask, target_mask)}


def generate(model, source, settings, rows=None):
    """Find targets of sources, by reading the whole target for each token."""
    return engine.generate(
        model, source, settings.replace(cached=False), rows)
