"""A norm all of which is in float32: input, scale and bias are rounded too.

So are Keras' norms in a float64 model on JAX and on PyTorch. What comes out
are float32 numbers, and nothing is left open but the last bits of each row's
mean and root, the order of the operations, and whether a product and the sum
behind it are rounded once or twice.
"""

import numpy as np

from parity.causes.formulas.narrow import (
    TINY, UNIT, UNITS, neighbour, single)

#: How many means are tried of a row: few first, then of what is left many.
MEANS = 9, 65, 513

#: How many rows are tried first.
FEW = 8

#: How many float32 numbers off a root may be.
STEPS = sorted(range(-UNITS, UNITS + 1), key=abs)


def centred(x, mean, inverse, scale, bias):
    """Yield (x - mean) · inverse · scale + bias, as PyTorch has it."""
    product = single(single(x - mean) * inverse) * scale
    yield single(single(product) + bias)
    yield single(product + bias)


def folded(x, mean, inverse, scale, bias):
    """Yield x · factor + (bias - mean · factor), as Keras has it."""
    factor = single(inverse * scale)
    rest = single(single(-mean * factor) + bias)
    yield single(single(x * factor) + rest)
    yield single(x * factor + rest)


def centred_bounds(x, y, inverse, scale, bias):
    """Between which the mean is by each number of a row, [rows D] both."""
    factor = inverse * scale
    difference = (y - bias) / factor
    doubt = UNIT * ((np.abs(y) + np.abs(y - bias)) / np.abs(factor)
                    + np.abs(difference))
    return x - difference - 1.01 * doubt, x - difference + 1.01 * doubt


def folded_bounds(x, y, inverse, scale, bias):
    """The same of Keras' order."""
    factor = single(inverse * scale)
    rest = y - single(x * factor)
    mean = (bias - rest) / factor
    doubt = UNIT * (np.abs(y) + np.abs(rest) + np.abs(bias - rest)
                    + np.abs(x * factor)) / np.abs(factor)
    return mean - 1.01 * doubt, mean + 1.01 * doubt


ORDERS = (centred, centred_bounds), (folded, folded_bounds)


def means(x, y, inverse, scale, bias, bounds, count):
    """Yield float32 means [rows 1] that every number of a row allows."""
    low, high = bounds(x, y, inverse, scale, bias)
    low = np.where(np.isfinite(low), low, -np.inf).max(-1, keepdims=True)
    high = np.where(np.isfinite(high), high, np.inf).min(-1, keepdims=True)
    for part in np.linspace(0, 1, count):
        yield single(low + part * (high - low))


@np.errstate(all="ignore")
def computed(x, seen, scale, bias, mean, root):
    """What a norm gives if all of it is in float32, as near as may be.

    Args:
        x, seen: what came in and out, [rows D].
        scale, bias: [D] or one number.
        mean: that of each row in float64, [rows 1]; None if none is
            subtracted.
        root: by what a row is divided, in float64, [rows 1].

    Returns:
        [rows D], NaN in the rows that do not come out to the bit; and how many
        units the root and the mean are off, [rows 2], the mean's of its row's
        size.
    """
    x, scale, bias = single(x), single(scale), single(bias)
    result, off = np.full(x.shape, np.nan), np.zeros((len(x), 2))
    size = np.sqrt((x * x).mean(-1)) + TINY

    def search(rows, count):
        """Fill what comes out of these rows; those that did not are left."""
        for step in STEPS:
            for order, bounds in ORDERS:
                inverse = neighbour(1 / root[rows], step)
                some = [np.zeros_like(inverse)] if mean is None else means(
                    x[rows], seen[rows], inverse, scale, bias, bounds, count)
                for each in some:
                    for y in order(x[rows], each, inverse, scale, bias):
                        same = (y == seen[rows]).all(-1)
                        done = rows[same]
                        result[done] = y[same]
                        off[done, 0] = (
                            inverse[same] * root[done] - 1)[:, 0] / UNIT
                        if mean is not None:
                            off[done, 1] = (each[same] - mean[done])[:, 0] / (
                                size[done] * UNIT)
                rows = rows[np.isnan(result[rows]).any(-1)]
                if not rows.size:
                    return rows
        return rows
    left = np.arange(len(x))
    if 2 * len(search(left[:FEW], MEANS[0])) > len(left[:FEW]):
        return result, off  # most rows of one that is would have come out
    for count in MEANS[:1] if mean is None else MEANS:
        left = search(left, count)
    return result, off
