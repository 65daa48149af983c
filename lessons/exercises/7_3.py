"""Repair a decoder layer.

This is a port of the paper's decoder layer, post-norm. It runs, and it has
three mistakes, all in `decoder_layer`; the functions above it are right. Find
and correct them. What the layer should be:

    x = norm_1(x + self-attention(x, x, target_mask))
    x = norm_2(x + cross-attention(x, memory, source_mask))
    x = norm_3(x + outer(relu(inner(x))))
"""

import numpy as np


def linear(x, w, name):
    return x @ w[f"{name}.kernel"] + w[f"{name}.bias"]


def layer_norm(x, w, name):
    centered = x - x.mean(axis=-1, keepdims=True)
    variance = (centered * centered).mean(axis=-1, keepdims=True)
    return (centered / np.sqrt(variance + 1e-5) * w[f"{name}.scale"]
            + w[f"{name}.bias"])


def attention(x, memory, mask, w, name, heads):
    def split(y):
        return y.reshape(*y.shape[:2], heads, -1).swapaxes(1, 2)
    query = split(linear(x, w, f"{name}_query"))
    key = split(linear(memory, w, f"{name}_key"))
    value = split(linear(memory, w, f"{name}_value"))
    scores = query @ key.mT / np.sqrt(query.shape[-1])
    scores = np.where(mask, scores, np.finfo(float).min)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    context = (weights @ value).swapaxes(1, 2).reshape(x.shape)
    return linear(context, w, f"{name}_output")


def decoder_layer(x, memory, source_mask, target_mask, w, heads):
    y = attention(x, x, target_mask, w, "self", heads)
    x = layer_norm(y, w, "norm_1")
    memory = layer_norm(memory, w, "norm_3")
    y = attention(x, memory, source_mask, w, "cross", heads)
    x = layer_norm(x + y, w, "norm_3")
    y = linear(np.maximum(linear(x, w, "inner"), 0), w, "outer")
    return layer_norm(x + y, w, "norm_2")
