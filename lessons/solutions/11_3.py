import numpy as np


def write(x, places, w_q, w_k, w_v):
    keys = values = np.empty((0, x.shape[1]))
    contexts = []
    for t in range(len(x)):
        token = x[t:t + 1] + places[t:t + 1]
        query = token @ w_q
        keys = np.concatenate([keys, token @ w_k])
        values = np.concatenate([values, token @ w_v])
        scores = query @ keys.T / np.sqrt(x.shape[1])
        e = np.exp(scores - scores.max())
        contexts.append(e / e.sum() @ values)
    return np.concatenate(contexts)
