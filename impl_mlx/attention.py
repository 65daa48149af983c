"""Attention (section 3.2): a mean of values, weighted by how keys match.

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V                      (eq. 1)

MLX's own call has its softmax in float32. What other systems change is in
dialects/attention.py.
"""

import math

import mlx.core as mx
import mlx.nn as nn

from transformer_contract import checks
from transformer_contract.trace import tap
from impl_mlx.dropout import Dropout
from impl_mlx.exact import exp
from impl_mlx.linear import Linear


def softmax(x):
    """exp(x) / Σ exp(x) over the last axis, shifted so nothing overflows."""
    # mlx: mx.softmax of float64 has float32's digits, and sums 16-bit
    # numbers in 16 bits
    e = exp(x - mx.stop_gradient(mx.max(x, axis=-1, keepdims=True)))
    return e / mx.sum(e, axis=-1, keepdims=True)


def masked_softmax(scores, mask):
    """Softmax over the keys that ``mask`` allows; every other weight is 0.

    In a row that is masked as a whole all weights are 0 (R2).
    """
    lowest = mx.finfo(scores.dtype).min
    return mx.where(mask, softmax(mx.where(mask, scores, lowest)), 0)


class MultiHeadAttention(nn.Module):
    """H heads of width K = D/H at once. Self-attention if ``memory`` is ``x``.

    Equation 1 knows no positions: ``start`` is for dialects alone.
    """

    #: What makes weights of scores and a mask; a dialect has its own.
    softmax = staticmethod(masked_softmax)

    def __init__(self, config):
        super().__init__()
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

    def project(self, x, memory, start):
        """Query, key and value of each head; x's first position is start."""
        # [1] query [B H T K]: x W_Q + b_Q, split into heads  (§3.2.2, R14)
        query = tap(self, "query", self.split(self.query(x)))
        # [2] key [B H S K]: memory W_K + b_K, split into heads  (§3.2.2)
        key = tap(self, "key", self.split(self.key(memory)))
        # [3] value [B H S K]: memory W_V + b_V, split into heads  (§3.2.2)
        value = tap(self, "value", self.split(self.value(memory)))
        return query, key, value

    def score(self, query, key, start):
        """How well each query matches each key: Q Kᵀ / √d_k, [B H T S]."""
        return query @ key.mT / self.divisor

    def attend(self, query, key, value, mask, start):
        """Equation 1: the context, [B H T K]."""
        checks.mask(mask, (*query.shape[:-1], key.shape[-2]))
        # [4] scores [B H T S]: Q Kᵀ / √d_k  (eq. 1, R12)
        scores = tap(self, "scores", self.score(query, key, start))
        # [5] weights [B H T S]: softmax over S; 0 where masked  (eq. 1, R2)
        weights = tap(self, "weights", self.softmax(scores, mask))
        dropped = self.weights_dropout(weights)
        # [6] context [B H T K]: weights V  (eq. 1)
        context = tap(self, "context", dropped @ value)
        return context

    def __call__(self, x, memory, mask, cache):
        """Let x [B T D] attend to memory [B S D] where mask allows."""
        start = 0 if cache is None else cache.written
        query, key, value = self.project(x, memory, start)
        if cache is not None:
            key, value = cache.extend(key, value)
        context = self.attend(query, key, value, mask, start)
        # [7] output [B T D]: concatenated heads times W_O, plus b_O  (§3.2.2)
        output = tap(self, "output", self.output(self.merge(context)))
        return output
