import numpy as np


def norm_of(x, y, eps=1e-6):
    centered = x - x.mean(axis=-1, keepdims=True)
    makes = {
        "layer": centered / np.sqrt(x.var(-1, keepdims=True) + eps),
        "std": centered / (x.std(-1, ddof=1, keepdims=True) + eps),
        "rms": x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)}
    return min(makes, key=lambda name: np.abs(makes[name] - y).max())
