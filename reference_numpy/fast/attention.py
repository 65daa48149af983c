"""Attention whose softmax overwrites what it no longer needs.

Where queries and keys are many, it goes over blocks, of which no step is kept
but the context; see fast/blocks.py.
"""

import numpy as np

from contract import checks, dropping
from reference_numpy import attention
from reference_numpy.attention import shared, shared_backward
from reference_numpy.fast import blocks
from reference_numpy.linear import under


def masked_softmax(scores, mask):
    """Softmax over the keys that ``mask`` allows; every other weight is 0."""
    weights = np.where(mask, scores, np.finfo(scores.dtype).min)
    weights -= np.max(weights, axis=-1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= np.sum(weights, axis=-1, keepdims=True)
    np.copyto(weights, 0, where=~mask)
    return weights


#: The fast form of each softmax that has one.
SOFTMAXES = {attention.masked_softmax: masked_softmax}


def scaled_dot_product_attention(
        query, key, value, bias, mask, divisor, softmax, dropout, c):
    """Equation 1; see reference_numpy.attention."""
    checks.mask(mask, (*query.shape[:-1], key.shape[-2]))
    c["operands"] = (query, key, value, mask)
    if (softmax is masked_softmax and np.ndim(bias) == 0
            and dropping.kept(dropout) is None
            and min(query.shape[-2], key.shape[-2]) >= blocks.SIZE):
        c["context"], log_sums = blocks.attend(
            query, key, value, mask, False, divisor)
        c["blocks"] = (log_sums,)
        return c["context"]
    scores = c["scores"] = query @ key.mT
    scores /= divisor
    scores += bias
    weights = c["weights"] = softmax(scores, mask)
    dropped, c["weights_dropout"] = dropout.forward(weights)
    context = c["context"] = dropped @ value
    return context


class MultiHeadAttention(attention.MultiHeadAttention):
    """See reference_numpy.attention."""

    def forward(self, x, memory, mask, cache):
        """Let x [B T D] attend to memory [B S D] where mask allows."""
        c = {"inputs": (x, memory, mask)}
        query = c["query"] = self.split(self.query(x))
        key = c["key"] = self.split(self.key(memory))
        value = c["value"] = self.split(self.value(memory))
        start = 0 if cache is None else cache.written
        query, c["query_rotary"] = self.query_rotary.forward(query, start)
        key, c["key_rotary"] = self.key_rotary.forward(key, start)
        if cache is not None:
            key, value = cache.extend(key, value)
        bias, c["relative"] = self.relative.forward(query, key, start)
        key, value = shared(key, self.times), shared(value, self.times)
        context = scaled_dot_product_attention(
            query, key, value, bias, mask, self.divisor,
            SOFTMAXES.get(self.softmax, self.softmax), self.weights_dropout,
            c)
        output = c["output"] = self.output(self.merge(context))
        return output, c

    def backward(self, doutput, c):
        """From doutput [B T D]: dx, dmemory and g."""
        if "blocks" not in c:
            return super().backward(doutput, c)
        (x, memory, _), g = c["inputs"], {"output": doutput}
        dmerged, gradients = self.output.backward(
            doutput, self.merge(c["context"]))
        g |= under("output", gradients)
        dcontext = g["context"] = self.split(dmerged)
        dquery, dkey, dvalue = blocks.attend_backward(
            dcontext, *c["operands"], False, self.divisor, c["context"],
            *c["blocks"])
        g["relative"] = self.relative.backward(None, c["relative"])
        dvalue = shared_backward(dvalue, self.times)
        dkey, g["key_rotary"] = self.key_rotary.backward(
            shared_backward(dkey, self.times), c["key_rotary"])
        dquery, g["query_rotary"] = self.query_rotary.backward(
            dquery, c["query_rotary"])
        g |= {"query": dquery, "key": dkey, "value": dvalue}
        dmemory = 0
        for name, dheads in (("value", dvalue), ("key", dkey)):
            dread, gradients = getattr(self, name).backward(
                self.merge(dheads), memory)
            dmemory = dmemory + dread
            g |= under(name, gradients)
        dx, gradients = self.query.backward(self.merge(dquery), x)
        g |= under("query", gradients)
        return dx, dmemory, g
