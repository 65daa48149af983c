import math

from keras import ops


def norm_of(x, y, eps=1e-6):
    d = x.shape[-1]
    centered = x - ops.mean(x, axis=-1, keepdims=True)
    biased = ops.var(x, axis=-1, keepdims=True)
    unbiased = ops.sqrt(biased) * math.sqrt(d / (d - 1))
    makes = {
        "layer": centered / ops.sqrt(biased + eps),
        "std": centered / (unbiased + eps),
        "rms": x / ops.sqrt(ops.mean(x * x, axis=-1, keepdims=True) + eps)}
    return min(makes, key=lambda name: ops.max(ops.abs(makes[name] - y)))
