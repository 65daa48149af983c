"""Repair a head.

This is a port of a single attention head as somebody wrote it. It runs, every
shape is right, and it has two mistakes. Find and correct both.

`x` is [T D], T words of D numbers each. The three kernels W are [D D], and
each projection is x W. Three results are returned, in this order: scores
[T T], weights [T T] and the context [T D].
"""

import numpy as np


def head(x, w_q, w_k, w_v):
    query, key, value = x @ w_q, x @ w_k, x @ w_v.T
    scores = query @ key.T / np.sqrt(len(x))
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return scores, weights, weights @ value
