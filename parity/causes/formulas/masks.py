"""Masks [… query, key], True where a query may attend, and what is done to
them by mistake."""

import numpy as np


class Window(int):
    """How many places a query sees, its own and those before it."""

    def __str__(self):
        return f"{int(self)} seen, to the place itself"


#: Where nothing is hidden for being far back; another window's word if it is
#: by one place another.
ALL, BY_ONE = "none", "one place wider or narrower"

#: Of more places not every window is tried.
FEW = 40


def back(queries, keys):
    """How far a key is before a query, whose last are at one place."""
    return np.arange(queries)[:, None] - np.arange(keys) + max(
        keys - queries, 0)


def behind(queries, keys, window):
    """True where a key is a query's own, or one of those before it."""
    distance = back(queries, keys)
    return (distance >= 0) & (distance < window)


def windows(seen, says):
    """The Windows that a module may have, first as it says."""
    length = max(seen.x.shape[:-1], default=1)
    sizes = range(1, length) if length <= FEW else [
        size + more for size in (2**n for n in range(3, 14))
        for more in (0, 1, -1) if size < length]
    if isinstance(says, int) and says > 0:
        sizes = [*(says + more for more in (0, 1, -1)), *sizes]
    return [Window(size) for size in dict.fromkeys(sizes) if size > 0]


def windows_apart(mine, other):
    """The windows of two masks that differ in nothing else.

    Returns:
        What it is in a, in b, and the catalogue's word for b's; None if they
        differ otherwise.
    """
    if is_padding(mine) and is_padding(other):
        return None
    distance = back(*mine.shape[-2:])
    for far, sides in ((distance, ""), (np.abs(distance), " to each side")):
        sizes = [int(np.where(mask, far, -1).max(initial=-1)) + 1
                 for mask in (mine, other)]
        near = far < min(sizes)
        if sizes[0] == sizes[1] or not min(sizes) or not np.array_equal(
                mine & near, other & near):
            continue
        told = [f"{size}{sides}" if (
            (far >= size) & mask.any(-2, keepdims=True)).any() else ALL
                for size, mask in zip(sizes, (mine, other))]
        return *told, BY_ONE if abs(sizes[0] - sizes[1]) == 1 and (
            ALL not in told) else told[1]
    return None


def _diagonal(mask, offset):
    queries, keys = mask.shape[-2:]
    return np.eye(queries, keys, offset, dtype=bool)


def is_padding(mask):
    """Whether a mask is alike for all queries."""
    return (mask == mask[..., :1, :]).all()


def for_each_query(mask):
    """A mask of one row for all queries as one of several rows."""
    *more, queries, keys = mask.shape
    return mask if queries > 1 else np.broadcast_to(
        mask, (*more, max(keys, 2), keys))


def future(mask):
    """Where a key is later than its query."""
    return ~np.tril(np.ones(mask.shape[-2:], bool))


def ignored(mask):
    """Everything may be attended to."""
    return np.ones_like(mask)


def inverted(mask):
    """True hides."""
    return ~mask


def with_future(mask):
    """No key is hidden for being later; as it is, where none is."""
    return mask if is_padding(mask) else mask | future(mask)


def without_future(mask):
    """Every later key is hidden as well."""
    return mask & ~future(mask)


def with_next(mask):
    """The next key is seen as well."""
    return mask | _diagonal(mask, 1)


def without_itself(mask):
    """A query's own key is hidden as well."""
    return mask & ~_diagonal(mask, 0)


def in_words(mine, other, causes):
    """What b's mask does, in words, where it is another than a's.

    Args:
        mine, other: bool, [… query, key].
        causes: {words: function of a mask}, the ones to be tried in order.
    """
    one, two = map(for_each_query, (mine, other))
    for words, function in causes.items():
        if words == "ignored" and np.array_equal(
                with_future(one), two) or words == "turned round" and (
                    mine.all()):
            continue
        if np.array_equal(function(one), two):
            return f"{words} in b"
    if mine.all():
        return "something is hidden in b, and nothing in a"
    return f"another at {(mine != other).sum()} of {mine.size} places"


def placed(array, name, batch, queries, keys):
    """A mask as [batch, 1 or heads, query, key]."""
    shape = array.shape
    if array.ndim == 2:
        rows = "padding" in name or shape != (queries, keys)
        if rows and shape == (batch, keys):
            return array[:, None, None]
        if shape == (queries, keys):
            return array[None, None]
    if array.ndim == 3 and shape[0] in (1, batch):
        array = array[:, None]
    elif array.ndim == 3 and batch and not shape[0] % batch:
        array = array.reshape(batch, -1, *shape[1:])
    if array.ndim == 4 and all(size in (1, whole) for size, whole in zip(
            (array.shape[0], *array.shape[2:]), (batch, queries, keys))):
        return array
    raise ValueError  # it is not of these sizes, or of no such form


def among(arrays):
    """The masks among a module's inputs that are no features."""
    return {name: array for name, array in arrays.items()
            if array.ndim > 1 and ("mask" in name or array.dtype.kind in "bf")}
