"""Attention: a mean of values, weighted by how well queries match keys.

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V                      (eq. 1)

Multi-head attention does so in H subspaces of d_k = d_model / H features at
once (section 3.2.2). Masks say True where a query may attend (R1).
"""

import math

import numpy as np

from contract import checks
from contract.schema import BIASED
from reference_numpy.dropout import Dropout
from reference_numpy.linear import LINEARS, LinearWithoutBias, under
from reference_numpy.relative import RELATIVES, NoRelative
from reference_numpy.rotary import ROTARIES, NoRotary


def softmax(x):
    """exp(x) / Σ exp(x) over the last axis, shifted so nothing overflows."""
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def masked_softmax(scores, mask):
    """Softmax over the keys that ``mask`` allows; every other weight is 0.

    A masked score becomes the most negative finite number, whose exponential
    is 0 beside any other. In a fully masked row all scores are then equal, and
    softmax would give every key the same weight; so weights are set to 0 where
    the mask is False once more, and the row's context is 0 (R2).
    """
    lowest = np.finfo(scores.dtype).min
    return np.where(mask, softmax(np.where(mask, scores, lowest)), 0)


def in_float32(x):
    """x rounded to float32; what has 16 bits is widened to it."""
    wide = np.result_type(x.dtype, np.float32)
    return x.astype(np.float32).astype(wide)


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
    x = np.broadcast_to(x[:, :, None], (b, g, times, s, k), subok=True)
    return x.reshape(b, g * times, s, k)


