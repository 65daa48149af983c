"""Attention (section 3.2): a mean of values, weighted by how keys match.

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V                      (eq. 1)

It is Keras' own layer, with its steps recorded. What other systems change is in
dialects/attention.py.
"""

import math

import keras
import ml_dtypes
import numpy as np
from keras import ops

from transformer_contract import checks
from transformer_contract.trace import tap
from impl_keras.dropout import Dropout
from impl_keras.whole import glorot


def softmax(x):
    """exp(x) / Σ exp(x) over the last axis, shifted so nothing overflows."""
    return ops.softmax(x, axis=-1)


def masked_softmax(scores, mask):
    """Softmax over the keys that ``mask`` allows; every other weight is 0 (R2).

    Keras' own does so too; this one is for dialects/ and fast/.
    """
    lowest = ml_dtypes.finfo(keras.backend.standardize_dtype(scores.dtype)).min
    lowest = ops.convert_to_tensor(lowest, scores.dtype)
    return ops.where(mask, softmax(ops.where(mask, scores, lowest)), 0)


class MultiHeadAttention(keras.layers.MultiHeadAttention):
    """H heads of width K = D/H at once. Self-attention if ``memory`` is ``x``.

    Equation 1 knows no positions: ``start`` is for dialects alone.

    The maths is that of Keras 3.15.1: the projections query_dense, key_dense,
    value_dense and output_dense, and ``_compute_attention``. It overrides

    - ``call``, so that a cache can come between the two, and every step can
      be recorded. Keras' own does the same after merging masks;
    - ``_masked_softmax``, to record scores and weights, and to drop weights;
    - ``compute_output_spec``, which takes call's arguments.
    """

    def __init__(self, config):
        super().__init__(
            config.n_heads, config.d_k,
            kernel_initializer=glorot(config.d_model, config.d_model))
        self.d_k, self.divisor = config.d_k, math.sqrt(config.d_k)
        # keras: its own is a Python float, which reaches float64 by float32.
        self._inverse_sqrt_key_dim = np.float64(1 / self.divisor)
        self.weights_dropout = Dropout(config.dropout)
        # keras: else a mask given by name would stick to the output.
        self.supports_masking = False
        with keras.name_scope(self.name, caller=self):
            self.make_projections(config)
        self.built = True

    def make_projections(self, config):
        """All four, [D D] each; Keras would on a first call."""
        shape = (None, None, config.d_model)
        super().build(shape, shape)

    def compute_output_spec(self, x, memory, mask, cache):
        """What call returns (keras: as its own, but for the arguments)."""
        return keras.KerasTensor(x.shape, self.compute_dtype)

    def heads_first(self, x):
        """See Keras' [B T H K] as [B H T K]."""
        return ops.swapaxes(x, 1, 2)

    def heads_last(self, x):
        """Give Keras its [B T H K] back: [B H T K] to [B T H K]."""
        return ops.swapaxes(x, 1, 2)

    def project(self, x, memory, start):
        """Query, key and value of each head; x's first position is start."""
        # [1] query [B H T K]: x W_Q + b_Q, split into heads  (§3.2.2, R14)
        query = tap(self, "query", self.heads_first(self.query_dense(x)))
        # [2] key [B H S K]: memory W_K + b_K, split into heads  (§3.2.2)
        key = tap(self, "key", self.heads_first(self.key_dense(memory)))
        # [3] value [B H S K]: memory W_V + b_V, split into heads  (§3.2.2)
        value = tap(self, "value", self.heads_first(self.value_dense(memory)))
        return query, key, value

    def softmax(self, scores, mask):
        """masked_softmax, as Keras has it."""
        return super()._masked_softmax(scores, mask)

    def _masked_softmax(self, scores, mask):
        # keras: calls this from its own _compute_attention
        # [4] scores [B H T S]: Q Kᵀ / √d_k  (eq. 1, R12)
        scores = tap(self, "scores", scores)
        # [5] weights [B H T S]: softmax over S; 0 where masked  (eq. 1, R2)
        weights = tap(self, "weights", self.softmax(scores, mask))
        return self.weights_dropout(weights)

    def attend(self, query, key, value, mask, start):
        """Equation 1: the context, [B H T K]."""
        # keras: asked for its weights, it takes the path on which those of
        # a fully masked row are 0 (R2).
        context, _ = self._compute_attention(
            self.heads_last(query), self.heads_last(key),
            self.heads_last(value), mask, return_attention_scores=True)
        # [6] context [B H T K]: weights V  (eq. 1)
        context = tap(self, "context", self.heads_first(context))
        return context

    def call(self, x, memory, mask, cache):
        """Let x [B T D] attend to memory [B S D] where mask allows."""
        start = 0 if cache is None else cache.written
        query, key, value = self.project(x, memory, start)
        if cache is not None:
            key, value = cache.extend(key, value)
        # keras: not in attend, to which a dialect gives more than a mask
        checks.mask(mask, (*query.shape[:-1], key.shape[-2]))
        context = self.attend(query, key, value, mask, start)
        # [7] output [B T D]: concatenated heads times W_O, plus b_O  (§3.2.2)
        output = tap(self, "output", self.output_dense(
            self.heads_last(context)))
        return output
