import math

import jax


def head(x, w_q, w_k, w_v):
    query, key, value = x @ w_q, x @ w_k, x @ w_v
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    weights = jax.nn.softmax(scores, axis=-1)
    return scores, weights, weights @ value
