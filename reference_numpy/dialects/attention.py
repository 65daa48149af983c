"""What other systems change in attention; each method is the paper's, changed.

Llama shares heads of keys and values, and turns queries and keys by their
position. T5 does not divide scores, and adds a number to them by distance.
"""

import numpy as np

from transformer_contract.schema import BIASED
from reference_numpy.attention import (
    MultiHeadAttention, masked_softmax, softmax_backward)
from reference_numpy.dialects.linear import LINEARS
from reference_numpy.dialects.relative import RELATIVES
from reference_numpy.dialects.rotary import ROTARIES


def in_float32(x):
    """x rounded to float32; what has 16 bits is widened to it."""
    wide = np.result_type(x.dtype, np.float32)
    return x.astype(np.float32).astype(wide)


def rounded_softmax(scores, mask):
    """masked_softmax, its scores and its weights rounded to float32 (R46)."""
    weights = masked_softmax(in_float32(scores), mask)
    return in_float32(weights).astype(scores.dtype)


def rounded_softmax_backward(dweights, scores, mask):
    """The gradient of the scores; it is rounded wherever its number was."""
    exact = masked_softmax(in_float32(scores), mask)
    dscores = softmax_backward(in_float32(dweights), exact)
    return in_float32(dscores).astype(scores.dtype)


SOFTMAXES = {"none": masked_softmax, "float32": rounded_softmax}


def shared(x, times):
    """Give each head to ``times`` heads of queries: [B G S K] to [B H S K].

    Query heads h·times to (h + 1)·times - 1 share key head h (R43).
    """
    b, g, s, k = x.shape
    x = np.broadcast_to(x[:, :, None], (b, g, times, s, k), subok=True)
    return x.reshape(b, g * times, s, k)


def shared_backward(dy, times):
    """From dy [B H S K]: dx [B G S K], a sum over those that share a head."""
    b, h, s, k = dy.shape
    return dy.reshape(b, h // times, times, s, k).sum(axis=2)


class DialectAttention(MultiHeadAttention):
    """Other widths, biases, scales and roundings; heads that are shared.

    Parameters: ``query``, with ``kernel`` [D H·K] and ``bias`` [H·K]; ``key``
    and ``value``, [D G·K] and [G·K]; ``output``, [H·K D] and [D].
    ``config.attention_bias`` says which of them have a bias (R42).
    """

    def __init__(self, config, kind):
        super().__init__(config)
        d, inside = config.d_model, config.n_heads * config.d_k
        grouped = config.kv_heads * config.d_k
        biased = BIASED[config.attention_bias]
        self.query = LINEARS["query" in biased](d, inside)
        self.key = LINEARS["key" in biased](d, grouped)
        self.value = LINEARS["value" in biased](d, grouped)
        self.output = LINEARS["output" in biased](inside, d)
        self.times = config.n_heads // config.kv_heads
        if config.attention_scale == "none":
            self.divisor = 1  # T5 draws smaller kernels instead (R42)
        self.rounds = config.softmax_rounding == "float32"
        self.softmax = SOFTMAXES[config.softmax_rounding]

    def attend(self, query, key, value, mask, start, c):
        """As the paper's, of heads of keys that queries share."""
        key, value = shared(key, self.times), shared(value, self.times)
        return super().attend(query, key, value, mask, start, c)

    def attend_backward(self, dcontext, c, g):
        """As the paper's; then the sum over those that share a head."""
        dquery, dkey, dvalue = super().attend_backward(dcontext, c, g)
        return (dquery, shared_backward(dkey, self.times),
                shared_backward(dvalue, self.times))

    def softmax_backward(self, dweights, c):
        """As the paper's, or rounded."""
        if not self.rounds:
            return super().softmax_backward(dweights, c)
        mask = c["operands"][3]
        return rounded_softmax_backward(dweights, c["scores"], mask)


class RotaryAttention(DialectAttention):
    """Queries and keys turned by their position (R44)."""

    def __init__(self, config, kind):
        super().__init__(config, kind)
        self.query_rotary = ROTARIES[config.positions](config)
        self.key_rotary = ROTARIES[config.positions](config)

    def project(self, x, memory, start, c):
        """As the paper's, then turned."""
        query, key, value = super().project(x, memory, start, c)
        query, c["query_rotary"] = self.query_rotary.forward(query, start)
        key, c["key_rotary"] = self.key_rotary.forward(key, start)
        return query, key, value

    def project_backward(self, dquery, dkey, dvalue, c, g):
        """Turned back, then as the paper's."""
        dkey, g["key_rotary"] = self.key_rotary.backward(
            dkey, c["key_rotary"])
        dquery, g["query_rotary"] = self.query_rotary.backward(
            dquery, c["query_rotary"])
        return super().project_backward(dquery, dkey, dvalue, c, g)


class RelativeAttention(DialectAttention):
    """A number added to each score, by distance (R45).

    Parameters: those of ``relative``, besides.
    """

    def __init__(self, config, kind):
        super().__init__(config, kind)
        self.relative = RELATIVES[kind](config)

    def score(self, query, key, start, c):
        """As the paper's, plus the number of each distance."""
        scores = super().score(query, key, start, c)
        bias, c["relative"] = self.relative.forward(query, key, start)
        return scores + bias

    def score_backward(self, dscores, query, key, c, g):
        """As the paper's; the table of numbers has a gradient too."""
        g["relative"] = self.relative.backward(dscores, c["relative"])
        return super().score_backward(dscores, query, key, c, g)
