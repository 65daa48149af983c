"""Attention: Keras' own layer, with its steps recorded."""

import math

import keras
import ml_dtypes
import numpy as np
from keras import ops

from contract import checks
from contract.schema import BIASED
from contract.trace import tap
from impl_keras.dropout import Dropout
from impl_keras.relative import RELATIVES, NoRelative
from impl_keras.rotary import ROTARIES, NoRotary


def softmax(x):
    """exp(x) / Σ exp(x) over the last axis, shifted so nothing overflows."""
    return ops.softmax(x, axis=-1)


def masked_softmax(scores, mask):
    """Softmax over the keys that ``mask`` allows; every other weight is 0."""
    lowest = ml_dtypes.finfo(keras.backend.standardize_dtype(scores.dtype)).min
    lowest = ops.convert_to_tensor(lowest, scores.dtype)
    return ops.where(mask, softmax(ops.where(mask, scores, lowest)), 0)


def in_float32(x):
    """x rounded to float32; what has 16 bits is widened to it."""
    wide = keras.backend.result_type(x.dtype, "float32")
    return ops.cast(ops.cast(x, "float32"), wide)


def rounded_softmax(scores, mask):
    """masked_softmax, its scores and its weights rounded to float32 (R46)."""
    weights = masked_softmax(in_float32(scores), mask)
    return ops.cast(in_float32(weights), scores.dtype)


SOFTMAXES = {"none": masked_softmax, "float32": rounded_softmax}


def root(d_k):
    """√d_k: scores of a query and a key of variance 1 have variance 1."""
    return math.sqrt(d_k)


def one(d_k):
    """1, as in T5, whose first kernels are the smaller for it (R42)."""
    return 1


DIVISORS = {"root": root, "none": one}


def shared(x, times):
    """Give each head to ``times`` heads of queries: [B G S K] to [B H S K].

    Heads of queries that share one stand side by side (R43).
    """
    b, g, s, k = x.shape
    x = ops.broadcast_to(x[:, :, None], (b, g, times, s, k))
    return ops.reshape(x, (b, g * times, s, k))


def scaled_dot_product_attention(
        query, key, value, bias, mask, divisor, softmax, dropout, owner):
    """Equation 1; its steps are recorded as ``owner``'s. [B H T K].

    Written out for readers and for fast/; MultiHeadAttention uses Keras'.
    """
    checks.mask(mask, (*query.shape[:-1], key.shape[-2]))
    # [1] scores [B H T S]: Q Kᵀ / √d_k + bias  (eq. 1, R12, R45)
    scores = tap(owner, "scores", query @ ops.swapaxes(key, -1, -2)
                 / divisor + bias)
    # [2] weights [B H T S]: softmax over S; 0 where masked  (eq. 1, R2, R46)
    weights = tap(owner, "weights", softmax(scores, mask))
    # [3] context [B H T K]: weights V  (eq. 1)
    context = tap(owner, "context", dropout(weights) @ value)
    return context


class SingleHeadAttention(keras.layers.Layer):
    """One head without biases, batch or mask, for the first lessons."""

    def __init__(self, d_model):
        super().__init__()
        self.built = True  # keras: nothing of its own to build
        self.query = keras.layers.Dense(d_model, use_bias=False)
        self.key = keras.layers.Dense(d_model, use_bias=False)
        self.value = keras.layers.Dense(d_model, use_bias=False)

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


