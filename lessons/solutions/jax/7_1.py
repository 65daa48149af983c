import math

import jax
import jax.numpy as jnp


def linear(x, w, name):
    return x @ w[f"{name}.kernel"] + w[f"{name}.bias"]


def layer_norm(x, w, name):
    normal = jax.nn.standardize(x, axis=-1, epsilon=1e-5)
    return normal * w[f"{name}.scale"] + w[f"{name}.bias"]


def attention(x, memory, mask, w, name, heads):
    def split(y):
        return y.reshape(*y.shape[:2], heads, -1).swapaxes(1, 2)
    query = split(linear(x, w, f"{name}_query"))
    key = split(linear(memory, w, f"{name}_key"))
    value = split(linear(memory, w, f"{name}_value"))
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e30), axis=-1)
    context = (weights @ value).swapaxes(1, 2).reshape(x.shape)
    return linear(context, w, f"{name}_output")


def encoder_layer(x, mask, w, heads):
    y = attention(x, x, mask, w, "self", heads)
    x = layer_norm(x + y, w, "norm_1")
    y = linear(jax.nn.relu(linear(x, w, "inner")), w, "outer")
    return layer_norm(x + y, w, "norm_2")
