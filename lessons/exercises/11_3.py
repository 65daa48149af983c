"""Repair a cache.

A decoder writes token by token. This one keeps keys and values in a cache, so
that a new token costs one row of work. What it returns must be what attention
over the whole sequence with a causal mask would give, and it is not: there are
two mistakes. Find and correct both.

`x` and `places` are [T D]: the tokens' vectors, and what is added to them for
their positions. The kernels are [D D]. A row of contexts for each token is
returned, [T D].
"""

import numpy as np


def write(x, places, w_q, w_k, w_v):
    contexts = []
    for t in range(len(x)):
        token = x[t:t + 1]  # the loop sees one token at a time
        token = token + places[:1]
        query = token @ w_q
        keys, values = token @ w_k, token @ w_v
        scores = query @ keys.T / np.sqrt(x.shape[1])
        e = np.exp(scores - scores.max())
        contexts.append(e / e.sum() @ values)
    return np.concatenate(contexts)
