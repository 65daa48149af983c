"""What two arrays show by themselves: that one is the other, rearranged.

``relation`` says it of two parameters; parity.causes.hint says it of any two
arrays, by the same functions.
"""

import numpy as np

from parity.causes.faults.arrays import (
    DIFFERENT, GROUPED, MULTIPLE, ORDER, REVERSED, SHIFTED, by_feature)
from parity.causes.formulas.family import LOWER, rounded
from parity.numerics.dtypes import EPS
from parity.numerics.words import apart, number

#: What is said of parameters that cannot be counterparts.
OTHER = "of another shape"


def reordered(mine, other):
    """Whether two arrays hold the same numbers, in whatever order."""
    return np.array_equal(np.sort(mine, None), np.sort(other, None))


def factor_of(mine, other):
    """The number by which ``other`` is nearest to a multiple of ``mine``."""
    with np.errstate(all="ignore"):
        scale = np.abs(mine).max()
        a, b = mine / scale, other / scale
        return float((b * a).sum() / (a * a).sum())


def regrouped(mine, other, heads):
    """Whether columns, or rows, stand by feature that stood by head."""
    return any(np.array_equal(by_feature(one, heads), two)
               for one, two in ((mine, other), (mine.T, other.T))
               if heads and not one.shape[-1] % heads)


def order_in_words(mine, other):
    """How one axis of an array was put in order, for a sentence; or "".

    Either its halves or thirds stand in another order, as queries, keys and
    values of one kernel do, or two of the sizes that it is made of are
    exchanged: [3 H K] is [H 3 K], or [H 2 K/2], halves of each head for a
    rotary embedding, is [H K/2 2].
    """
    for axis in reversed(range(mine.ndim)):
        along = [np.moveaxis(x, axis, 0) for x in (mine, other)]
        where = "" if mine.ndim == 1 else f"axis {axis}"
        if words := _parts_in_order(*along, where) or _sizes_exchanged(
                *along, where):
            return words
    return ""


def _parts_in_order(one, two, where):
    """In which order the halves or thirds of the first axis stand."""
    for count, words in ((2, "halves"), (3, "thirds")):
        if len(one) % count:
            continue
        parts, others = (np.split(x, count) for x in (one, two))
        places = [next((str(place) for place, part in enumerate(parts)
                        if np.array_equal(part, other)), "")
                  for other in others]
        if all(places) and len({*places}) == count:
            return (f": its {words}{where and f' along {where}'} are a's in "
                    f"the order {', '.join(places)}")
    return ""


def _sizes_exchanged(one, two, where):
    """Which two sizes that the first axis is made of are exchanged."""
    first, there = (x.reshape(len(x), -1)[:, 0] for x in (one, two))
    for sizes in _factors(len(one), 4):
        p, q, r, s = sizes
        if q > 1 and r > 1 and all(np.array_equal(x.reshape(
                *sizes, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape), y)
                for x, y in ((first, there), (one, two))):
            in_a, in_b = (" ".join(str(size) for size in each if size > 1)
                          for each in (sizes, (p, r, q, s)))
            what = f": {where or 'its axis'} is [{in_a}]"
            return f"{what} in a and [{in_b}] in b" if (
                in_a != in_b) else f"{what}, and these exchanged"
    return ""


def _factors(size, count):
    """Yield all lists of so many whole numbers of which size is the product."""
    if count == 1:
        yield [size]
        return
    for first in range(1, size + 1):
        if not size % first:
            for rest in _factors(size // first, count - 1):
                yield [first, *rest]


def relation(mine, other, dtype, heads=None):
    """How b's array is made of a's.

    Args:
        mine, other: a's array and b's; None where it has none.
        dtype: in which they were computed with.
        heads: how many there are, where the arrays are of an attention.

    Returns:
        The catalogue's word, and the whole in words; ("", "") where they are
        equal.
    """
    if mine is None or other is None:
        present = other if mine is None else mine
        if mine is other or not present.any():
            return "", ""
        return "missing", f"missing in {'a' if mine is None else 'b'}"
    if mine.shape != other.shape:
        return OTHER, OTHER
    eps = EPS.get(dtype, EPS["float64"])
    gap, least = np.abs(mine - other), eps * np.abs(mine).max(initial=0)
    if gap.max(initial=0) <= least:
        return "", ""
    return (_constant(mine, other) or _rounded(mine, other, eps)
            or _rearranged(mine, other, heads) or _by_a_number(
                mine, other, eps)) or (DIFFERENT, (
            f"{DIFFERENT}: {np.count_nonzero(gap > least)} of {mine.size} "
            f"numbers, by up to {number(float(gap.max()))}"))


def _constant(mine, other):
    """That one of two arrays was left as it was made."""
    for word, side, is_so in (
            ("zero", "b", not other.any()),
            ("one everywhere", "b", (other == 1).all()),
            ("zero", "a", not mine.any())):
        if is_so:
            return word, f"{word} in {side}"
    return None


def _rounded(mine, other, eps):
    """That one is the other in a lower dtype."""
    for name in LOWER:
        for side, one, two in (("b", mine, other), ("a", other, mine)):
            if EPS[name] > eps and np.array_equal(rounded(one, name), two):
                return f"rounded to {name}", f"rounded to {name} in {side}"
    return None


def _rearranged(mine, other, heads):
    """That both hold the same numbers."""
    if mine.ndim == 2 and mine.shape[0] == mine.shape[1] and (
            np.array_equal(mine.T, other)):
        return "transposed", "transposed"
    if mine.ndim == 2 and np.array_equal(other[:, ::-1], mine):
        return REVERSED, f"in b {REVERSED}"
    if regrouped(mine, other, heads):
        return GROUPED, f"in b {GROUPED}"
    if reordered(mine, other):
        return ORDER, f"in b {ORDER}{order_in_words(mine, other)}"
    return None


def _by_a_number(mine, other, eps):
    """That one is the other times a number, or with a number added."""
    factor, size = factor_of(mine, other), np.abs(other).max()
    if np.abs(mine * factor - other).max() <= 8 * eps * size:
        return MULTIPLE, f"{apart(factor, 1.0)[0]} {MULTIPLE} in b"
    more = float((other - mine).mean())
    if mine.size > 1 and np.abs(mine + more - other).max() <= 8 * eps * max(
            size, abs(more)):
        word = "smaller" if more < 0 else "larger"
        return SHIFTED, f"{word} by {apart(abs(more), 0.0)[0]} in b"
    return None


def permuted(arrays, others):
    """How arrays of one shape are exchanged among their names.

    Args:
        arrays, others: {name: array or None} of a and of b.

    Returns:
        A list of {name in b: name in a}, each a swap or a cycle of three.
    """
    same = {one: [two for two in arrays if arrays[two] is not None
                  and np.array_equal(others[one], arrays[two])]
            for one in others if others[one] is not None}
    rings, left = [], [one for one in same if same[one]
                       and one not in same[one]]
    while left:
        ring = [left[0]]
        while len(ring) < 4 and same.get(ring[-1]) and (
                same[ring[-1]][0] not in ring):
            ring.append(same[ring[-1]][0])
        closed = same.get(ring[-1], [None])[:1] == ring[:1]
        if closed and len(ring) in (2, 3):
            rings.append({one: same[one][0] for one in ring})
        left = [one for one in left if one not in ring]
    return rings
