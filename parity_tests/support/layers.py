"""A torch encoder layer, and ports of it."""

import numpy as np

from parity.comparison.result import OUTPUT
from parity.tracing.trace import MODULE, WHOLE, Step, Trace, trace
from parity_tests.support.engines import usable
from parity_tests.support.explaining import drawn

D, H, F = 12, 3, 20
RNG = np.random.default_rng(3)
X = RNG.normal(size=(2, 7, D))


def torch_layer(seed=0):
    """torch's own encoder layer, in float64, nothing zero or one."""
    usable("torch")
    import torch
    return drawn(torch.nn.TransformerEncoderLayer(
        D, H, F, batch_first=True), seed=seed)


def weights_of(layer):
    return {name: value.numpy() for name, value in layer.state_dict().items()}


def nnx_layer(weights, eps=(1e-5, 1e-5), packed=False):
    """A port to NNX with names, shapes and an order of its own."""
    usable("jax")
    import jax
    import jax.numpy as jnp
    from flax import nnx

    def filled(module, **arrays):
        for name, array in arrays.items():
            getattr(module, name).set_value(jnp.array(array))
        return module

    def linear(kernel, bias):
        made = nnx.LinearGeneral(
            kernel.shape[:kernel.ndim - bias.ndim], bias.shape,
            axis=tuple(range(bias.ndim - kernel.ndim, 0)),
            param_dtype=jnp.float64, rngs=nnx.Rngs(0))
        return filled(made, kernel=kernel, bias=bias)

    class Attention(nnx.Module):
        def __init__(self):
            names = "query", "key", "value"
            for name, matrix, bias in zip(
                    names, np.split(weights["self_attn.in_proj_weight"], 3),
                    np.split(weights["self_attn.in_proj_bias"], 3)):
                setattr(self, name, linear(
                    matrix.T.reshape(D, H, D // H),
                    bias.reshape(H, D // H)))
            self.out = linear(
                weights["self_attn.out_proj.weight"].T.reshape(
                    H, D // H, D), weights["self_attn.out_proj.bias"])

        def __call__(self, x):
            q, k, v = self.query(x), self.key(x), self.value(x)
            scores = jnp.einsum("bthk,bshk->bhts", q, k) / (D // H) ** 0.5
            mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(scores), v)
            return self.out(mixed)

    class Layer(nnx.Module):
        def __init__(self):
            self.attention = Attention()
            self.norms = nnx.List([filled(
                nnx.LayerNorm(D, epsilon=eps[i - 1], use_fast_variance=False,
                              param_dtype=jnp.float64, rngs=nnx.Rngs(0)),
                scale=weights[f"norm{i}.weight"],
                bias=weights[f"norm{i}.bias"]) for i in (1, 2)])
            self.mlp = nnx.List([linear(
                weights[f"linear{i}.weight"].T, weights[f"linear{i}.bias"])
                for i in (1, 2)])

        def __call__(self, x):
            x = self.norms[0](x + self.attention(x))
            return self.norms[1](x + self.mlp[1](nnx.relu(self.mlp[0](x))))
    return Layer()


def keras_layer(weights):
    """A port to Keras, on its own attention."""
    usable("keras")
    import keras
    from keras import layers, ops
    kind = {"dtype": "float64"}

    class Layer(keras.layers.Layer):
        def __init__(self):
            super().__init__(**kind)
            self.mha = layers.MultiHeadAttention(H, D // H, **kind)
            self.ln1, self.ln2 = (layers.LayerNormalization(
                epsilon=1e-5, **kind) for _ in range(2))
            self.ffn = keras.Sequential([
                layers.Dense(F, activation="relu", **kind),
                layers.Dense(D, **kind)])

        def call(self, x):
            x = self.ln1(x + self.mha(x, x))
            return self.ln2(x + self.ffn(x))
    model = Layer()
    model(ops.convert_to_tensor(X))
    model.mha._inverse_sqrt_key_dim = np.float64((D // H) ** -0.5)
    thirds = [np.split(weights[f"self_attn.in_proj_{name}"], 3)
              for name in ("weight", "bias")]
    for name, matrix, bias in zip(("query", "key", "value"), *thirds):
        dense = getattr(model.mha, f"{name}_dense")
        dense.kernel.assign(matrix.T.reshape(D, H, D // H))
        dense.bias.assign(bias.reshape(H, D // H))
    out = model.mha.output_dense
    out.kernel.assign(
        weights["self_attn.out_proj.weight"].T.reshape(H, D // H, D))
    out.bias.assign(weights["self_attn.out_proj.bias"])
    for i, norm in ((1, model.ln1), (2, model.ln2)):
        norm.gamma.assign(weights[f"norm{i}.weight"])
        norm.beta.assign(weights[f"norm{i}.bias"])
        dense = model.ffn.layers[i - 1]
        dense.kernel.assign(weights[f"linear{i}.weight"].T)
        dense.bias.assign(weights[f"linear{i}.bias"])
    return model


def traced(model, port, x=X, **more):
    return trace(model, usable(port).to_native(x, "cpu"), **more)


def outputs(comparison):
    """The rows of a comparison that hold outputs, by their step in a."""
    return {row.a: row for row in comparison.rows if row.part == OUTPUT}


class Plain:
    """What a trace of one step is, made by hand."""

    def __new__(cls, name, inputs, made):
        step = Step(WHOLE, WHOLE, "Model", MODULE, 1, 2, inputs, made)
        return Trace(name, {}, {}, "float64", [step], {}, [])
