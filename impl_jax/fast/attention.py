"""Attention that goes over blocks where queries and keys are many.

Scores and weights are then not kept; see fast/blocks.py. It has no dropout, no
rounding and no number beside the score; where one of these is wanted,
attention is the readable form's.
"""

from transformer_contract import checks, dropping
from transformer_contract.trace import tap
from impl_jax import attention
from impl_jax.dialects import attention as dialects
from impl_jax.fast import blocks
from impl_jax.fast.packing import Attending


class MultiHeadAttention(attention.MultiHeadAttention):
    """See impl_jax.attention.

    In training x, memory and the mask may be packed; see fast/packing.py.
    """

    def in_blocks(self, queries, keys):
        """Whether so many queries and keys are attended to in blocks."""
        return (min(queries, keys) >= blocks.SIZE
                and self.softmax is attention.masked_softmax
                and dropping.kept(self.weights_dropout) is None)

    def attend(self, query, key, value, mask, start):
        """The context, [B H T K]."""
        if not self.in_blocks(query.shape[2], key.shape[2]):
            return super().attend(query, key, value, mask, start)
        checks.mask(mask, (*query.shape[:-1], key.shape[-2]))
        return blocks.attend(query, key, value, mask, False, self.divisor)

    def spread(self, x, memory, mask):
        """Query, key and value of a whole batch, of packed x and memory."""
        return (self.split(mask.queries.spread(self.query(x))),
                self.split(mask.keys.spread(self.key(memory))),
                self.split(mask.keys.spread(self.value(memory))))

    def __call__(self, x, memory, mask, cache):
        """Let x [B T D] attend to memory [B S D] where mask allows."""
        if not isinstance(mask, Attending):
            return super().__call__(x, memory, mask, cache)
        context = self.attend(*self.spread(x, memory, mask), mask.mask, 0)
        merged = mask.queries.pack(self.merge(context))
        return tap(self, "output", self.output(merged))


class DialectAttention(dialects.DialectAttention, MultiHeadAttention):
    """The same, of a dialect; heads are shared before they are attended to."""


class RotaryAttention(dialects.RotaryAttention, MultiHeadAttention):
    """The same, of queries and keys that are turned."""

    def spread(self, x, memory, mask):
        """Query, key and value of a whole batch; turned when spread out."""
        query, key, value = super().spread(x, memory, mask)
        return self.query_rotary(query, 0), self.key_rotary(key, 0), value


class RelativeAttention(dialects.RelativeAttention, MultiHeadAttention):
    """The same, of scores that have a number added."""

    def in_blocks(self, queries, keys):
        """No block knows which numbers to add."""
        return False


#: The fast kind of each kind of attention; both hold the same.
FAST = {
    attention.MultiHeadAttention: MultiHeadAttention,
    dialects.DialectAttention: DialectAttention,
    dialects.RotaryAttention: RotaryAttention,
    dialects.RelativeAttention: RelativeAttention,
}
