"""What other systems change in attention; each method is the paper's, changed.

Llama shares heads of keys and values, and turns queries and keys by their
position. T5 does not divide scores, and adds a number to them by distance.
"""

import math

import keras
import numpy as np
from keras import ops

from transformer_contract.schema import BIASED
from impl_keras.attention import MultiHeadAttention, masked_softmax
from impl_keras.dialects.relative import RELATIVES
from impl_keras.dialects.rotary import ROTARIES
from impl_keras.whole import glorot


def in_float32(x):
    """x rounded to float32; what has 16 bits is widened to it."""
    wide = keras.backend.result_type(x.dtype, "float32")
    return ops.cast(ops.cast(x, "float32"), wide)


def rounded_softmax(scores, mask):
    """masked_softmax, its scores and its weights rounded to float32 (R46)."""
    weights = masked_softmax(in_float32(scores), mask)
    return ops.cast(in_float32(weights), scores.dtype)


def shared(x, times):
    """Give each head to ``times`` heads of queries: [B G S K] to [B H S K].

    Query heads h·times to (h + 1)·times - 1 share key head h (R43).
    """
    return x if times == 1 else ops.repeat(x, times, axis=1)


class DialectAttention(MultiHeadAttention):
    """Other widths, biases, scales and roundings; heads that are shared.

    ``config.attention_bias`` says which projections have a bias (R42).
    """

    def __init__(self, config, kind):
        super().__init__(config)
        self.times = config.n_heads // config.kv_heads
        if config.attention_scale == "none":
            self.divisor, self._inverse_sqrt_key_dim = 1, np.float64(1)
        self.rounds = config.softmax_rounding == "float32"

    def make_projections(self, config):
        """All four, as Keras' own but for biases and heads."""
        h, g, d, k = (config.n_heads, config.kv_heads, config.d_model,
                      config.d_k)
        self._query_dense = self.projection(config, "query", (d, h, k))
        self._key_dense = self.projection(config, "key", (d, g, k))
        self._value_dense = self.projection(config, "value", (d, g, k))
        self._output_dense = self.projection(config, "output", (h, k, d))
        self._build_attention(4)

    def projection(self, config, name, shape):
        """The projection of a name, whose kernel has a shape."""
        equation, axes, inputs = (
            ("abcd,cde->abe", "e", shape[:2]) if name == "output"
            else ("abc,cde->abde", "de", shape[:1]))
        outputs, biased = shape[len(inputs):], BIASED[config.attention_bias]
        initial = glorot(math.prod(inputs), math.prod(outputs))
        if name == "query" and config.attention_scale == "none":
            initial.minval /= math.sqrt(config.d_k)  # T5's are smaller (R42)
            initial.maxval /= math.sqrt(config.d_k)
        dense = keras.layers.EinsumDense(
            equation, (None, *outputs), name=name, dtype=self.dtype_policy,
            bias_axes=axes if name in biased else None,
            kernel_initializer=initial)
        dense.build((None, None, *inputs))
        return dense

    def softmax(self, scores, mask):
        """As the paper's, or rounded (R46)."""
        if not self.rounds:
            return super().softmax(scores, mask)
        return rounded_softmax(scores, mask)

    def attend(self, query, key, value, mask, start):
        """As the paper's, of heads of keys that queries share."""
        key, value = shared(key, self.times), shared(value, self.times)
        return super().attend(query, key, value, mask, start)


class RotaryAttention(DialectAttention):
    """Queries and keys turned by their position (R44)."""

    def __init__(self, config, kind):
        super().__init__(config, kind)
        self.query_rotary = ROTARIES[config.positions](config)
        self.key_rotary = ROTARIES[config.positions](config)

    def project(self, x, memory, start):
        """As the paper's, then turned."""
        query, key, value = super().project(x, memory, start)
        query = self.query_rotary(query, start=start)
        key = self.key_rotary(key, start=start)
        return query, key, value


class RelativeAttention(DialectAttention):
    """A number added to each score, by distance (R45).

    Parameters: those of ``relative``, besides.
    """

    def __init__(self, config, kind):
        super().__init__(config, kind)
        self.relative = RELATIVES[kind](config)

    def attend(self, query, key, value, mask, start):
        """As the paper's, with what each distance adds."""
        # keras: its own hands on what it was given as a mask, as it is.
        added = self.relative(query, key, start=start)
        return super().attend(query, key, value, (mask, added), start)

    def _masked_softmax(self, scores, mask):
        mask, added = mask
        return super()._masked_softmax(scores + added, mask)
