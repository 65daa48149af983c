"""Precision tiers between dtypes: what NumPy gives with such products.

In a tier weights are float32 and some of the rest is not. Where *products* are
short (PyTorch's autocast), both matrices of a product are rounded and so is
what comes out; all else has the longer of its operands' dtypes, but for a
softmax where autocast computes it in float32, as it does on a GPU. Where the
*whole* pass is short (Keras' mixed policies, JAX with another param_dtype),
weights are rounded first and every operation rounds, as in ``rounding``. TF32
and bfloat16x3 round the matrices of products alone. The error of such a run is
the measure that limits follow.
"""

import numpy as np

from parity.numerics import rounding
from parity.numerics.dtypes import NUMPY, TIERS

PRODUCTS, LONG_SOFTMAX, WHOLE = (
    "products", "products; softmax in float32", "whole")


def short_of(tier):
    """The 16-bit dtype of a mixed tier; "" of one that has none."""
    return TIERS[tier].short


def to_tf32(x):
    """float32 rounded to 10 bits of mantissa, to even."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    bits = bits + np.uint32(0xFFF) + ((bits >> 13) & np.uint32(1))
    return (bits & np.uint32(0xFFFFE000)).view(np.float32)


def to_short(x, short):
    """float32 rounded to a 16-bit dtype, and float32 again."""
    with np.errstate(over="ignore"):
        return np.asarray(x, np.float32).astype(NUMPY[short]).astype(
            np.float32)


def in_tf32(a, b):
    """a @ b of matrices that are rounded to TF32 and added up in float32."""
    return to_tf32(a) @ to_tf32(b)


def in_three(a, b):
    """a @ b as three products of bfloat16, added up in float32.

    Each matrix is a high part and what is left of it, both in bfloat16; the
    product of what is left is left out.
    """
    (high, low), (high_b, low_b) = (
        (part, to_short(x - part, "bfloat16"))
        for x in (a, b) for part in [to_short(x, "bfloat16")])
    return high @ high_b + (high @ low_b + low @ high_b)


class _Float32(rounding.Emulating):
    """float32 arrays with another product."""

    def emulated(self, result, ufunc, inputs):
        """The result, in float32."""
        return np.asarray(result, np.float32).view(type(self))


class Tf32(_Float32):
    """float32 whose products are in TF32."""

    product = staticmethod(in_tf32)


class Bfloat16x3(_Float32):
    """float32 whose products are three of bfloat16."""

    product = staticmethod(in_three)


class _Autocast(rounding.Emulating):
    """float32 arrays of which some are short: the results of products.

    An operation of short arrays rounds, one that has a long array does not.
    """

    stored, long = "", True

    def product(self, a, b):
        """a @ b of rounded matrices."""
        return to_short(a, self.stored) @ to_short(b, self.stored)

    def emulated(self, result, ufunc, inputs):
        """The result, rounded if it is a product's or of short arrays."""
        return self.kind(result, ufunc is not np.matmul
                         and any(map(is_long, inputs)))

    def __array_function__(self, func, types, args, kwargs):
        result = super().__array_function__(func, types, args, kwargs)
        if type(result) is np.ndarray and result.dtype.kind == "f":
            return self.kind(result, any(map(is_long, args)))
        return result

    def kind(self, array, long):
        """An array as a long one, or rounded as a short one."""
        array = np.asarray(array, np.float32)
        long_kind, short_kind = AUTOCAST[self.stored]
        if long:
            return array.view(long_kind)
        return to_short(array, self.stored).view(short_kind)


def is_long(x):
    """Whether x is a float32 array of values that are not rounded."""
    if isinstance(x, _Autocast):
        return x.long
    return (isinstance(x, np.ndarray) and x.ndim > 0
            and x.dtype.kind == "f")


def _autocast(short):
    """The long and the short class of a 16-bit dtype."""
    return (type(f"Autocast_{short}", (_Autocast,), {"stored": short}),
            type(f"Short_{short}", (_Autocast,), {
                "stored": short, "long": False}))


AUTOCAST = {short: _autocast(short) for short in ("bfloat16", "float16")}


def emulated(array, tier, kind, linear=False):
    """A float32 weight with which the reference computes as a tier does.

    Args:
        kind: PRODUCTS, LONG_SOFTMAX or WHOLE.
        linear: whether it is a linear map's, which is rounded with its product.
    """
    array = np.asarray(array, np.float32)
    short = short_of(tier)
    if not short:
        return array.view({"tf32": Tf32, "bfloat16x3": Bfloat16x3}[tier])
    if kind == WHOLE:
        return rounding.emulated(array, short)
    long_kind, short_kind = AUTOCAST[short]
    if linear:
        return to_short(array, short).view(short_kind)
    return array.view(long_kind)


def widened(x):
    """An array of autocast as a long one, of the same values."""
    return x.view(AUTOCAST[x.stored][0])


def wide(x):
    """An array as plain float32, and a function that makes it what it was."""
    kind, short, plain = type(x), rounding.stored(x), np.asarray(x, np.float32)
    if short:
        return plain, lambda y: rounding.emulated(y, short)
    if issubclass(kind, _Autocast) and not kind.long:
        return plain, lambda y: to_short(y, kind.stored).view(kind)
    return plain, lambda y: np.asarray(y, np.float32).view(kind)


def holds_no_more(array, short):
    """Whether all values of an array are of a 16-bit dtype, exactly."""
    array = np.asarray(array, np.float32)
    return np.array_equal(array, to_short(array, short), equal_nan=True)
