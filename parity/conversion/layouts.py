"""Layouts of what is taken, cut, joined: those that are tried.

The cuts take out of what a layer gives what a part of its weights gave.
"""

import functools
import itertools
import math

import numpy as np

from parity.matching.rearrangement import SAME, candidates, parsed

#: By how many rows a table may be longer, which nobody reads.
SPARE_ROWS = 8


def kind_of(layout):
    """A layout without its sizes."""
    return tuple((word, numbers if word == "transpose" else len(numbers))
                 for word, numbers in parsed(layout))


def is_turn(axes):
    """Whether a transposition takes the first axes to the end, in order."""
    return axes != tuple(range(len(axes))) and all(
        after == (before + 1) % len(axes)
        for before, after in itertools.pairwise(axes))


def turned_round(layout):
    """Whether a layout takes the first axes to the end."""
    return any(word == "transpose" and is_turn(numbers)
               for word, numbers in parsed(layout))


def then(first, second):
    """Two layouts as one."""
    return ", ".join(each for each in (first, second) if each != SAME) or SAME


def last_part(which, count, array):
    return np.split(array, count, -1)[which - 1]


def last_slice(start, stop, array):
    return array[..., start:stop]


def parts(shape, count):
    """Yield (layout, cost, cut, shape) of the parts of a packed array."""
    for axis, length in enumerate(shape):
        if length % count:
            continue
        rest = (*shape[:axis], length // count, *shape[axis + 1:])
        for which in range(1, count + 1):
            yield (f"part {which} of {count} along {axis}", 0.1 * which,
                   functools.partial(last_part, which, count), rest)


def slices(shape, target, number=None):
    """Yield (layout, cost, cut, shape) of what is cut out of one axis.

    Args:
        number: which of many equal slices the name of the target says, such
            as an expert's of all that stand one after another; or None.
    """
    size = int(np.prod(target))
    for axis, length in enumerate(shape):
        if len(shape) != len(target):
            return
        others = int(np.prod(shape)) // max(length, 1)
        width, odd = divmod(size, max(others, 1))
        if odd or not 0 < width < length:
            continue
        rest = (*shape[:axis], width, *shape[axis + 1:])
        starts = {0, length - width, *range(0, length - width + 1, width)}
        if len(starts) > 9:
            if number is None or length % width or (
                    (number + 1) * width > length):
                continue
            starts = {number * width}
        for start in sorted(starts):
            suffix = len(shape) == 2 and length - width <= SPARE_ROWS and start
            yield (f"slice {start} {start + width} along {axis}",
                   0.5 if suffix else 1,
                   functools.partial(last_slice, start, start + width), rest)


def expert(shape, target, number):
    """Yield (layout, cost) of one expert's array, or a half of it.

    Args:
        shape: of the array of all experts, which stand along the first axis.
        target: the shape that is made.
        number: which expert the name of the target says, or None.
    """
    if len(shape) != len(target) + 1 or shape[0] < 2 or math.prod(
            shape[1:]) not in (math.prod(target), 2 * math.prod(target)):
        return
    rest = shape[1:]
    for i in range(shape[0]) if number is None else [number]:
        if i >= shape[0]:
            continue
        start = f"slice {i} {i + 1} along 0, reshape {words(rest)}"
        cost = 0.3 + 0.05 * (number is None) * i
        if math.prod(rest) == math.prod(target):
            for more, layout in enumerate(candidates(rest, target)):
                yield (start if layout == SAME else f"{start}, {layout}",
                       cost + 0.2 * more)
            continue
        for axis, length in enumerate(rest):
            half = (*rest[:axis], length // 2, *rest[axis + 1:])
            if length % 2 or sorted(half) != sorted(target):
                continue
            pairs = (*rest[:axis], length // 2, 2, *rest[axis + 1:])
            for which, (apart, more) in itertools.product((1, 2), (
                    (f"part {{}} of 2 along {axis}", 0.0),
                    (f"reshape {words(pairs)}, part {{}} of 2 along "
                     f"{axis + 1}, reshape {words(half)}", 0.3))):
                part = f"{start}, {apart.format(which)}"
                for i, layout in enumerate(candidates(half, target)):
                    yield (part if layout == SAME else f"{part}, {layout}",
                           cost + 0.1 * which + more + 0.2 * i)


def joins(arrays, target):
    """Yield (layouts, join, layout, cost, cuts) that make one of several."""
    sizes = [array.size for array in arrays]
    size = sum(sizes)
    for axis, length in enumerate(target):
        others = size // length
        if any(each % others for each in sizes):
            continue
        lengths = [each // others for each in sizes]
        pieces = [(*target[:axis], each, *target[axis + 1:])
                  for each in lengths]
        ends = list(itertools.accumulate(lengths))
        cuts = tuple(functools.partial(last_slice, end - each, end)
                     for each, end in zip(lengths, ends))
        for i, layouts in enumerate(alike_layouts(arrays, pieces)):
            yield layouts, f"concatenate {axis}", SAME, 0.1 * i, cuts


def alike_layouts(arrays, shapes):
    """Yield layouts of one kind for all, the simplest first."""
    by_kind = [{kind_of(layout): layout for layout in reversed(list(
        candidates(array.shape, shape)))}
        for array, shape in zip(arrays, shapes)]
    for kind in reversed(list(by_kind[0])):
        if all(kind in each for each in by_kind):
            yield [each[kind] for each in by_kind]


def words(numbers):
    return " ".join(map(str, numbers))
