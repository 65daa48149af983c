"""One head of attention, for the first lessons.

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V                      (eq. 1)

It has neither biases nor a batch or mask; attention.py has all of them.
"""

import math

from keras import ops

from transformer_contract.trace import tap
from impl_keras.attention import softmax
from impl_keras.whole import Layer, dense


class SingleHeadAttention(Layer):
    """One head without biases, batch or mask, for the first lessons."""

    def __init__(self, d_model):
        super().__init__()
        self.query = dense(d_model, d_model, use_bias=False)
        self.key = dense(d_model, d_model, use_bias=False)
        self.value = dense(d_model, d_model, use_bias=False)

    def call(self, x):
        """Let x [T D] attend to itself."""
        # [1] query [T D]: x W_Q
        query = tap(self, "query", self.query(x))
        # [2] key [T D]: x W_K
        key = tap(self, "key", self.key(x))
        # [3] value [T D]: x W_V
        value = tap(self, "value", self.value(x))
        # [4] raw_scores [T T]: Q Kᵀ
        raw_scores = tap(self, "raw_scores", query @ ops.swapaxes(key, -1, -2))
        # [5] scores [T T]: Q Kᵀ / √d_k  (eq. 1)
        scores = tap(self, "scores", raw_scores / math.sqrt(query.shape[-1]))
        # [6] weights [T T]: softmax over keys  (eq. 1)
        weights = tap(self, "weights", softmax(scores))
        # [7] context [T D]: weights V  (eq. 1)
        context = tap(self, "context", weights @ value)
        return context
