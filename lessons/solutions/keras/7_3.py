import math

from keras import ops


def linear(x, w, name):
    return x @ w[f"{name}.kernel"] + w[f"{name}.bias"]


def layer_norm(x, w, name):
    mean, variance = ops.moments(x, axes=-1, keepdims=True)
    return ((x - mean) / ops.sqrt(variance + 1e-5) * w[f"{name}.scale"]
            + w[f"{name}.bias"])


def attention(x, memory, mask, w, name, heads):
    def split(y):
        b, t, d = y.shape
        return ops.swapaxes(ops.reshape(y, (b, t, heads, d // heads)), 1, 2)
    query = split(linear(x, w, f"{name}_query"))
    key = split(linear(memory, w, f"{name}_key"))
    value = split(linear(memory, w, f"{name}_value"))
    scores = query @ ops.swapaxes(key, -1, -2) / math.sqrt(query.shape[-1])
    weights = ops.softmax(ops.where(mask, scores, -1e30), axis=-1)
    context = ops.reshape(ops.swapaxes(weights @ value, 1, 2), x.shape)
    return linear(context, w, f"{name}_output")


def decoder_layer(x, memory, source_mask, target_mask, w, heads):
    y = attention(x, x, target_mask, w, "self", heads)
    x = layer_norm(x + y, w, "norm_1")
    y = attention(x, memory, source_mask, w, "cross", heads)
    x = layer_norm(x + y, w, "norm_2")
    y = linear(ops.relu(linear(x, w, "inner")), w, "outer")
    return layer_norm(x + y, w, "norm_3")
