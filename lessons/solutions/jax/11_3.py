import math

import jax
import jax.numpy as jnp


def write(x, places, w_q, w_k, w_v):
    keys, values, contexts = [], [], []
    for t in range(len(x)):
        token = x[t:t + 1] + places[t:t + 1]
        query = token @ w_q
        keys.append(token @ w_k)
        values.append(token @ w_v)
        key = jnp.concatenate(keys)
        scores = query @ key.mT / math.sqrt(x.shape[1])
        weights = jax.nn.softmax(scores, axis=-1)
        contexts.append(weights @ jnp.concatenate(values))
    return jnp.concatenate(contexts)
