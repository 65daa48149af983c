"""Attention (section 3.2): a mean of values, weighted by how keys match.

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V                      (eq. 1)

Multi-head attention does so in H subspaces of d_k = d_model / H features at
once. Masks say True where a query may attend (R1). What other systems change
is in dialects/attention.py.
"""

import math

import numpy as np

from transformer_contract import checks
from reference_numpy.dropout import Dropout
from reference_numpy.linear import Linear, under


def softmax(x):
    """exp(x) / Σ exp(x) over the last axis, shifted so nothing overflows."""
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def masked_softmax(scores, mask):
    """Softmax over the keys that ``mask`` allows; every other weight is 0.

    A masked score becomes the most negative finite number, whose exponential
    is 0 beside any other. In a fully masked row all scores are then equal, and
    softmax would give every key the same weight. So weights are set to 0 where
    the mask is False once more, and the row's context is 0 (R2).
    """
    lowest = np.finfo(scores.dtype).min
    return np.where(mask, softmax(np.where(mask, scores, lowest)), 0)


def softmax_backward(dweights, weights):
    """From dweights: dscores = w · (dw - Σ w dw), w being the weights.

    Each weight's gradient counts less its weighted mean, because a weight
    grows at the cost of all others. Masked weights are 0, and so are the
    gradients of their scores.
    """
    mean = np.sum(dweights * weights, axis=-1, keepdims=True)
    return weights * (dweights - mean)


class MultiHeadAttention:
    """H heads of width K = D/H at once. Self-attention if ``memory`` is ``x``.

    Parameters: ``query``, ``key``, ``value`` and ``output``, each with a
    ``kernel`` [D D] and a ``bias`` [D]. Columns of the first three are grouped
    by head: head h owns columns h·K to (h + 1)·K - 1 (R14).
    Equation 1 knows no positions: ``start`` is for dialects alone.
    """

    #: What makes weights of scores and a mask; a dialect has its own.
    softmax = staticmethod(masked_softmax)

    def __init__(self, config):
        self.d_k, self.divisor = config.d_k, math.sqrt(config.d_k)
        self.query = Linear(config.d_model, config.d_model)
        self.key = Linear(config.d_model, config.d_model)
        self.value = Linear(config.d_model, config.d_model)
        self.output = Linear(config.d_model, config.d_model)
        self.weights_dropout = Dropout(config.dropout)

    def split(self, x):
        """Give each head its features: [B T D] to [B H T K]."""
        return x.reshape(*x.shape[:2], -1, self.d_k).swapaxes(1, 2)

    def merge(self, x):
        """Concatenate the heads: [B H T K] to [B T D]."""
        return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)

    def project(self, x, memory, start, c):
        """Query, key and value of each head; x's first position is start."""
        # [1] query [B H T K]: x W_Q + b_Q, split into heads  (§3.2.2, R14)
        query = c["query"] = self.split(self.query(x))
        # [2] key [B H S K]: memory W_K + b_K, split into heads  (§3.2.2)
        key = c["key"] = self.split(self.key(memory))
        # [3] value [B H S K]: memory W_V + b_V, split into heads  (§3.2.2)
        value = c["value"] = self.split(self.value(memory))
        return query, key, value

    def score(self, query, key, start, c):
        """How well each query matches each key: Q Kᵀ / √d_k, [B H T S]."""
        return query @ key.mT / self.divisor

    def attend(self, query, key, value, mask, start, c):
        """Equation 1: the context, [B H T K]."""
        checks.mask(mask, (*query.shape[:-1], key.shape[-2]))
        c["operands"] = query, key, value, mask
        # [4] scores [B H T S]: Q Kᵀ / √d_k  (eq. 1, R12)
        scores = c["scores"] = self.score(query, key, start, c)
        # [5] weights [B H T S]: softmax over S; 0 where masked  (eq. 1, R2)
        weights = c["weights"] = self.softmax(scores, mask)
        dropped, c["weights_dropout"] = self.weights_dropout.forward(weights)
        # [6] context [B H T K]: weights V  (eq. 1)
        context = c["context"] = dropped @ value
        return context

    def forward(self, x, memory, mask, cache):
        """Let x [B T D] attend to memory [B S D] where mask allows.

        With a cache (cache.py), x and memory are the same one token; it attends
        to itself and to every token that the cache keeps. Without one it is
        None. ``c`` is another thing: each step by its name, for ``backward``.
        """
        c = {"inputs": (x, memory)}
        start = 0 if cache is None else cache.written
        query, key, value = self.project(x, memory, start, c)
        if cache is not None:
            key, value = cache.extend(key, value)
        context = self.attend(query, key, value, mask, start, c)
        # [7] output [B T D]: concatenated heads times W_O, plus b_O  (§3.2.2)
        output = c["output"] = self.output(self.merge(context))
        return output, c

    def backward(self, doutput, c):
        """From doutput [B T D]: dx, dmemory and g, by step and parameter.

        In self-attention x and memory are one array, whose gradient is the sum
        of the two.
        """
        g = {"output": doutput}
        # [7'] context, W_O, b_O: output = concatenated heads W_O + b_O
        dmerged, gradients = self.output.backward(
            doutput, self.merge(c["context"]))
        g |= under("output", gradients)
        dheads = self.attend_backward(self.split(dmerged), c, g)
        dx, dmemory = self.project_backward(*dheads, c, g)
        return dx, dmemory, g

    def attend_backward(self, dcontext, c, g):
        """From dcontext [B H T K]: dquery, dkey, dvalue."""
        (query, key, value, _), g["context"] = c["operands"], dcontext
        dropped, _ = c["weights_dropout"]
        # [6'] weights, value: context = weights V
        dweights = g["weights"] = self.weights_dropout.backward(
            dcontext @ value.mT, c["weights_dropout"])
        dvalue = dropped.mT @ dcontext
        # [5'] scores: weights = softmax(scores), 0 where masked
        dscores = g["scores"] = self.softmax_backward(dweights, c)
        # [4'] query, key: scores = Q Kᵀ / √d_k
        dquery, dkey = self.score_backward(dscores, query, key, c, g)
        return dquery, dkey, dvalue

    def softmax_backward(self, dweights, c):
        """From dweights [B H T S]: dscores."""
        return softmax_backward(dweights, c["weights"])

    def score_backward(self, dscores, query, key, c, g):
        """From dscores [B H T S]: dquery, dkey."""
        return (dscores @ key / self.divisor,
                dscores.mT @ query / self.divisor)

    def project_backward(self, dquery, dkey, dvalue, c, g):
        """From the heads' gradients: dx, dmemory."""
        x, memory = c["inputs"]
        g |= {"query": dquery, "key": dkey, "value": dvalue}
        # [3'] memory, W_V, b_V: value = memory W_V + b_V, split into heads
        dmemory, gradients = self.value.backward(self.merge(dvalue), memory)
        g |= under("value", gradients)
        # [2'] memory, W_K, b_K: key = memory W_K + b_K, split into heads
        dmemory_k, gradients = self.key.backward(self.merge(dkey), memory)
        g |= under("key", gradients)
        # [1'] x, W_Q, b_Q: query = x W_Q + b_Q, split into heads
        dx, gradients = self.query.backward(self.merge(dquery), x)
        g |= under("query", gradients)
        return dx, dmemory + dmemory_k
