"""One small model in three frameworks, with all that tracing must see."""

import numpy as np

from parity.tracing.trace import WHOLE

X = np.random.default_rng(1).normal(size=(3, 5, 6))
C = np.random.default_rng(2).normal(size=(3, 5, 6))


def torch_model():
    """A model that calls a module twice and holds a list and a dict."""
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(6, 4), nn.Linear(4, 6)])
            self.by_name = nn.ModuleDict({"norm": nn.LayerNorm(6)})
            self.drop = nn.Dropout(0.5)
            self.unused = nn.Linear(2, 2)

        def forward(self, x, mask=None, *, scale=1.0):
            for _ in range(2):
                x = x + self.layers[1](torch.relu(self.layers[0](x)))
            return {"y": self.drop(self.by_name["norm"](x)) * scale,
                    "n": None, "shape": (x.shape[0], x > 0)}

    torch.manual_seed(0)
    return Model().double().eval()


def jax_model():
    """The same in NNX."""
    import jax.numpy as jnp
    from flax import nnx
    kind = {"param_dtype": jnp.float64, "rngs": nnx.Rngs(0)}

    class Model(nnx.Module):
        def __init__(self):
            self.layers = nnx.List([nnx.Linear(6, 4, **kind),
                                    nnx.Linear(4, 6, **kind)])
            self.by_name = nnx.Dict(norm=nnx.LayerNorm(6, **kind))
            self.drop = nnx.Dropout(0.5, deterministic=True)
            self.unused = nnx.Linear(2, 2, **kind)

        def __call__(self, x, mask=None, *, scale=1.0):
            for _ in range(2):
                x = x + self.layers[1](nnx.relu(self.layers[0](x)))
            return {"y": self.drop(self.by_name["norm"](x)) * scale,
                    "n": None, "shape": (x.shape[0], x > 0)}
    return Model()


def keras_model():
    """The same in Keras."""
    import keras
    from keras import layers, ops

    class Model(keras.layers.Layer):
        def __init__(self):
            super().__init__(dtype="float64")
            kind = {"dtype": "float64"}
            self.layers = [layers.Dense(4, **kind), layers.Dense(6, **kind)]
            self.by_name = {"norm": layers.LayerNormalization(**kind)}
            self.drop = layers.Dropout(0.5, **kind)
            self.unused = layers.Dense(2, **kind)

        def call(self, x, mask=None, *, scale=1.0):
            for _ in range(2):
                x = x + self.layers[1](ops.relu(self.layers[0](x)))
            return {"y": self.drop(self.by_name["norm"](x)) * scale,
                    "n": None, "shape": (x.shape[0], x > 0)}
    keras.utils.set_random_seed(0)
    model = Model()
    model(ops.convert_to_tensor(X), scale=2.0)
    return model


MODELS = {"torch": torch_model, "keras": keras_model, "jax": jax_model}

#: What every one of the three does, in order.
ORDER = ["layers.0", "layers.1", "layers.0#2", "layers.1#2", "by_name.norm",
         "drop", WHOLE]


def total(port, output):
    """A loss whose gradient by the output is C."""
    weighted = output["y"] * port.to_native(C, "cpu")
    if port.NAME == "keras":
        from keras import ops
        return ops.sum(weighted)
    return weighted.sum()
