import numpy as np


def linear(x, w, name):
    return x @ w[f"{name}.kernel"] + w[f"{name}.bias"]


def layer_norm(x, w, name):
    centered = x - x.mean(axis=-1, keepdims=True)
    variance = (centered * centered).mean(axis=-1, keepdims=True)
    return (centered / np.sqrt(variance + 1e-5) * w[f"{name}.scale"]
            + w[f"{name}.bias"])


def attention(x, mask, w, heads):
    b, t, d = x.shape
    query, key, value = (
        linear(x, w, f"self_{part}").reshape(b, t, heads, -1).swapaxes(1, 2)
        for part in ("query", "key", "value"))
    scores = query @ key.mT / np.sqrt(d // heads)
    scores = np.where(mask, scores, np.finfo(float).min)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    context = (weights @ value).swapaxes(1, 2).reshape(b, t, d)
    return linear(context, w, "self_output")


def encoder_layer(x, mask, w, heads):
    x = layer_norm(x + attention(x, mask, w, heads), w, "norm_1")
    inner = np.maximum(linear(x, w, "inner"), 0)
    return layer_norm(x + linear(inner, w, "outer"), w, "norm_2")
