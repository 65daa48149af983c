"""Two masks of the same queries and keys: what one sees and the other not."""

import numpy as np

#: A score below this is hidden.
HIDDEN = -1e3


def seen_of(array, own):
    """What a mask lets be seen, bool [… c n]; None if it is no mask.

    Args:
        array: booleans; numbers of which those far below zero are hidden; or
            weights, of which those that are zero are.
        own: bool [c n], each query's own key, which it sees.
    """
    if array.dtype == bool or np.isin(array, (0, 1)).all() and array.any():
        array = array.astype(bool)
        seen = array
    elif array.dtype.kind == "f" and (array <= HIDDEN).any():
        seen = array > HIDDEN
    elif are_weights(array):
        seen = array > 0
    elif array.dtype.kind == "f" and not array.any():
        seen = np.ones(array.shape, bool)  # nothing is hidden
    else:
        return None
    there = np.broadcast_to(own, seen.shape)
    if array.dtype == bool and not seen[there].any():
        return ~seen
    return seen


def are_weights(array):
    """Whether an array [… c n] is of softmax's weights."""
    return array.dtype.kind == "f" and array.size > 0 and bool(
        (array >= 0).all() and np.allclose(array.sum(-1), 1, atol=1e-4))


def _shifted(mine, array, whole):
    """Whether scores that the whole sees are the read's, each row of them
    more by one number, as by its largest."""
    with np.errstate(all="ignore"):
        gap = np.where(whole, mine - array, np.nan)
        size = np.abs(np.where(whole, array, 0)).max(initial=0)
        return mine.shape == array.shape and whole.any(-1).all() and bool(
            (np.nanmax(gap, -1) - np.nanmin(gap, -1) <= 1e-5 * size).all())


def _renormalised(mine, array, whole):
    """Whether weights are the whole's once those that it hides are zero."""
    kept = np.where(whole, mine, 0)
    with np.errstate(all="ignore"):
        return np.allclose(kept / kept.sum(-1, keepdims=True), array,
                           rtol=1e-4, atol=1e-6)


def difference(mine, array, start, stop, padding=None):
    """What a read's mask has wrong: the cause in words, and a sentence.

    Args:
        mine: the read's [… c n].
        array: what the whole has there.
        start, stop: the places of the queries.
        padding: bool [rows T], which places are; or None.
    """
    count = stop - start
    if mine.ndim < 2 or mine.shape[-2] != count or (
            mine.dtype.kind not in "bfiu"):
        return "", ""
    if mine.shape[-1] != array.shape[-1] or count == mine.shape[-1] and start:
        return "", ""
    keys = mine.shape[-1]
    first = max(0, stop - keys)  # a static cache begins with place 0
    query = np.arange(start, stop)[:, None]
    key = np.arange(first, first + keys)[None]
    whole = seen_of(array, key == query)
    if whole is None:
        return "", ""
    part = _alike(seen_of(mine, key == query), mine, array, whole)
    if part is None and mine.dtype.kind == "f" and _shifted(
            mine, array, whole):
        part = np.ones(mine.shape, bool)  # scores of which none is hidden
    if part is None or part.shape != whole.shape or are_weights(array) and (
            not _renormalised(mine, array, whole)):
        return "", ""
    whole, part = (each.reshape(-1, count, keys) for each in (whole, part))
    shown, seen = whole, part
    rows = np.flatnonzero((whole != part).any((1, 2)))
    if not len(rows):
        return "", ""
    other = next((row for row in range(len(whole)) if np.array_equal(
        part[rows[0]], whole[row])), None)
    whole, part = whole[rows[0]], part[rows[0]]
    causal = key <= query
    sentence = _sentence(whole, part, start, first)
    if count > 1 and np.array_equal(part, np.tri(count, keys, dtype=bool)):
        return "the causal mask has not the offset of what is kept", (
            f"Queries are counted from 0, and not from {start}. {sentence}")
    if (part & ~causal)[:, :stop - first].any() and not (whole & ~causal).any():
        return "tokens that are read at once see those behind them", sentence
    if other is not None:
        return "the mask is another row's", (
            f"Of {len(shown)} masks {rows[0]} is {other} of the whole. "
            f"{sentence}")
    if _pads_alone(shown, seen, padding, first):
        return "the mask does not hide padding", sentence
    widths = _width(whole, query, key), _width(part, query, key)
    if widths[0] and widths[1] and widths[0] != widths[1]:
        off = abs(widths[0] - widths[1]) == 1
        return (f"the window is {'off by one' if off else 'another'}",
                f"It is {widths[1]} tokens with the cache and {widths[0]} "
                f"in the whole. {sentence}")
    return "the mask is another", sentence


def _pads_alone(whole, part, padding, first):
    """Whether all that a read sees more than the whole is padding."""
    if padding is None or len(whole) % len(padding):
        return False
    hidden = padding[:, None, first:first + whole.shape[-1]].repeat(
        len(whole) // len(padding), 0)
    return not (whole & ~part).any() and not (part & ~whole & ~hidden).any()


def _alike(seen, mine, array, whole):
    """What the read's mask shows, turned as the whole's is."""
    if seen is None or not (mine.dtype == bool or np.isin(
            mine, (0, 1)).all() and array.any()):
        return seen
    array, mine = array.astype(bool), mine.astype(bool)
    turned = not np.array_equal(array, whole)
    return ~mine if turned else mine


def _width(seen, query, key):
    """How many keys the widest query sees, if all that are seen are the last
    ones before it; 0 if not."""
    width = int(seen.sum(-1).max(initial=0))
    band = (key <= query) & (query - key < width)
    return width if np.array_equal(seen, band) else 0


def _sentence(whole, part, start, first):
    """Which key a query sees in one alone."""
    row, column = (int(each[0]) for each in np.nonzero(whole != part))
    does = "does not see" if whole[row, column] else "sees"
    other = "sees" if whole[row, column] else "does not see"
    return (f"The token at place {start + row} {does} place {first + column}, "
            f"which in the whole it {other}.")
