import numpy as np


def masked_softmax(scores, mask):
    hidden = np.where(mask, scores, np.finfo(scores.dtype).min)
    e = np.exp(hidden - hidden.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return np.where(mask, weights, 0)
