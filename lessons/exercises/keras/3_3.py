import math

from keras import ops


def head(x, w_q, w_k, w_v):
    query, key, value = x @ w_q, x @ w_k, x @ ops.transpose(w_v)
    scores = query @ ops.transpose(key) / math.sqrt(len(x))
    weights = ops.softmax(scores, axis=-1)
    return scores, weights, weights @ value