def shared_backward(dy, times):
    """From dy [B H S K]: dx [B G S K], a sum over those that share a head."""
    b, h, s, k = dy.shape
    return dy.reshape(b, h // times, times, s, k).sum(axis=2)


def softmax_backward(dweights, weights):
    """The gradient of the scores, from that of their softmax.

    A weight grows at the cost of all the others: its score's gradient is the
    weight times how much its own gradient is above the weighted mean. Masked
    weights are 0, and so are the gradients of their scores.
    """
    mean = np.sum(dweights * weights, axis=-1, keepdims=True)
    return weights * (dweights - mean)


def masked_softmax_backward(dweights, weights, scores, mask):
    """The gradient of the scores, from that of their weights."""
    return softmax_backward(dweights, weights)


def rounded_softmax_backward(dweights, weights, scores, mask):
    """The same; a gradient is rounded wherever its number was."""
    exact = masked_softmax(in_float32(scores), mask)
    dscores = softmax_backward(in_float32(dweights), exact)
    return in_float32(dscores).astype(scores.dtype)


SOFTMAXES_BACKWARD = {"none": masked_softmax_backward,
                      "float32": rounded_softmax_backward}


def scaled_dot_product_attention(
        query, key, value, bias, mask, divisor, softmax, dropout, c):
    """Equation 1 for any number of leading axes.

    Args:
        query: [B H T K].
        key: [B H S K].
        value: [B H S K].
        bias: what is added to scores, [H T S], or 0.
        mask: bool, each axis 1 or that of [B H T S].
        divisor: what scores are divided by, √d_k.
        softmax: one of SOFTMAXES.
        dropout: the weights' Dropout (R15).
        c: the cache that the steps are written to.

    Returns:
        The context, [B H T K].
    """
    checks.mask(mask, (*query.shape[:-1], key.shape[-2]))
    c["operands"] = (query, key, value, mask)
    # [1] scores [B H T S]: Q Kᵀ / √d_k + bias  (eq. 1, R12, R45)
    scores = c["scores"] = query @ key.mT / divisor + bias
    # [2] weights [B H T S]: softmax over S; 0 where masked  (eq. 1, R2, R46)
    weights = c["weights"] = softmax(scores, mask)
    dropped, c["weights_dropout"] = dropout.forward(weights)
    # [3] context [B H T K]: weights V  (eq. 1)
    context = c["context"] = dropped @ value
    return context


def scaled_dot_product_attention_backward(
        dcontext, divisor, softmax_backward, dropout, c, g):
    """From dcontext [B H T K]: dquery, dkey, dvalue; steps are put into g."""
    query, key, value, mask = c["operands"]
    g["context"] = dcontext
    dropped, _ = c["weights_dropout"]
    # [3'] weights, value: context = weights V
    dweights = g["weights"] = dropout.backward(
        dcontext @ value.mT, c["weights_dropout"])
    dvalue = dropped.mT @ dcontext
    # [2'] scores: weights = softmax(scores), 0 where masked
    dscores = g["scores"] = softmax_backward(
        dweights, c["weights"], c["scores"], mask)
    # [1'] query, key: scores = Q Kᵀ / √d_k + bias
    dquery = dscores @ key / divisor
    dkey = dscores.mT @ query / divisor
    return dquery, dkey, dvalue


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


class MultiHeadAttention:
    """H heads at once. Self-attention when ``memory`` is ``x``.

    Parameters: ``query``, with ``kernel`` [D H·K] and ``bias`` [H·K]; ``key``
    and ``value``, [D G·K] and [G·K]; ``output``, [H·K D] and [D]; which have a
    bias the config says (R42). Columns of the first three are grouped by head:
    head h owns columns h·K to (h + 1)·K (R14). Those of ``relative``.

    It knows of positions, if the config says so, where ``kind`` is
    "bidirectional" or "causal"; where it is "cross" it does not (R44, R45).
    """

    def __init__(self, config, kind):
        self.d_k, self.times = config.d_k, config.n_heads // config.kv_heads
        d, inside = config.d_model, config.n_heads * config.d_k
        grouped = config.kv_heads * config.d_k
        biased = BIASED[config.attention_bias]
        self.query = LINEARS["query" in biased](d, inside)
        self.key = LINEARS["key" in biased](d, grouped)
        self.value = LINEARS["value" in biased](d, grouped)
        self.output = LINEARS["output" in biased](inside, d)
        self.divisor = DIVISORS[config.attention_scale](config.d_k)
        self.softmax = SOFTMAXES[config.softmax_rounding]
        self.softmax_backward = SOFTMAXES_BACKWARD[config.softmax_rounding]
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

    def forward(self, x, memory, mask, cache):
        """Let x [B T D] attend to memory [B S D] where mask allows.

        With a cache, ``memory`` is a single new token, and x also attends to
        the keys and values that the cache has kept of those before it; without
        one, ``cache`` is None.
        """
        c = {"inputs": (x, memory, mask)}
        # [1] query [B H T K]: x W_Q + b_Q, split into heads  (§3.2.2, R14)
        query = c["query"] = self.split(self.query(x))
        # [2] key [B G S K]: memory W_K + b_K, split into heads  (§3.2.2, R43)
        key = c["key"] = self.split(self.key(memory))
        # [3] value [B G S K]: memory W_V + b_V, split into heads  (§3.2.2, R43)
        value = c["value"] = self.split(self.value(memory))
        start = 0 if cache is None else cache.written
        query, c["query_rotary"] = self.query_rotary.forward(query, start)
        key, c["key_rotary"] = self.key_rotary.forward(key, start)
        if cache is not None:
            key, value = cache.extend(key, value)
        bias, c["relative"] = self.relative.forward(query, key, start)
        key, value = shared(key, self.times), shared(value, self.times)
        context = scaled_dot_product_attention(
            query, key, value, bias, mask, self.divisor, self.softmax,
            self.weights_dropout, c)
        # [4] output [B T D]: concatenated heads times W_O, plus b_O  (§3.2.2)
        output = c["output"] = self.output(self.merge(context))
        return output, c

    def backward(self, doutput, c):
        """From doutput [B T D]: dx, dmemory and g.

        In self-attention x and memory are one array, whose gradient is the sum
        of the two.
        """
        (x, memory, _), g = c["inputs"], {"output": doutput}
        # [4'] context, W_O, b_O: output = concatenated heads W_O + b_O
        dmerged, gradients = self.output.backward(
            doutput, self.merge(c["context"]))
        g |= under("output", gradients)
        dquery, dkey, dvalue = scaled_dot_product_attention_backward(
            self.split(dmerged), self.divisor, self.softmax_backward,
            self.weights_dropout, c, g)
        g["relative"] = self.relative.backward(g["scores"], c["relative"])
        dvalue = shared_backward(dvalue, self.times)
        dkey, g["key_rotary"] = self.key_rotary.backward(
            shared_backward(dkey, self.times), c["key_rotary"])
        dquery, g["query_rotary"] = self.query_rotary.backward(
            dquery, c["query_rotary"])
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
        return dx, dmemory + dmemory_k, g
