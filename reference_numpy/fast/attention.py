"""Attention whose softmax overwrites what it no longer needs.

Where queries and keys are many, it goes over blocks, of which no step is kept
but the context; see fast/blocks.py.
"""

import numpy as np

from transformer_contract import checks, dropping
from reference_numpy import attention
from reference_numpy.dialects import attention as dialect
from reference_numpy.fast import blocks


def masked_softmax(scores, mask):
    """Softmax over the keys that ``mask`` allows; every other weight is 0."""
    weights = np.where(mask, scores, np.finfo(scores.dtype).min)
    weights -= np.max(weights, axis=-1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= np.sum(weights, axis=-1, keepdims=True)
    np.copyto(weights, 0, where=~mask)
    return weights


class MultiHeadAttention(attention.MultiHeadAttention):
    """See reference_numpy.attention."""

    def attend(self, query, key, value, mask, start, c):
        """Equation 1: the context, [B H T K]."""
        if self.softmax is not attention.masked_softmax:
            return super().attend(query, key, value, mask, start, c)
        checks.mask(mask, (*query.shape[:-1], key.shape[-2]))
        c["operands"] = query, key, value, mask
        if (dropping.kept(self.weights_dropout) is None
                and min(query.shape[-2], key.shape[-2]) >= blocks.SIZE):
            c["context"], c["log_sums"] = blocks.attend(
                query, key, value, mask, False, self.divisor)
            return c["context"]
        scores = c["scores"] = query @ key.mT
        scores /= self.divisor
        weights = c["weights"] = masked_softmax(scores, mask)
        dropped, c["weights_dropout"] = self.weights_dropout.forward(weights)
        context = c["context"] = dropped @ value
        return context

    def attend_backward(self, dcontext, c, g):
        """From dcontext [B H T K]: dquery, dkey, dvalue."""
        if "log_sums" not in c:
            return super().attend_backward(dcontext, c, g)
        g["context"] = dcontext
        return blocks.attend_backward(
            dcontext, *c["operands"], False, self.divisor, c["context"],
            c["log_sums"])


class DialectAttention(dialect.DialectAttention, MultiHeadAttention):
    """See reference_numpy.dialects.attention."""


class RotaryAttention(dialect.RotaryAttention, MultiHeadAttention):
    """See reference_numpy.dialects.attention."""
