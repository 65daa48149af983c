"""Weights laid out for a search, as each token's products read them best.

A search multiplies few rows by every weight for each token, so that most of its
time goes into reading weights. Of one row OpenBLAS reads a kernel [in out] the
fastest, and the transpose of a tied embedding's table, [V D], in twice the
time: the table is copied as a kernel. Of more rows it first copies both
operands to an order of its own, but with AVX-512 not those of a small product:
so a product is made of many, a strip of outputs each, of a weight [out in]. On
an AMD EPYC one thread then multiplies 2 to 32 rows in 0.45 to 0.9 of the time;
two share out a whole product in less, and one small one not at all.
"""

import copy
import functools
import os

import numpy as np

from reference_numpy.fast.blocks import THREADS
from reference_numpy.fast.linear import Linear
from reference_numpy.fast.projection import Projection, ProjectionWithoutBias
from reference_numpy.projection import TiedProjection

#: Tokens of a search from which on a copy of the weights pays.
LONG = 32

#: Rows of a table that are laid out anew at once, so that both stay in the
#: first cache.
ROWS = 16

#: Rows up to which strips pay.
FEW = 32

#: Multiplications up to which OpenBLAS takes a product as a small one.
SMALL = 100**3

#: Outputs of a strip, the best first.
STRIPS = 32, 16, 8


@functools.cache
def takes_small():
    """Whether OpenBLAS has one thread and kernels for small products."""
    if THREADS > 1 and "1" not in map(
            os.environ.get, ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")):
        return False
    config = np.show_config(mode="dicts")
    found = config["SIMD Extensions"]
    return "openblas" in config["Build Dependencies"]["blas"]["name"] and any(
        {"X86_V4", "AVX512_SKX"} & set(found.get(when, ()))
        for when in ("baseline", "found"))


def strip(rows, weight):
    """Outputs of a strip where strips of a weight [out in] pay; else 0."""
    if not 1 < rows <= FEW or not takes_small():
        return 0
    return next((size for size in STRIPS
                 if rows * weight.shape[1] * size <= SMALL), 0)


class Strips:
    """A linear map of few rows, a strip of its outputs after the other.

    Args:
        weight: [out in], of which strips are views.
        bias: [out], or None.
        size: outputs of a strip.
    """

    def __init__(self, weight, bias, size):
        whole = len(weight) // size * size
        self.outputs, self.bias = len(weight), bias
        self.strips = weight[:whole].reshape(-1, size, weight.shape[1]).mT
        self.rest = weight[whole:].T

    def __call__(self, x):
        """Map x [... in] to [... out]."""
        rows = x.reshape(-1, x.shape[-1])
        count, _, size = self.strips.shape
        y = np.empty((len(rows), self.outputs), rows.dtype)
        strips = y[:, :count * size].reshape(len(rows), count, size)
        np.matmul(rows, self.strips, out=strips.swapaxes(0, 1))
        np.matmul(rows, self.rest, out=y[:, count * size:])
        if self.bias is not None:
            y += self.bias
        return y.reshape(*x.shape[:-1], self.outputs)

    def forward(self, x):
        """A projection's call: logits, and no steps."""
        return self(x), {}


def made_of(kind, kernel, bias):
    """A kind of linear map of arrays that are there; it draws none."""
    own = kind.__new__(kind)
    own.kernel = kernel
    if bias is not None:
        own.bias = bias
    return own


def joined(attention, rows, tokens):
    """An attention's query, key and value as one linear map."""
    maps = attention.query, attention.key, attention.value
    own = made_of(
        Linear, np.concatenate([each.kernel for each in maps], axis=-1),
        np.concatenate([getattr(each, "bias", np.zeros_like(each.kernel[0]))
                        for each in maps]))
    return mapped(own, rows) if tokens >= LONG else own


def laid_out(model, rows, tokens):
    """A model of the same parts, for a search of so many rows and tokens.

    Its decoder's and projection's weights are laid out where that pays. It is
    for one search: weights that are changed later may not reach it.
    """
    if tokens < LONG:
        return model
    own = copy.copy(model)
    own.projection = projected(model, rows)
    own.decoder = copy.copy(model.decoder)
    own.decoder.layers = [
        rearranged(layer, rows) for layer in model.decoder.layers]
    return own


def projected(model, rows):
    """A model's projection, laid out."""
    given = model.projection
    if isinstance(given, TiedProjection):
        table, bias = given.embedding.table, getattr(given, "bias", None)
        if size := strip(rows, table):
            return Strips(table, bias, size)
        return made_of(
            Projection if bias is not None else ProjectionWithoutBias,
            transposed(table), bias)
    return mapped(given, rows)


def mapped(linear, rows):
    """A linear map in strips, where they pay; else itself."""
    size = strip(rows, linear.kernel.T)
    return Strips(transposed(linear.kernel), getattr(linear, "bias", None),
                  size) if size else linear


def rearranged(layer, rows):
    """A decoder's layer of the same parts, its maps of each token laid out."""
    own = copy.copy(layer)
    for name, leaves in ("self_attention", ("output",)), (
            "cross_attention", ("query", "output")), (
            "feed_forward", ("gate", "inner", "outer")):
        part = copy.copy(getattr(layer, name))
        for leaf in leaves:
            if hasattr(part, leaf):
                setattr(part, leaf, mapped(getattr(part, leaf), rows))
        setattr(own, name, part)
    return own


def transposed(table):
    """The transpose of a matrix [V D], laid out anew: [D V]."""
    kernel = np.empty(table.shape[::-1], table.dtype)
    for i in range(0, len(table), ROWS):
        kernel[:, i:i + ROWS] = table[i:i + ROWS].T
    return kernel
