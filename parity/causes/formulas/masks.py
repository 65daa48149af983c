"""Masks [… query, key], True where a query may attend, and what is done to
them by mistake."""

import numpy as np


def _diagonal(mask, offset):
    queries, keys = mask.shape[-2:]
    return np.eye(queries, keys, offset, dtype=bool)


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
    """No key is hidden for being later."""
    return mask | future(mask)


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
    for words, function in causes.items():
        if words == "ignored" and np.array_equal(
                with_future(mine), other) or words == "turned round" and (
                    mine.all()):
            continue
        if np.array_equal(function(mine), other):
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
