"""The error of 16 bits: NumPy in float32, rounded after every operation.

The reference runs in any dtype, but NumPy multiplies bfloat16 matrices slowly
and sums float16 in float16, as no framework does. A ``Rounded`` array computes
each operation in float32 and rounds its result once, which is what a sound
16-bit implementation does; its error is the measure that limits follow.
"""

import numpy as np

from parity.numerics.dtypes import NUMPY


def rounded(array, dtype):
    """A floating point array in ``dtype``; any other array as it is."""
    array = np.asarray(array)
    if array.dtype.kind != "f":
        return array
    return array.astype(NUMPY[dtype], copy=False)


class Emulating(np.ndarray):
    """A float32 array whose operations give what another precision does."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **keywords):
        plain = [np.asarray(x) if isinstance(x, np.ndarray) else x
                 for x in inputs]
        with np.errstate(over="ignore", invalid="ignore"):
            result = (self.product(*plain) if ufunc is np.matmul
                      else getattr(ufunc, method)(*plain, **keywords))
            if not np.issubdtype(np.asarray(result).dtype, np.floating):
                return result
            result = self.emulated(result, ufunc, inputs)
        if out is not None:
            out[0][...] = result
            return out[0]
        return result

    def product(self, a, b):
        """a @ b of plain arrays."""
        return a @ b

    def emulated(self, result, ufunc, inputs):
        """What an operation on these inputs gives, of its plain result."""
        raise NotImplementedError


class _Rounded(Emulating):
    """A float32 array whose operations round their results to ``stored``."""

    stored: np.dtype

    def emulated(self, result, ufunc, inputs):
        """The result, rounded."""
        short = np.asarray(result, np.float32).astype(self.stored)
        return short.astype(np.float32).view(type(self))


class RoundedToBfloat16(_Rounded):
    """float32 arrays that round to bfloat16."""

    stored = NUMPY["bfloat16"]


class RoundedToFloat16(_Rounded):
    """float32 arrays that round to float16."""

    stored = NUMPY["float16"]


_CLASSES = {kind.stored.name: kind
            for kind in (RoundedToBfloat16, RoundedToFloat16)}


def emulated(array, dtype):
    """An array that makes the reference compute as if in ``dtype``.

    For float64 and float32 this is the array itself, rounded.
    """
    array = rounded(array, dtype)
    if array.dtype.name not in _CLASSES:
        return array
    return array.astype(np.float32).view(_CLASSES[array.dtype.name])


def stored(array):
    """The name of the dtype to which an array's operations round, or ""."""
    return next((name for name, kind in _CLASSES.items()
                 if isinstance(array, kind)), "")
