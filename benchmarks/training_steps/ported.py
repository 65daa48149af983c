"""The regression of torch_parts in Flax NNX, Keras and MLX, same weights."""

import jax
import jax.numpy as jnp
import keras
import numpy as np
from flax import nnx

from benchmarks.training_steps.torch_parts import batches, net
from parity.training.form import Training


def weights():
    """[(kernel [in out], bias [out])] of both layers."""
    made = net()
    return [(layer.weight.detach().numpy().T, layer.bias.detach().numpy())
            for layer in (made[0], made[-1])]


class TrainedNet(nnx.Module):
    """The net of torch_parts in NNX; ``more`` stands behind its first layer."""

    def __init__(self, *more):
        keys = {"rngs": nnx.Rngs(0), "param_dtype": jnp.float64}
        self.first = nnx.Linear(6, 12, **keys)
        self.more = nnx.List(more)
        self.second = nnx.Linear(12, 3, **keys)
        for layer, (kernel, bias) in zip((self.first, self.second),
                                         weights()):
            layer.kernel[...] = jnp.asarray(kernel)
            layer.bias[...] = jnp.asarray(bias)

    def __call__(self, x):
        x = self.first(x)
        for layer in self.more:
            x = layer(x)
        return self.second(jnp.tanh(x))


def squares(y, target):
    """The mean of the squares."""
    return jnp.mean((y - target)**2)


def in_nnx(tx, loss=squares, more=lambda: (), **rest):
    """A function that makes a Training in NNX."""
    def make():
        jax.config.update("jax_enable_x64", True)
        return Training(TrainedNet(*more()), loss, tx, [
            tuple(map(jnp.asarray, each)) for each in batches()], **rest)
    return make


def in_keras(optimizer, loss="mse", more=lambda: (), accumulate=1,
             frozen=False):
    """A function that makes a compiled Keras model.

    Args:
        optimizer: a function without parameters.
    """
    def make():
        layers = keras.layers
        model = keras.Sequential([
            keras.Input((6,), dtype="float64"),
            layers.Dense(12, dtype="float64"), *more(),
            layers.Activation("tanh", dtype="float64"),
            layers.Dense(3, dtype="float64")])
        dense = [each for each in model.layers
                 if isinstance(each, layers.Dense)]
        for layer, arrays in zip(dense, weights()):
            layer.set_weights(arrays)
        dense[0].trainable = not frozen
        model.compile(optimizer=optimizer(), loss=loss)
        return Training(model, batches=batches(), accumulate=accumulate)
    return make


def in_mlx(optimizer):
    """A function that makes a Training in MLX.

    Args:
        optimizer: a function of the module mlx.optimizers.
    """
    def make():
        import mlx.core as mx
        import mlx.nn as nn
        import mlx.optimizers
        mx.set_default_device(mx.cpu)
        model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 3))
        for layer, (kernel, bias) in zip((model.layers[0], model.layers[2]),
                                         weights()):
            layer.weight = mx.array(np.ascontiguousarray(kernel.T),
                                    dtype=mx.float64)
            layer.bias = mx.array(bias, dtype=mx.float64)
        return Training(
            model, lambda y, t: ((y - t)**2).mean(),
            optimizer(mlx.optimizers),
            [tuple(mx.array(each, dtype=mx.float64) for each in batch)
             for batch in batches()])
    return make
