"""How one array is stored as another: named rearrangements, never silent ones.

A layout is a text: ``same``, or operations one after the other, separated
by commas:

    transpose 1 0           the axes in this order, as numpy.transpose
    reshape 48 6 8          in C order, as numpy.reshape
    part 2 of 3 along 0     the second third along axis 0
    slice 2 18 along 0      from place 2 up to, without, 18 along axis 0

so that ``part 1 of 3 along 0, transpose 1 0`` takes the query's kernel out of
torch's packed ``in_proj_weight``.
"""

import itertools
import math
import re

import numpy as np

from parity_io.errors import InputError
from parity.numerics.distance import finite_distance

SAME = "same"

#: How many elements are compared before a whole array is.
PROBES = 61

#: How many parts a packed array may have, and heads an interleaved one.
PACKED, MOST_HEADS = (2, 3), 64


def parsed(layout):
    """A layout as a list of (word, numbers); raises InputError."""
    if layout == SAME:
        return []
    operations = []
    for text in layout.split(","):
        word, *rest = text.split() or [""]
        if word == "part" and len(rest) == 5 and rest[1::2] == ["of", "along"]:
            rest = rest[0::2]
        elif word == "slice" and len(rest) == 4 and rest[2] == "along":
            rest = [*rest[:2], rest[3]]
        elif word not in ("transpose", "reshape") or not rest:
            rest = ["?"]
        if not all(re.fullmatch("[0-9]{1,12}", number) for number in rest):
            raise InputError(
                f"the layout {layout!r} is unknown; write same, transpose 1 "
                "0, reshape 48 6 8, part 1 of 3 along 0 or slice 2 18 along "
                "0.")
        operations.append((word, tuple(map(int, rest))))
    return operations


