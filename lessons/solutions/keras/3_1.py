import math

from keras import ops


def attention(query, key, value):
    scores = query @ ops.swapaxes(key, -1, -2) / math.sqrt(query.shape[-1])
    return ops.softmax(scores, axis=-1) @ value
