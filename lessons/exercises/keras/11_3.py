import math

from keras import ops


def write(x, places, w_q, w_k, w_v):
    contexts = []
    for t in range(len(x)):
        token = x[t:t + 1]  # the loop sees one token at a time
        token = token + places[:1]
        query = token @ w_q
        keys = [token @ w_k]
        values = [token @ w_v]
        key = ops.concatenate(keys)
        scores = query @ ops.transpose(key) / math.sqrt(x.shape[1])
        weights = ops.softmax(scores, axis=-1)
        contexts.append(weights @ ops.concatenate(values))
    return ops.concatenate(contexts)