def _shape_after(word, numbers, shape):
    """The shape after one operation, or None where it does not fit."""
    if word == "transpose":
        fits = sorted(numbers) == list(range(len(shape)))
        return tuple(shape[i] for i in numbers) if fits else None
    if word == "reshape":
        return numbers if math.prod(numbers) == math.prod(shape) else None
    if word == "slice":
        start, stop, axis = numbers
        if axis >= len(shape) or not start < stop <= shape[axis]:
            return None
        return (*shape[:axis], stop - start, *shape[axis + 1:])
    which, count, axis = numbers
    if (axis >= len(shape) or not 1 <= which <= count
            or shape[axis] % count):
        return None
    return (*shape[:axis], shape[axis] // count, *shape[axis + 1:])


def shapes(layout, shape):
    """The shape before and after each operation.

    Raises:
        InputError: an operation does not fit.
    """
    steps = [tuple(shape)]
    for word, numbers in parsed(layout):
        after = _shape_after(word, numbers, steps[-1])
        if after is None:
            raise InputError(
                f"the layout {layout!r} does not fit an array of shape "
                f"{list(shape)}; correct it.")
        steps.append(after)
    return steps


def rearranged(layout, array):
    """An array in another layout; raises InputError where it does not fit."""
    for (word, numbers), after in zip(
            parsed(layout), shapes(layout, array.shape)[1:]):
        if word == "transpose":
            array = array.transpose(numbers)
        elif word == "reshape":
            array = array.reshape(after)
        elif word == "slice":
            start, stop, axis = numbers
            array = array[(slice(None),) * axis + (slice(start, stop),)]
        else:
            which, count, axis = numbers
            array = np.split(array, count, axis)[which - 1]
    return array


def _sources(layout, shape, places):
    """Where in an array the elements of its rearrangement come from.

    Args:
        layout: a layout.
        shape: the array's.
        places: indices into the flattened rearranged array.
    """
    steps = shapes(layout, shape)
    for (word, numbers), before, after in reversed(list(zip(
            parsed(layout), steps, steps[1:]))):
        if word == "reshape":
            continue
        at = list(np.unravel_index(places, after))
        if word == "transpose":
            sources = list(at)
            for axis, source in enumerate(numbers):
                sources[source] = at[axis]
            at = sources
        elif word == "slice":
            start, _, axis = numbers
            at[axis] = at[axis] + start
        else:
            which, _, axis = numbers
            at[axis] = at[axis] + (which - 1) * after[axis]
        places = np.ravel_multi_index(at, before)
    return places


def _text(*operations):
    words = [f"{word} {' '.join(map(str, numbers))}"
             for word, numbers in operations]
    return ", ".join(words) or SAME


def candidates(shape, target):
    """The layouts that turn one shape into another, the simplest first."""
    shape, target = tuple(shape), tuple(target)
    if shape == target:
        yield SAME
    if math.prod(shape) != math.prod(target) or max(
            len(shape), len(target)) > 5:
        return
    for axes in itertools.permutations(range(len(shape))):
        transposed = tuple(shape[i] for i in axes)
        if transposed == target and axes != tuple(range(len(shape))):
            yield _text(("transpose", axes))
    if shape == target or not target or not shape:
        return
    yield _text(("reshape", target))
    if len(target) < len(shape):
        for axes in list(itertools.permutations(range(len(shape))))[1:]:
            yield _text(("transpose", axes), ("reshape", target))
    for axes in list(itertools.permutations(range(len(target))))[1:]:
        transposed = [0] * len(axes)
        for axis, source in enumerate(axes):
            transposed[source] = target[axis]
        if tuple(transposed) == shape:
            continue
        yield _text(("reshape", tuple(transposed)), ("transpose", axes))
    if len(shape) == len(target) == 2:
        return
    if len(target) >= len(shape):
        for axes in list(itertools.permutations(range(len(shape))))[1:]:
            yield _text(("transpose", axes), ("reshape", target))


def parts(shape, target):
    """The layouts that take a part of one shape and make it another.

    Halves and thirds along an axis, as packed projections are stored, and
    thirds that are interleaved head by head.
    """
    size = math.prod(target)
    for count in PACKED:
        if size == 0 or math.prod(shape) != count * size:
            continue
        for axis, length in enumerate(shape):
            if length % count:
                continue
            rest = (*shape[:axis], length // count, *shape[axis + 1:])
            for which in range(1, count + 1):
                part = _text(("part", (which, count, axis))).split()
                part = f"part {part[1]} of {part[2]} along {part[3]}"
                for layout in candidates(rest, target):
                    yield part if layout == SAME else f"{part}, {layout}"
            for heads in range(2, MOST_HEADS + 1):
                if (length // count) % heads:
                    continue
                split = (*shape[:axis], heads, count,
                         length // count // heads, *shape[axis + 1:])
                for which in range(1, count + 1):
                    start = (f"{_text(('reshape', split))}, part {which} of "
                             f"{count} along {axis + 1}, "
                             f"{_text(('reshape', rest))}")
                    for layout in candidates(rest, target):
                        yield (start if layout == SAME
                               else f"{start}, {layout}")


def probes(size):
    """Some indices of a flattened array, spread over every axis."""
    if size <= PROBES:
        return np.arange(size)
    return np.unique((np.arange(PROBES) * 0.6180339887498949 % 1 * size)
                     .astype(np.int64))


def best(array, target, layouts, limit=1e-2):
    """The layout that turns one array into another by its values.

    Args:
        array: the array to rearrange.
        target: the array that it should equal.
        layouts: those to try, the simplest first.
        limit: the largest relative distance of the values.

    Returns:
        The layout and the distance of the values compared, or None and
        infinity. Of equally near layouts the simplest is taken.
    """
    places = probes(target.size)
    expected = target.reshape(-1)[places]
    flat = array.reshape(-1)
    layout, distance = None, math.inf
    for candidate in layouts:
        current = finite_distance(
            flat[_sources(candidate, array.shape, places)], expected)
        if current < distance * (1 - 1e-9):
            layout, distance = candidate, current
            if distance == 0:
                break
    if distance > limit:
        return None, math.inf
    return layout, distance