class MultiHeadAttention(keras.layers.MultiHeadAttention):
    """H heads at once. Self-attention when ``memory`` is ``x``.

    The maths is that of Keras 3.15.1: the projections query_dense, key_dense,
    value_dense and output_dense, and ``_compute_attention``. It overrides

    - ``call``, so that a cache can come between the two, and every step can
      be recorded. Keras' own does the same after merging masks;
    - ``_masked_softmax``, to add a bias to scores, to round to float32 where
      the config says so, to record scores and weights, and to drop weights;
    - ``build``, since Keras' own gives all four projections a bias or none,
      and as many heads to keys as to queries, and ``compute_output_spec``;
      both take call's arguments.
    """

    def __init__(self, config, kind):
        super().__init__(config.n_heads, config.d_k)
        self.d_k, self.times = config.d_k, config.n_heads // config.kv_heads
        self.heads = {"query": config.n_heads, "key": config.kv_heads,
                      "value": config.kv_heads}
        self.biased = BIASED[config.attention_bias]
        self.divisor = DIVISORS[config.attention_scale](config.d_k)
        self.rounding = config.softmax_rounding
        Rotary = ROTARIES.get((config.positions, kind), NoRotary)
        self.query_rotary, self.key_rotary = Rotary(config), Rotary(config)
        self.relative = RELATIVES.get(
            (config.positions, kind), NoRelative)(config)
        # keras: its own is a Python float, which reaches float64 by float32.
        self._inverse_sqrt_key_dim = np.float64(1 / self.divisor)
        self.weights_dropout = Dropout(config.dropout)
        # keras: else a mask given by name would stick to the output.
        self.supports_masking = False

    def build(self, x_shape, memory_shape):
        """Make the sub-layers, as Keras' own but for biases and heads."""
        self._query_dense = self._projected("query", x_shape)
        self._key_dense = self._projected("key", memory_shape)
        self._value_dense = self._projected("value", memory_shape)
        self._output_dense = keras.layers.EinsumDense(
            "abcd,cde->abe", (None, x_shape[-1]),
            bias_axes="e" if "output" in self.biased else None,
            name="attention_output", **self._get_common_kwargs_for_sublayer())
        self._output_dense.build((None, None, self.num_heads, self.d_k))
        self._build_attention(4)

    def _projected(self, name, shape):
        """The sub-layer of a name, for inputs of a shape."""
        dense = keras.layers.EinsumDense(
            "abc,cde->abde", (None, self.heads[name], self.d_k),
            bias_axes="de" if name in self.biased else None, name=name,
            **self._get_common_kwargs_for_sublayer())
        dense.build(shape)
        return dense

    def compute_output_spec(self, x, memory, mask, cache):
        """What call returns (keras: as its own, but for the arguments)."""
        return keras.KerasTensor(x.shape, self.compute_dtype)

    def split(self, x):
        """See Keras' [B T H K] as [B H T K]."""
        return ops.swapaxes(x, 1, 2)

    def merge(self, x):
        """Give Keras its [B T H K] back: [B H T K] to [B T H K]."""
        return ops.swapaxes(x, 1, 2)

    def _masked_softmax(self, scores, mask):
        # keras: calls this from its own _compute_attention, and hands on what
        # it was given as a mask, with which the bias comes.
        mask, bias = mask
        # Steps 1 and 2 of scaled_dot_product_attention.
        scores = tap(self, "scores", scores + bias)
        softmaxes = {**SOFTMAXES, "none": super()._masked_softmax}
        weights = tap(
            self, "weights", softmaxes[self.rounding](scores, mask))
        return self.weights_dropout(weights)

    def call(self, x, memory, mask, cache):
        """Let x [B T D] attend to memory [B S D] where mask allows."""
        # [1] query [B H T K]: x W_Q + b_Q, split into heads  (§3.2.2, R14)
        query = tap(self, "query", self.split(self.query_dense(x)))
        # [2] key [B G S K]: memory W_K + b_K, split into heads  (§3.2.2, R43)
        key = tap(self, "key", self.split(self.key_dense(memory)))
        # [3] value [B G S K]: memory W_V + b_V, split into heads  (§3.2.2, R43)
        value = tap(self, "value", self.split(self.value_dense(memory)))
        start = 0 if cache is None else cache.written
        query = self.query_rotary(query, start=start)
        key = self.key_rotary(key, start=start)
        if cache is not None:
            key, value = cache.extend(key, value)
        bias = self.relative(query, key, start=start)
        key, value = shared(key, self.times), shared(value, self.times)
        checks.mask(mask, (*query.shape[:-1], key.shape[-2]))
        # keras: if its weights are asked for, it takes another path, on
        # which the weights of a fully masked row are 0 (R2).
        context, _ = self._compute_attention(
            self.merge(query), self.merge(key), self.merge(value),
            (mask, bias), return_attention_scores=True)
        # Step 3 of scaled_dot_product_attention.
        context = tap(self, "context", self.split(context))
        # [4] output [B T D]: concatenated heads times W_O, plus b_O  (§3.2.2)
        output = tap(self, "output", self.output_dense(self.merge(context)))
        return output
