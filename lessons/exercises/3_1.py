"""Equation 1 of the paper.

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V

`query` is [T d_k], T queries of d_k numbers each; `key` and `value` are
[S d_k], for S words that are looked at. Return the context, [T d_k]: for each
query the mean of the values, weighted by a softmax over the keys. NumPy has no
softmax: write it there yourself.
"""


def attention(query, key, value):
    raise NotImplementedError
