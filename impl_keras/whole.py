"""Layers that have all their weights as soon as they are made.

keras: other layers make theirs on a first call, of which they learn sizes. Here
the config has said them, so that a new model can be loaded and saved at once.
"""

import contextlib
import math
import numbers

import keras

from transformer_contract.config import TransformerConfig
from parity_io.errors import InputError


class Layer(keras.layers.Layer):
    """A layer whose constructor makes all that is in it."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.built = True


class WholeModel(keras.Model):
    """A model whose constructor makes all that is in it, by a config."""

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.built, self.config = True, config

    def __call__(self, *inputs, **named):
        """As Keras' own, which speaks of positions where it is given text."""
        for each in keras.tree.flatten(inputs):
            if isinstance(each, (str, bytes, numbers.Number)):
                raise InputError(
                    f"the ids came as {type(each).__name__}; give a tensor "
                    "of whole numbers of shape [batch, length].")
        return super().__call__(*inputs, **named)

    def get_config(self):
        """What from_config makes the same model of, without its weights."""
        return {**super().get_config(), "config": self.config.as_dict()}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """The model that get_config told."""
        own = TransformerConfig(**config["config"])
        return cls(**{**config, "config": own})


@contextlib.contextmanager
def parts_in(policy):
    """Make layers with a dtype policy (keras: a new one has the thread's)."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def glorot(d_in, d_out):
    """Uniform, of variance 2 / (in + out) (Glorot and Bengio 2010, eq. 16)."""
    limit = math.sqrt(6 / (d_in + d_out))
    return keras.initializers.RandomUniform(-limit, limit)


def dense(d_in, d_out, use_bias):
    """Keras' own linear map of [... in] to [... out]."""
    layer = keras.layers.Dense(
        d_out, use_bias=use_bias, kernel_initializer=glorot(d_in, d_out))
    layer.build((None, d_in))
    return layer


def rows_of(features):
    """Uniform, of variance 1 / D: a row of a table has length 1 or so."""
    limit = math.sqrt(3 / features)
    return keras.initializers.RandomUniform(-limit, limit)


def table(rows, features):
    """Keras' own table of rows, looked up by their numbers."""
    layer = keras.layers.Embedding(
        rows, features, embeddings_initializer=rows_of(features))
    layer.build()
    return layer
