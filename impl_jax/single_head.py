"""One head of attention, for the first lessons.

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V                      (eq. 1)

It has neither biases nor a batch or mask; attention.py has all of them.
"""

import math

import jax
from flax import nnx

from transformer_contract.trace import tap
from impl_jax.linear import Linear


class SingleHeadAttention(nnx.Module):
    """One head without biases, batch or mask, for the first lessons."""

    def __init__(self, d_model, *, rngs):
        self.query = Linear(d_model, d_model, use_bias=False, rngs=rngs)
        self.key = Linear(d_model, d_model, use_bias=False, rngs=rngs)
        self.value = Linear(d_model, d_model, use_bias=False, rngs=rngs)

    def __call__(self, x):
        """Let x [T D] attend to itself."""
        # [1] query [T D]: x W_Q
        query = tap(self, "query", self.query(x))
        # [2] key [T D]: x W_K
        key = tap(self, "key", self.key(x))
        # [3] value [T D]: x W_V
        value = tap(self, "value", self.value(x))
        # [4] raw_scores [T T]: Q Kᵀ
        raw_scores = tap(self, "raw_scores", query @ key.mT)
        # [5] scores [T T]: Q Kᵀ / √d_k  (eq. 1)
        scores = tap(self, "scores", raw_scores / math.sqrt(query.shape[-1]))
        # [6] weights [T T]: softmax over keys  (eq. 1)
        weights = tap(self, "weights", jax.nn.softmax(scores, axis=-1))
        # [7] context [T D]: weights V  (eq. 1)
        context = tap(self, "context", weights @ value)
        return context
