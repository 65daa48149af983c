"""The layers of three frameworks under common names, to write a port once.

A kit makes a framework's own layers in float64 of arrays that are given, and
has the functions that a port needs beside them.
"""

import functools

import numpy as np


class TorchKit:
    """PyTorch."""

    call = "forward"

    def __init__(self):
        import torch
        self.xp, self.base = torch, torch.nn.Module
        self.act = {
            "gelu": torch.nn.functional.gelu, "relu": torch.relu,
            "gelu by tanh": functools.partial(
                torch.nn.functional.gelu, approximate="tanh"),
            "silu": torch.nn.functional.silu}

    def array(self, x):
        """A constant."""
        return self.xp.from_numpy(np.array(x))

    def number(self, x):
        """A parameter."""
        return self.xp.nn.Parameter(self.array(x))

    def filled(self, layer, **arrays):
        """A layer with these arrays."""
        layer = layer.double()
        for name, array in arrays.items():
            getattr(layer, name).data = self.array(array)
        return layer

    def linear(self, weight, bias=None):
        """A projection by weight [out, in]."""
        return self.filled(
            self.xp.nn.Linear(*weight.shape[::-1], bias=bias is not None),
            weight=weight, **{} if bias is None else {"bias": bias})

    def norm(self, scale, bias, eps):
        """A layer norm."""
        return self.filled(self.xp.nn.LayerNorm(len(scale), eps),
                           weight=scale, bias=bias)

    def embedding(self, table):
        """A table of rows."""
        return self.filled(self.xp.nn.Embedding(*table.shape), weight=table)

    def several(self, layers):
        """A list of layers."""
        return self.xp.nn.ModuleList(layers)

    def softmax(self, x, axis):
        """exp(x) / Σ exp(x)."""
        return self.xp.softmax(x, axis)

    def transpose(self, x, *axes):
        """Axes in another order."""
        return x.permute(*axes)

    def sum(self, x):
        """The sum over the last axis, which stays, of size 1."""
        return x.sum(-1, keepdim=True)

    def reshape(self, x, *shape):
        """The same numbers in another shape."""
        return x.reshape(*shape)

    def heads(self, x, which):
        """Heads [B H T K] of these numbers."""
        return x[:, list(which)]

    def where(self, kept, x, other):
        """x where it is kept."""
        return self.xp.where(kept, x, other)

    def concatenate(self, arrays):
        """Along the last axis."""
        return self.xp.cat(arrays, -1)


class NnxKit(TorchKit):
    """JAX, by Flax NNX."""

    call = "__call__"

    def __init__(self):
        import jax
        import jax.numpy as jnp
        from flax import nnx
        jax.config.update("jax_enable_x64", True)
        self.xp, self.nnx, self.jax, self.base = jnp, nnx, jax, nnx.Module
        self.act = {"gelu": functools.partial(
            jax.nn.gelu, approximate=False), "relu": jax.nn.relu,
            "gelu by tanh": jax.nn.gelu, "silu": jax.nn.silu}
        self.made = {"param_dtype": jnp.float64, "rngs": nnx.Rngs(0)}

    def array(self, x):
        return self.xp.array(x)

    def number(self, x):
        return self.nnx.Param(self.array(x))

    def filled(self, layer, **arrays):
        for name, array in arrays.items():
            getattr(layer, name).set_value(self.array(array))
        return layer

    def linear(self, weight, bias=None):
        layer = self.nnx.Linear(*weight.shape[::-1], use_bias=bias is not None,
                                **self.made)
        return self.filled(layer, kernel=weight.T,
                           **{} if bias is None else {"bias": bias})

    def norm(self, scale, bias, eps):
        return self.filled(
            self.nnx.LayerNorm(len(scale), epsilon=eps,
                               use_fast_variance=False, **self.made),
            scale=scale, bias=bias)

    def embedding(self, table):
        return self.filled(self.nnx.Embed(*table.shape, **self.made),
                           embedding=table)

    def several(self, layers):
        return self.nnx.List(layers)

    def softmax(self, x, axis):
        return self.jax.nn.softmax(x, axis)

    def transpose(self, x, *axes):
        return x.transpose(*axes)

    def sum(self, x):
        return x.sum(-1, keepdims=True)

    def heads(self, x, which):
        return x[:, np.array(which)]

    def concatenate(self, arrays):
        return self.xp.concatenate(arrays, -1)


class KerasKit(TorchKit):
    """Keras, on the backend that it runs on."""

    call = "call"

    def __init__(self):
        import keras
        self.xp, self.keras = keras.ops, keras

        class KitLayer(keras.layers.Layer):
            """One in float64."""

            def __init__(self):
                super().__init__(dtype="float64")
        self.base = KitLayer
        self.act = {"gelu": functools.partial(
            keras.ops.gelu, approximate=False), "relu": keras.ops.relu,
            "gelu by tanh": keras.ops.gelu, "silu": keras.ops.silu}

    def array(self, x):
        return self.xp.convert_to_tensor(np.array(x))

    def number(self, x):
        return self.keras.Variable(x, dtype="float64")

    def filled(self, layer, *arrays):
        layer.set_weights(arrays)
        return layer

    def linear(self, weight, bias=None):
        layer = self.keras.layers.Dense(
            len(weight), use_bias=bias is not None, dtype="float64")
        layer.build((None, weight.shape[1]))
        return self.filled(layer, weight.T, *[] if bias is None else [bias])

    def norm(self, scale, bias, eps):
        layer = self.keras.layers.LayerNormalization(
            epsilon=eps, dtype="float64")
        layer.build((None, len(scale)))
        return self.filled(layer, scale, bias)

    def embedding(self, table):
        layer = self.keras.layers.Embedding(*table.shape, dtype="float64")
        layer.build((None,))
        return self.filled(layer, table)

    def several(self, layers):
        return layers

    def softmax(self, x, axis):
        return self.xp.softmax(x, axis)

    def transpose(self, x, *axes):
        return self.xp.transpose(x, axes)

    def sum(self, x):
        return self.xp.sum(x, -1, keepdims=True)

    def reshape(self, x, *shape):
        return self.xp.reshape(x, shape)

    def heads(self, x, which):
        return self.xp.take(x, np.array(which), 1)

    def concatenate(self, arrays):
        return self.xp.concatenate(arrays, -1)


KITS = {"torch": TorchKit, "nnx": NnxKit, "keras": KerasKit}


@functools.cache
def kit(name):
    """The Kit of this name."""
    return KITS[name]()


def layer(kit, name, init, call):
    """A class of the kit's layers: what it holds, and what it does."""
    def __init__(self, *given):
        kit.base.__init__(self)
        init(self, *given)
    return type(name, (kit.base,), {"__init__": __init__, kit.call: call})
