"""Attention that goes over blocks where queries and keys are many.

Scores and weights are then not kept; see fast/blocks.py. It has no dropout, no
rounding and no bias beside the mask; where one of these is wanted, or a cache,
attention is the readable form's.
"""

from contract import checks, dropping
from contract.trace import tap
from impl_keras import attention
from impl_keras.attention import (
    SOFTMAXES, scaled_dot_product_attention, shared)
from impl_keras.fast import blocks, packing
from impl_keras.relative import NoRelative


class MultiHeadAttention(attention.MultiHeadAttention):
    """See impl_keras.attention.

    In training x and memory may be packed; see fast/packing.py.
    """

    def call(self, x, memory, mask, cache):
        """Let x [B T D] attend to memory [B S D] where mask allows."""
        packed = packing.ways(self)
        if not packed and not self.in_blocks(x.shape[1], memory.shape[1]):
            return super().call(x, memory, mask, cache)
        query, key, value = (
            self.query_dense(x), self.key_dense(memory),
            self.value_dense(memory))
        if packed:
            queries, keys = packed
            query = queries.spread(query)
            key, value = keys.spread(key), keys.spread(value)
        merged = self.merge(self.context(
            *map(self.split, (query, key, value)), mask))
        if packed:
            merged = queries.pack(merged)
        return tap(self, "output", self.output_dense(merged))

    def in_blocks(self, queries, keys):
        """Whether so many queries and keys are attended to in blocks."""
        return (min(queries, keys) >= blocks.SIZE
                and self.rounding == "none"
                and isinstance(self.relative, NoRelative)
                and dropping.kept(self.weights_dropout) is None)

    def context(self, query, key, value, mask):
        """The context [B H T K] of a whole batch."""
        query = self.query_rotary(query, start=0)
        key = self.key_rotary(key, start=0)
        bias = self.relative(query, key, start=0)
        wide = (shared(y, self.times) for y in (key, value))
        if not self.in_blocks(query.shape[2], key.shape[2]):
            return scaled_dot_product_attention(
                query, *wide, bias, mask, self.divisor,
                SOFTMAXES[self.rounding], self.weights_dropout, self)
        checks.mask(mask, (*query.shape[:-1], key.shape[-2]))
        return blocks.attend(query, *wide, mask, False, self.divisor)
