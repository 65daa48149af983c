"""Attention as one call, which keeps neither scores nor weights.

So its memory grows with the length, not with its square. The call has no
dropout that can be given, no rounding, and no bias beside the mask; where one
of these is wanted, attention is the readable form's.
"""

import contextlib

from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from transformer_contract import checks, dropping
from transformer_contract.trace import tap
from impl_torch import attention
from impl_torch.dialects import attention as dialects
from impl_torch.fast.packing import Attending, spread
from impl_torch.masks import causal_mask

#: The kernels of the call on a GPU. cuDNN's is not among them: in 16 bits it
#: gives no 0 to a query that may see no key, and gradients are wrong or NaN.
KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION,
           SDPBackend.MATH]


def one_call(query, key, value, mask, causal, divisor):
    """Equation 1 by a kernel of torch's: the context [B H T K].

    Args: as ``attend``'s; but mask may be None, and is if causal.
    """
    with (sdpa_kernel(KERNELS) if query.is_cuda
          else contextlib.nullcontext()):
        return F.scaled_dot_product_attention(
            query, key, value, mask, is_causal=causal, scale=1 / divisor,
            enable_gqa=query.shape[1] > key.shape[1])


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
    return one_call(query, key, value, mask, causal, divisor)


class MultiHeadAttention(attention.MultiHeadAttention):
    """See impl_torch.attention.

    In training x, memory and the mask may be packed; see fast/packing.py.
    """

    #: Whether its scores are those of the call.
    fits = True

    def forward(self, x, memory, mask, cache):
        """Let x [B T D] attend to memory [B S D] where mask allows."""
        queries = keys = None
        if isinstance(mask, Attending):
            queries, keys, mask = mask.queries, mask.keys, mask.mask
        start = 0 if cache is None else cache.written
        query, key, value = self.project((x, queries), (memory, keys), start)
        if cache is not None:
            key, value = cache.extend(key, value)
        merged = self.merge(self.attend(query, key, value, mask, start))
        if queries is not None:
            merged = queries.pack(merged)
        return tap(self, "output", self.output(merged))

    def project(self, x, memory, start):
        """The readable one's, of (array, how it is packed or None) each."""
        return [self.split(spread(linear(vectors), packed))
                for linear, (vectors, packed) in (
                    (self.query, x), (self.key, memory), (self.value, memory))]

    def attend(self, query, key, value, mask, start):
        """The context [B H T K], in one call where that can be."""
        dropout = self.weights_dropout
        if (not self.fits or self.softmax is not attention.masked_softmax
                or dropping.kept(dropout) is not None
                or (dropout.training and dropout.rate)):
            return super().attend(query, key, value, mask, start)
        checks.mask(mask, (*query.shape[:-1], key.shape[-2]))
        return attend(query, key, value, mask, False, self.divisor)


class DialectAttention(dialects.DialectAttention, MultiHeadAttention):
    """See impl_torch.dialects.attention."""


class RotaryAttention(dialects.RotaryAttention, MultiHeadAttention):
    """See impl_torch.dialects.attention."""


class RelativeAttention(dialects.RelativeAttention, MultiHeadAttention):
    """See impl_torch.dialects.attention; the call takes no number by distance.
    """

    fits = False
