"""Attention that goes over blocks where queries and keys are many.

Scores and weights are then not kept; see fast/blocks.py. It has no dropout, no
rounding and no bias beside the mask; where one of these is wanted, or a cache,
attention is the readable form's.

A dialect's methods stand above these, and call them by ``super()``.
"""

from transformer_contract import dropping
from transformer_contract.trace import tap
from impl_keras import attention
from impl_keras.dialects import attention as dialects
from impl_keras.fast import blocks, packing


class MultiHeadAttention(attention.MultiHeadAttention):
    """See impl_keras.attention.

    In training x and memory may be packed; see fast/packing.py.
    """

    def project(self, x, memory, start):
        """Query, key and value of each head, spread out if x is packed."""
        packed = packing.ways(self)
        if not packed:
            return super().project(x, memory, start)
        queries, keys = packed
        return tuple(self.heads_first(heads) for heads in (
            queries.spread(self.query_dense(x)),
            keys.spread(self.key_dense(memory)),
            keys.spread(self.value_dense(memory))))

    def attend(self, query, key, value, mask, start):
        """Equation 1, over blocks: the context, [B H T K]."""
        if not self.in_blocks(query, key, mask):
            return super().attend(query, key, value, mask, start)
        return blocks.attend(query, key, value, mask, False, self.divisor)

    def in_blocks(self, query, key, mask):
        """Whether queries attend to keys in blocks, without any bias."""
        return (min(query.shape[2], key.shape[2]) >= blocks.SIZE
                and not getattr(self, "rounds", False)
                and not isinstance(mask, tuple)
                and dropping.kept(self.weights_dropout) is None)

    def call(self, x, memory, mask, cache):
        """Let x [B T D] attend to memory [B S D] where mask allows."""
        packed = packing.ways(self)
        if not packed:
            return super().call(x, memory, mask, cache)
        heads = self.project(x, memory, 0)
        context = self.heads_last(self.attend(*heads, mask, 0))
        return tap(self, "output", self.output_dense(packed[0].pack(context)))


class DialectAttention(dialects.DialectAttention, MultiHeadAttention):
    """See impl_keras.dialects.attention."""


class RotaryAttention(dialects.RotaryAttention, MultiHeadAttention):
    """See impl_keras.dialects.attention."""


class RelativeAttention(dialects.RelativeAttention, MultiHeadAttention):
    """See impl_keras.dialects.attention."""
