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
ALIKENESS, CERTAIN, NEARER = 0.7, 25.0, 0.88

#: How many units of a row such a replay may leave.
LEFT = 2.0


def single(x):
    """Numbers rounded to float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(x).astype(np.float32).astype(np.float64)


def neighbour(x, steps):
    """The float32 number so many steps from the one that is nearest."""
    with np.errstate(over="ignore", invalid="ignore"):
        bits = np.asarray(x).astype(np.float32).view(np.int32)
        return (bits + np.int32(steps)).view(np.float32).astype(np.float64)


def distinct(x):
    """The places of the rows of [… D] that are no repetition of others."""
    return [*{row.tobytes(): place for place, row in enumerate(
        np.ascontiguousarray(x).reshape(-1, x.shape[-1]))}.values()]


def leans(off, x, spread=0.7):
    """Whether rows err to one side by more than one constant's rounding.

    Args:
        off: the error of each row in units, [… 1].
        x: what the rows were computed of, [… D]; equal ones count once.
        spread: by how many units rows may differ, at least.
    """
    rows = off.reshape(-1)[distinct(x)]
    spread = max(rows.std(), spread)
    return bool(abs(rows.mean()) > ALIKE + 5 * spread / len(rows)**0.5)


def nearest(candidates, seen, axis):
    """The nearest to what was observed, for each row or each column.

    Args:
        candidates: yields an array, and a number or an array that says which
            one it is; beside that axis it broadcasts to the first.
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


def softmaxes(scores):
    """Yield softmaxes of scores [… S] in float32, and each one's number.

    A library multiplies by the reciprocal of a sum, whose last bits are those
    of its order: the number is how many float32 numbers it is off.
    """
    scores = single(scores)
    with np.errstate(invalid="ignore"):  # a row that sees nothing
        powers = single(np.exp(single(
            scores - scores.max(-1, keepdims=True))))
    inverse = 1 / powers.sum(-1, keepdims=True)
    for step in range(-2 * UNITS, 2 * UNITS + 1):
        yield single(powers * neighbour(inverse, step)), step


def near_softmax(scores, seen):
    """Weights that were seen if they are a softmax in float32, else another.

    Args:
        scores, seen: [B H T S], as replayed and as observed.
    """
    exact, which = nearest(softmaxes(scores), seen, -1)
    with np.errstate(all="ignore"):
        off = np.where(exact > TINY, (seen / exact - 1) / UNIT, 0)
        depth = np.log(np.where(exact > TINY, exact, 1))
    size = np.sqrt((off * off).sum() * (depth * depth).sum())
    trend = (off * depth).sum() / max(size, TINY) * off.size**0.5
    return seen if (
        np.array_equal(single(seen), seen)
        and np.array_equal(seen == 0, exact == 0)
        and np.abs(off).max(initial=0) <= UNITS and abs(trend) <= 6
        and not leans(which, scores)) else exact


def is_softmax(seen, wide, candidates):
    """Whether what was mixed is what a softmax in float32 gives.

    A row of each head may be larger or smaller as a whole, as its sum's last
    bits have it. What is left beside that must be the replay's own rounding:
    it correlates with it, and is smaller once that is taken away. In no row
    may more be left than a few units.

    Args:
        seen, wide: [B H T K], as observed, and as computed in float64.
        candidates: yields it as computed in float32, and which one that is.
    """
    with np.errstate(all="ignore"):
        size = (wide * wide).sum(-1, keepdims=True)

        def beside(x):
            """What of rows does not make them larger or smaller."""
            return x - (x * wide).sum(-1, keepdims=True) / size * wide
        candidates = list(candidates)
        middle = candidates[len(candidates) // 2][0]
        rows = ((seen - middle) * wide).sum(-1, keepdims=True) / size / UNIT
        errors = beside(seen - wide)
        roundings, _ = nearest(((beside(array - wide), which)
                                for array, which in candidates), errors, -1)
        left = errors - roundings
        one, two, three = (np.sqrt((part * part).sum())
                           for part in (errors, roundings, left))
        alike = (errors * roundings).sum() / (one * two)
        worst = np.sqrt((left * left).sum(-1, keepdims=True) / np.maximum(
            size, size.mean())).max() / UNIT
    different = len(distinct(wide))
    count = max(different / wide.shape[1], 1)  # of each head
    return bool(
        alike >= ALIKENESS
        and alike * alike * different * wide.shape[-1] >= CERTAIN
        and three <= NEARER * two and worst <= LEFT
        and np.abs(rows).max() <= UNITS
        and np.abs(rows.mean((0, 2, 3))).max() <= ALIKE + 3 / count**0.5)
