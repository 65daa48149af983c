"""Whether what is kept is made ready as a read asks for it.

Before a read its rows may be to change places, as beams do, or its last places
to go. Both are a function's of the model or of what it keeps, which is called
by itself here.
"""

import dataclasses
import itertools

import numpy as np

from parity.invariants.uses import cropped


def not_reordered(asker, use, number):
    """What is proved of rows that do not change places: sentences."""
    try:
        with_order = [*itertools.islice(asker.plain(use), number + 1)][-1]
        without = [*itertools.islice(asker.plain(
            use, ordered=False), number + 1)][-1]
    except Exception:  # without it, there may be other rows than asked
        return []
    if _equal(with_order, without):
        return ["rows of what is kept are not reordered: the answer is the "
                "same without reordering."]
    return wrong(asker, use, number)


def wrong(asker, use, number):
    """What is proved of rows that were to change places before a Read, or
    of places that were to go: a sentence."""
    kept, read = asker.keeping, use.reads[number]
    if read.order is None and read.cut is None:
        return []
    try:
        before, after, own = _around(asker, use, number)
    except Exception:  # without it, there may be other rows than asked
        return []
    if read.cut is not None:
        return _cut(before, after, read.cut)
    left = [name for name, axis in kept.row_axes.items()
             if name in before and name in after
             and not np.array_equal(np.take(
                 before[name], list(read.order), axis), after[name])]
    return [] if not own or not left else [
        "rows are not reordered in all that is kept: not in "
        f"{', '.join(name.removeprefix('kept.') for name in left)}."]


def _around(asker, use, number):
    """What is kept before and after it is made ready for a Read; and
    whether that is the model's own doing."""
    kept, read = asker.keeping, use.reads[number]
    reads = tuple(dataclasses.replace(each, order=None, cut=None)
                  if i == number else each
                  for i, each in enumerate(use.reads))
    with kept.call.put_back():
        *_, (_, state) = asker.answers(
            dataclasses.replace(use, reads=reads), until=number)
        before, own = {name: np.array(array) for name, array in
                       kept.arrays(state).items()}, True
        if read.order is None:
            state = cropped(state, read.cut, asker.length(use))
        else:
            state, own = kept.reordered(asker.model, state, read.order)
        return before, kept.arrays(state), own


def _cut(before, after, size):
    """A sentence on arrays that were cut back to other places than the first,
    if some were.

    Args:
        before, after: {name: array} of what is kept.
        size: how many places were to stay.
    """
    for name, array in before.items():
        made = after.get(name)
        if made is None or made.ndim != array.ndim:
            continue
        axes = [i for i, sizes in enumerate(zip(array.shape, made.shape))
                if sizes[0] != sizes[1]]
        if len(axes) != 1 or array.shape[axes[0]] <= size:
            continue
        axis, count = axes[0], made.shape[axes[0]]
        for first in range(array.shape[axis] - count + 1):
            there = np.take(array, range(first, first + count), axis)
            if np.array_equal(there, made) and (first or count != size):
                return ["what is kept is cut back to other places: to "
                        f"{first} to {first + count - 1}, and not to 0 to "
                        f"{size - 1}, in {name.removeprefix('kept.')}."]
    return []


def _equal(one, two):
    """Whether two answers have the same arrays."""
    return one.keys() == two.keys() and all(
        np.array_equal(array, two[name]) for name, array in one.items())
