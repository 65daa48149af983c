"""One head of attention, for the first lessons.

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V                      (eq. 1)

It has neither biases nor a batch or mask; attention.py has all of them.
"""

import math

from reference_numpy.attention import softmax, softmax_backward
from reference_numpy.dialects.linear import LinearWithoutBias
from reference_numpy.linear import under


class SingleHeadAttention:
    """One head without biases, batch or mask, for the first lessons.

    Parameters: ``query.kernel``, ``key.kernel``, ``value.kernel``, [D D] each.
    """

    def __init__(self, d_model):
        self.query = LinearWithoutBias(d_model, d_model)
        self.key = LinearWithoutBias(d_model, d_model)
        self.value = LinearWithoutBias(d_model, d_model)

    def forward(self, x):
        """Let x [T D] attend to itself."""
        c = {"inputs": (x,)}
        # [1] query [T D]: x W_Q
        query = c["query"] = self.query(x)
        # [2] key [T D]: x W_K
        key = c["key"] = self.key(x)
        # [3] value [T D]: x W_V
        value = c["value"] = self.value(x)
        # [4] raw_scores [T T]: Q Kᵀ
        raw_scores = c["raw_scores"] = query @ key.mT
        # [5] scores [T T]: Q Kᵀ / √d_k  (eq. 1)
        scores = c["scores"] = raw_scores / math.sqrt(query.shape[-1])
        # [6] weights [T T]: softmax over keys  (eq. 1)
        weights = c["weights"] = softmax(scores)
        # [7] context [T D]: weights V  (eq. 1)
        context = c["context"] = weights @ value
        return context, c

    def backward(self, dcontext, c):
        """From dcontext [T D]: dx and g."""
        (x,), g = c["inputs"], {"context": dcontext}
        # [7'] weights, value: context = weights V
        dweights = g["weights"] = dcontext @ c["value"].mT
        dvalue = g["value"] = c["weights"].mT @ dcontext
        # [6'] scores: weights = softmax(scores)
        dscores = g["scores"] = softmax_backward(dweights, c["weights"])
        # [5'] raw_scores: scores = raw_scores / √d_k
        draw_scores = g["raw_scores"] = dscores / math.sqrt(x.shape[-1])
        # [4'] query, key: raw_scores = Q Kᵀ
        dquery = g["query"] = draw_scores @ c["key"]
        dkey = g["key"] = draw_scores.mT @ c["query"]
        # [3'] x, W_V: value = x W_V
        dx, gradients = self.value.backward(dvalue, x)
        g |= under("value", gradients)
        # [2'] x, W_K: key = x W_K
        dx_k, gradients = self.key.backward(dkey, x)
        g |= under("key", gradients)
        # [1'] x, W_Q: query = x W_Q
        dx_q, gradients = self.query.backward(dquery, x)
        g |= under("query", gradients)
        return dx + dx_k + dx_q, g
