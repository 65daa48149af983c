"""Attention that goes over blocks where queries and keys are many.

Scores and weights are then not kept; see fast/blocks.py. It has no dropout, no
rounding and no bias beside the mask; where one of these is wanted, or a cache,
attention is the readable form's.
"""

from contract import checks, dropping
from contract.trace import tap
from impl_keras import attention
from impl_keras.attention import shared
from impl_keras.fast import blocks
from impl_keras.relative import NoRelative


class MultiHeadAttention(attention.MultiHeadAttention):
    """See impl_keras.attention."""

    def call(self, x, memory, mask, cache):
        """Let x [B T D] attend to memory [B S D] where mask allows."""
        if not (min(x.shape[1], memory.shape[1]) >= blocks.SIZE
                and self.rounding == "none"
                and isinstance(self.relative, NoRelative)
                and dropping.kept(self.weights_dropout) is None):
            return super().call(x, memory, mask, cache)
        query = self.query_rotary(self.split(self.query_dense(x)), start=0)
        key = self.key_rotary(self.split(self.key_dense(memory)), start=0)
        value = self.split(self.value_dense(memory))
        checks.mask(mask, (*query.shape[:-1], key.shape[-2]))
        context = blocks.attend(
            query, shared(key, self.times), shared(value, self.times), mask,
            False, self.divisor)
        return tap(self, "output", self.output_dense(self.merge(context)))
