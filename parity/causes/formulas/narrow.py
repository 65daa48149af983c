"""Float32 inside a float64 model: what libraries do in it, computed again.

A replay has it as a setting, NARROW. Whatever the inputs settle comes out to
the bit. What a library may choose, the order of a sum or its own exponential,
moves a few last bits: there the output decides, among what is within a few
units of the exact number. So a difference that is no rounding is not taken
for one, whatever its size.
"""

import numpy as np

#: The setting that says what was computed in float32.
NARROW = "float32 for"

#: What that may be.
NORMALISED, ROOT = "all but scale and bias", "the root"
SOFTMAX, SCALE = "the softmax", "the scale"
TABLE, FREQUENCIES = "all of it", "the frequencies"

#: The largest relative error of one rounding to float32.
UNIT = 2.0**-24

#: Farther from a float64 replay is nothing that float32 inside explains.
ROUGH = 1e-3

#: By how many units a sum's order, or a root, may move a number, and by how
#: much of one all may be moved alike: a constant is rounded once.
UNITS, ALIKE = 4, 0.5

#: Smaller weights have fewer digits.
TINY = 1e-30

#: A softmax's numbers are its float32 replay's if they correlate with its
#: rounding so much, of so many numbers that it is no chance, and are nearer
#: to it than to float64's by so much.
ALIKENESS, CERTAIN, NEARER = 0.6, 25.0, 0.9


def single(x):
    """Numbers rounded to float32."""
    with np.errstate(over="ignore"):
        return np.asarray(x).astype(np.float32).astype(np.float64)


def neighbour(x, steps):
    """The float32 number so many steps from the one that is nearest."""
    bits = np.asarray(x).astype(np.float32).view(np.int32) + np.int32(steps)
    return bits.view(np.float32).astype(np.float64)


def leans(off, spread=0.0):
    """Whether rows err to one side by more than one constant's rounding.

    Args:
        off: errors in units, [… D].
        spread: by how many units rows may differ, at least.
    """
    rows = off.reshape(-1, off.shape[-1]).mean(-1)
    spread = max(rows.std(), spread)
    return bool(abs(rows.mean()) > ALIKE + 5 * spread / len(rows)**0.5)


def nearest(candidates, seen, axis):
    """The nearest to what was observed, for each row or each column.

    Args:
        candidates: yields an array, and a number or an array that broadcasts
            to it, which says which one it is.
        seen: what was observed.
        axis: -1 or -2, along which one candidate holds throughout.

    Returns:
        The nearest, and which they are, that axis being of size 1.
    """
    best, least, which = seen, np.inf, np.nan
    for array, name in candidates:
        gap = np.abs(array - seen).sum(axis, keepdims=True)
        best = np.where(gap < least, array, best)
        which = np.where(gap < least, name, which)
        least = np.minimum(gap, least)
    return best, which


def softmax(scores):
    """The softmax of scores [… S], each step rounded to float32."""
    scores = single(scores)
    powers = single(np.exp(single(scores - scores.max(-1, keepdims=True))))
    return single(powers * single(1 / single(powers.sum(-1, keepdims=True))))


def near_softmax(exact, seen):
    """Weights that were seen if they are a softmax in float32, else exact.

    Args:
        exact, seen: [B H T S], as replayed and as observed.
    """
    with np.errstate(all="ignore"):
        off = np.where(exact > 0, (seen / exact - 1) / UNIT, 0)
        depth = np.log(np.where(exact > 0, exact, 1))
    heaviest = exact.argmax(-1)[..., None]
    rows = np.take_along_axis(off, heaviest, -1)
    left = np.where(exact > TINY, off - rows, 0)
    size = np.sqrt((left * left).sum() * (depth * depth).sum())
    trend = (left * depth).sum() / max(size, 1e-300) * left.size**0.5
    return seen if (
        np.array_equal(single(seen), seen)
        and np.array_equal(seen > TINY, exact > TINY)
        and np.array_equal(seen == 0, exact == 0)
        and np.abs(rows).max() <= 2 * UNITS and np.abs(left).max() <= UNITS
        and abs(trend) <= 6 and not leans(rows, 0.7)) else exact


def is_softmax(seen, wide, narrow):
    """Whether what was mixed is what a softmax in float32 gives.

    A row of each head may be larger or smaller as a whole, as its sum's last
    bits have it. What is left beside that must be the replay's own rounding:
    it correlates with it, and is smaller once that is taken away.

    Args:
        seen, wide, narrow: [B H T K], as observed, as computed in float64,
            and in float32.
    """
    with np.errstate(all="ignore"):
        size = (narrow * narrow).sum(-1, keepdims=True)
        rows = ((seen - narrow) * narrow).sum(-1, keepdims=True) / size / UNIT
        errors, roundings = (
            part - (part * narrow).sum(-1, keepdims=True) / size * narrow
            for part in (seen - wide, narrow - wide))
        left = errors - roundings
        one, two = (np.sqrt((x * x).sum()) for x in (errors, roundings))
        alike = (errors * roundings).sum() / (one * two)
    count = rows.shape[0] * rows.shape[2]
    return bool(
        alike >= ALIKENESS and alike * alike * errors.size >= CERTAIN
        and np.sqrt((left * left).sum()) <= NEARER * two
        and np.abs(rows).max() <= 2 * UNITS
        and np.abs(rows.mean((0, 2, 3))).max() <= ALIKE + 3 / count**0.5)
