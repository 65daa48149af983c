"""Attention as one call, which keeps neither scores nor weights.

So its memory grows with the length, not with its square. The call has no
dropout that can be given, no rounding, and no bias beside the mask; where one
of these is wanted, attention is the readable form's.
"""

from torch.nn import functional as F

from contract import checks, dropping
from contract.trace import tap
from impl_torch import attention
from impl_torch.masks import causal_mask
from impl_torch.relative import NoRelative


def attend(query, key, value, mask, causal, divisor):
    """Equation 1, with no array of T·S numbers: the context [B H T K].

    Args:
        query: [B H T K].
        key, value: [B G S K].
        mask: bool, each axis 1 or that of [B H T S].
        causal: whether, besides, no query attends to a later key.
        divisor: what scores are divided by.
    """
    if causal and mask.all():  # torch: the call takes one of the two
        mask = None
    elif causal:
        causal, mask = False, mask & causal_mask(query.shape[2])
    return F.scaled_dot_product_attention(
        query, key, value, mask, is_causal=causal, scale=1 / divisor,
        enable_gqa=query.shape[1] > key.shape[1])


class MultiHeadAttention(attention.MultiHeadAttention):
    """See impl_torch.attention."""

    def forward(self, x, memory, mask, cache):
        """Let x [B T D] attend to memory [B S D] where mask allows."""
        if not (self.softmax is attention.masked_softmax
                and isinstance(self.relative, NoRelative)
                and dropping.kept(self.weights_dropout) is None):
            return super().forward(x, memory, mask, cache)
        start = 0 if cache is None else cache.written
        query = self.query_rotary(self.split(self.query(x)), start)
        key = self.key_rotary(self.split(self.key(memory)), start)
        value = self.split(self.value(memory))
        if cache is not None:
            key, value = cache.extend(key, value)
        checks.mask(mask, (*query.shape[:-1], key.shape[-2]))
        context = attend(query, key, value, mask, False, self.divisor)
        return tap(self, "output", self.output(self.merge(context)))
