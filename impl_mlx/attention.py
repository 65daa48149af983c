"""Attention, written out; MLX's own has its softmax in float32."""

import math

import mlx.core as mx
import mlx.nn as nn

from contract import checks
from contract.schema import BIASED
from contract.trace import tap
from impl_mlx.dropout import Dropout
from impl_mlx.exact import exp
from impl_mlx.relative import RELATIVES, NoRelative
from impl_mlx.rotary import ROTARIES, NoRotary


def softmax(x):
    """exp(x) / Σ exp(x) over the last axis, shifted so nothing overflows."""
    # mlx: mx.softmax is float32's, and sums 16 bits in 16 bits
    e = exp(x - mx.stop_gradient(mx.max(x, axis=-1, keepdims=True)))
    return e / mx.sum(e, axis=-1, keepdims=True)


def masked_softmax(scores, mask):
    """Softmax over the keys that ``mask`` allows; every other weight is 0."""
    lowest = mx.finfo(scores.dtype).min
    return mx.where(mask, softmax(mx.where(mask, scores, lowest)), 0)


def in_float32(x):
    """x rounded to float32; what has 16 bits is widened to it."""
    wide = mx.float64 if x.dtype == mx.float64 else mx.float32
    return x.astype(mx.float32).astype(wide)


def rounded_softmax(scores, mask):
    """masked_softmax, its scores and its weights rounded to float32 (R46)."""
    weights = masked_softmax(in_float32(scores), mask)
    return in_float32(weights).astype(scores.dtype)


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
    x = mx.broadcast_to(x[:, :, None], (b, g, times, s, k))
    return x.reshape(b, g * times, s, k)


def scaled_dot_product_attention(
        query, key, value, bias, mask, divisor, softmax, dropout, owner):
    """Equation 1; its steps are recorded as ``owner``'s. [B H T K]."""
    checks.mask(mask, (*query.shape[:-1], key.shape[-2]))
    # [1] scores [B H T S]: Q Kᵀ / √d_k + bias  (eq. 1, R12, R45)
    scores = tap(owner, "scores", query @ key.mT / divisor + bias)
    # [2] weights [B H T S]: softmax over S; 0 where masked  (eq. 1, R2, R46)
    weights = tap(owner, "weights", softmax(scores, mask))
    # [3] context [B H T K]: weights V  (eq. 1)
    context = tap(owner, "context", dropout(weights) @ value)
    return context


class SingleHeadAttention(nn.Module):
    """One head without biases, batch or mask, for the first lessons."""

    def __init__(self, d_model):
        super().__init__()
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, d_model, bias=False)
        self.value = nn.Linear(d_model, d_model, bias=False)

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
        weights = tap(self, "weights", softmax(scores))
        # [7] context [T D]: weights V  (eq. 1)
        context = tap(self, "context", weights @ value)
        return context


class MultiHeadAttention(nn.Module):
    """H heads at once. Self-attention when ``memory`` is ``x``."""

    def __init__(self, config, kind):
        super().__init__()
        self.d_k, self.times = config.d_k, config.n_heads // config.kv_heads
        d, inside = config.d_model, config.n_heads * config.d_k
        grouped = config.kv_heads * config.d_k
        biased = BIASED[config.attention_bias]
        self.query = nn.Linear(d, inside, bias="query" in biased)
        self.key = nn.Linear(d, grouped, bias="key" in biased)
        self.value = nn.Linear(d, grouped, bias="value" in biased)
        self.output = nn.Linear(inside, d, bias="output" in biased)
        self.divisor = DIVISORS[config.attention_scale](config.d_k)
        self.softmax = SOFTMAXES[config.softmax_rounding]
        Rotary = ROTARIES.get((config.positions, kind), NoRotary)
        self.query_rotary, self.key_rotary = Rotary(config), Rotary(config)
        self.relative = RELATIVES.get(
            (config.positions, kind), NoRelative)(config)
        self.weights_dropout = Dropout(config.dropout)

    def split(self, x):
        """Give each head its features: [B T D] to [B H T K]."""
        return x.reshape(*x.shape[:2], -1, self.d_k).swapaxes(1, 2)

    def merge(self, x):
        """Concatenate the heads: [B H T K] to [B T H·K]."""
        return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)

    def __call__(self, x, memory, mask, cache):
        """Let x [B T D] attend to memory [B S D] where mask allows."""
        # [1] query [B H T K]: x W_Q + b_Q, split into heads  (§3.2.2, R14)
        query = tap(self, "query", self.split(self.query(x)))
        # [2] key [B G S K]: memory W_K + b_K, split into heads  (§3.2.2, R43)
        key = tap(self, "key", self.split(self.key(memory)))
        # [3] value [B G S K]: memory W_V + b_V, split into heads  (§3.2.2, R43)
        value = tap(self, "value", self.split(self.value(memory)))
        start = 0 if cache is None else cache.written
        query = self.query_rotary(query, start)
        key = self.key_rotary(key, start)
        if cache is not None:
            key, value = cache.extend(key, value)
        bias = self.relative(query, key, start)
        key, value = shared(key, self.times), shared(value, self.times)
        context = scaled_dot_product_attention(
            query, key, value, bias, mask, self.divisor, self.softmax,
            self.weights_dropout, self)
        # [4] output [B T D]: concatenated heads times W_O, plus b_O  (§3.2.2)
        output = tap(self, "output", self.output(self.merge(context)))
        return output
