"""What other systems change in attention; each method is the paper's, changed.

Llama shares heads of keys and values, and turns queries and keys by their
position. T5 does not divide scores, and adds a number to them by distance.
"""

import jax.numpy as jnp

from transformer_contract.schema import BIASED
from impl_jax.attention import MultiHeadAttention, masked_softmax
from impl_jax.dialects.relative import RELATIVES
from impl_jax.dialects.rotary import ROTARIES
from impl_jax.linear import Linear


def in_float32(x):
    """x rounded to float32; what has 16 bits is widened to it."""
    wide = jnp.promote_types(x.dtype, jnp.float32)
    return x.astype(jnp.float32).astype(wide)


def rounded_softmax(scores, mask):
    """masked_softmax, its scores and its weights rounded to float32 (R46)."""
    weights = masked_softmax(in_float32(scores), mask)
    return in_float32(weights).astype(scores.dtype)


SOFTMAXES = {"none": masked_softmax, "float32": rounded_softmax}


def shared(x, times):
    """Give each head to ``times`` heads of queries: [B G S K] to [B H S K].

    Query heads h·times to (h + 1)·times - 1 share key head h (R43).
    """
    b, g, s, k = x.shape
    x = jnp.broadcast_to(x[:, :, None], (b, g, times, s, k))
    return x.reshape(b, g * times, s, k)


class DialectAttention(MultiHeadAttention):
    """Other widths, biases, scales and roundings; heads that are shared.

    ``config.attention_bias`` says which linear maps have a bias (R42).
    """

    def __init__(self, config, kind, *, rngs):
        super().__init__(config, rngs=rngs)
        d, inside = config.d_model, config.n_heads * config.d_k
        grouped = config.kv_heads * config.d_k
        biased = BIASED[config.attention_bias]
        self.query = Linear(d, inside, use_bias="query" in biased, rngs=rngs)
        self.key = Linear(d, grouped, use_bias="key" in biased, rngs=rngs)
        self.value = Linear(d, grouped, use_bias="value" in biased, rngs=rngs)
        self.output = Linear(
            inside, d, use_bias="output" in biased, rngs=rngs)
        self.times = config.n_heads // config.kv_heads
        if config.attention_scale == "none":
            self.divisor = 1  # T5 draws smaller kernels instead (R42)
        self.softmax = SOFTMAXES[config.softmax_rounding]

    def attend(self, query, key, value, mask, start):
        """As the paper's, of heads of keys that queries share."""
        key, value = shared(key, self.times), shared(value, self.times)
        return super().attend(query, key, value, mask, start)


class RotaryAttention(DialectAttention):
    """Queries and keys turned by their position (R44)."""

    def __init__(self, config, kind, *, rngs):
        super().__init__(config, kind, rngs=rngs)
        self.query_rotary = ROTARIES[config.positions](config, rngs=rngs)
        self.key_rotary = ROTARIES[config.positions](config, rngs=rngs)

    def project(self, x, memory, start):
        """As the paper's, then turned."""
        query, key, value = super().project(x, memory, start)
        return self.query_rotary(query, start), self.key_rotary(
            key, start), value


class RelativeAttention(DialectAttention):
    """A number added to each score, by distance (R45).

    Parameters: those of ``relative``, besides.
    """

    def __init__(self, config, kind, *, rngs):
        super().__init__(config, kind, rngs=rngs)
        self.relative = RELATIVES[kind](config, rngs=rngs)

    def score(self, query, key, start):
        """As the paper's, plus the number of each distance."""
        scores = super().score(query, key, start)
        return scores + self.relative(query, key, start)
