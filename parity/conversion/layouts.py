"""Layouts of what is taken, cut, joined: those that are tried.

The cuts take out of what a layer gives what a part of its weights gave.
"""

import functools
import itertools
import math

import numpy as np

from parity.matching.rearrangement import (
    SAME, candidates, parsed, rearranged)

#: By how many rows a table may be longer, which nobody reads.
SPARE_ROWS = 8

#: Of arrays with more numbers it is not counted which a part has.
LARGEST = 1 << 20


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


@functools.cache
def places(shape, layout):
    """bool [size]: which numbers of an array a layout takes."""
    taken = np.zeros(math.prod(shape), bool)
    taken[rearranged(layout, np.arange(taken.size).reshape(shape))] = True
    return taken


@functools.cache
def overlap(shape, one, two):
    """Whether two layouts of an array, "" for all of it, take one number of
    it both; of large arrays only whether they are equal."""
    if not one or not two or one == two:
        return True
    return math.prod(shape) <= LARGEST and bool(
        (places(shape, one) & places(shape, two)).any())


def last_part(which, count, array):
    return np.split(array, count, -1)[which - 1]


def last_every(which, count, array):
    return array[..., which - 1::count]


def last_slice(start, stop, array):
    return array[..., start:stop]


def parts(shape, count):
    """Yield (layout, cost, cut, shape) of the parts of a packed array, which
    stand one after another; two of them may be interleaved."""
    for axis, length in enumerate(shape):
        if length % count:
            continue
        rest = (*shape[:axis], length // count, *shape[axis + 1:])
        apart = (*rest[:axis + 1], count, *rest[axis + 1:])
        for which in range(1, count + 1):
            yield (f"part {which} of {count} along {axis}", 0.1 * which,
                   functools.partial(last_part, which, count), rest)
            if count == 2:
                yield (f"reshape {words(apart)}, part {which} of {count} along "
                       f"{axis + 1}, reshape {words(rest)}", 0.3 + 0.1 * which,
                       functools.partial(last_every, which, count), rest)


def slices(shape, target, place=lambda count: None):
    """Yield (layout, cost, cut, shape) of what is cut out of one axis.

    Args:
        place: of a number of equal slices gives the one that the name of the
            target says, such as an expert's of all that stand one after
            another; or None.
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
            number = None if length % width else place(length // width)
            if number is None:
                continue
            starts = {number * width}
        for start in sorted(starts):
            suffix = len(shape) == 2 and length - width <= SPARE_ROWS and start
            yield (f"slice {start} {start + width} along {axis}",
                   0.5 if suffix else 1,
                   functools.partial(last_slice, start, start + width), rest)


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
        count = len(arrays)
        every = tuple(functools.partial(last_every, which, count)
                      for which in range(1, count + 1))
        for i, layouts in enumerate(alike_layouts(arrays, pieces)):
            yield layouts, f"concatenate {axis}", SAME, 0.1 * i, cuts
            if len(set(pieces)) == 1 and lengths[0] > 1 and all(
                    array.ndim == len(target) for array in arrays):
                yield (layouts, f"stack {axis + 1}",
                       f"reshape {words(target)}", 0.3 + 0.1 * i, every)


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
