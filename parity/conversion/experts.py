"""Experts, which one library packs into an array and another has as a list.

An expert's place is a number in names. Names may have several numbers, as
``layers.1.experts.0.w3`` has: the expert's is the one of which, with all else
the same, there are as many as there are experts.
"""

import functools
import itertools
import math
import re

from parity.conversion.layouts import then, words
from parity.conversion.weight_source import numberless
from parity.matching.rearrangement import SAME, candidates, parsed


#: A number that no letter stands before.
ALONE = "(?<![A-Za-z0-9])[0-9]+"


class Numbered:
    """Names that are alike but for one number.

    Args:
        names: of parameters.

    Attributes:
        lists: (what stands before the number, and behind it) -> {number:
            name}, of numbers from 0 on of which none is left out.
    """

    def __init__(self, names):
        self.names = {*names}
        found: dict = {}
        for name in names:
            for match in re.finditer("[0-9]+", name):
                found.setdefault(
                    (name[:match.start()], name[match.end():]), {})[
                    int(match[0])] = name
        self.lists = {key: each for key, each in found.items()
                      if len(each) > 1 and {*each} == {*range(len(each))}}

    def is_expert(self, name, shape, of, packed):
        """Whether a name is of one of all whose arrays are in ``packed``.

        Args:
            shape: of the array that is made.
            of: the name of all.
            packed: the shape of all.
        """
        return len(packed) == len(shape) + 1 and self.place(
            name, packed[0]) is not None and len(numbers(of)) < len(
            numbers(name))

    def place(self, name, count):
        """Which of ``count`` a name says, or None where it says none."""
        for match in reversed([*re.finditer("[0-9]+", name)]):
            if len(self.lists.get((name[:match.start()], name[match.end():]),
                                  ())) == count:
                return int(match[0])
        return None

    @functools.cache
    def mixed(self, one, two):
        """Whether two names are of experts, or layers, that are not in order;
        or of other ones, and of unlike parts of them, though the second has a
        part like the first."""
        before, after = numbers(one), numbers(two)
        if before == after or len(before) != len(after):
            return False
        if numberless(one) == numberless(two):
            return before > after
        left = map(str, after)
        return re.sub(ALONE, lambda match: next(left), one) in self.names

    def packs(self, size, shapes):
        """Yield the lists of names that fill an array of ``size`` numbers,
        alone or two by two: [names of expert 0, names of expert 1, …].

        Args:
            size: of the array.
            shapes: name -> shape.
        """
        whole, halves = [], []
        for (before, _), names in self.lists.items():
            each = [names[i] for i in range(len(names))]
            if len({shapes.get(name) for name in each}) == 1 and (
                    shapes.get(each[0])):
                filled = len(each) * math.prod(shapes[each[0]])
                whole += [[(name,) for name in each]] * (filled == size)
                halves += [(before, each)] * (2 * filled == size)
        yield from whole
        for (one, first), (two, second) in itertools.permutations(halves, 2):
            if one == two and shapes[first[0]] == shapes[second[0]]:
                yield [*zip(first, second)]


def numbers(name):
    """The numbers in a name before which no letter stands."""
    return [int(number) for number in re.findall(ALONE, name)]


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
        start = f"slice {i} {i + 1} along 0, reshape {words(rest)}"
        cost = 0.3 + 0.05 * i if number is None else 0
        if math.prod(rest) == math.prod(target):
            for more, layout in enumerate(candidates(rest, target)):
                yield then(start, layout), cost + 0.2 * more
            continue
        for axis, half in halves(rest, target):
            pairs = (*half[:axis + 1], 2, *half[axis + 1:])
            for which, (apart, more) in itertools.product((1, 2), (
                    (f"part {{}} of 2 along {axis}", 0.0),
                    (f"reshape {words(pairs)}, part {{}} of 2 along "
                     f"{axis + 1}, reshape {words(half)}", 0.3))):
                part = f"{start}, {apart.format(which)}"
                for i, layout in enumerate(candidates(half, target)):
                    yield (then(part, layout),
                           cost + 0.1 * which + more + 0.2 * i)


def packed(one, each, count, target):
    """Yield (layout, cost, whether two are interleaved) that makes the array
    of all experts of theirs.

    Args:
        one: the shape of one array of an expert.
        each: how many arrays an expert has, 1 or 2.
        count: how many experts there are.
        target: the shape that is made: all experts along the first axis, or
            all rows of all one after another.
    """
    flat = len(target) == len(one) and target[0] % count == 0
    if not flat and (len(target) != len(one) + 1 or target[0] != count):
        return
    rest = (target[0] // count, *target[1:]) if flat else target[1:]
    end = f"reshape {words(target)}"
    if each == 1:
        for i, layout in enumerate(candidates(one, rest)):
            made = _inside(layout, (count,))
            yield (then(made, end) if flat else made), 0.2 * i, False
        return
    start = f"reshape {words((count, 2, *one))}"
    for axis, half in halves(rest, one):
        for i, layout in enumerate(candidates(one, half)):
            inside = then(start, _inside(layout, (count, 2)))
            for near, more in ((axis, 0.0), (axis + 1, 0.3)):
                order = [*range(2, 2 + len(half))]
                order.insert(near, 1)
                moved = ("" if order[0] == 1
                         else f"transpose {words([0, *order])}")
                yield (", ".join(filter(None, (inside, moved, end))),
                       more + 0.2 * i, near > axis)


def halves(shape, target):
    """Yield (axis, shape) of the halves of a shape that have the target's
    lengths, in any order."""
    for axis, length in enumerate(shape):
        half = (*shape[:axis], length // 2, *shape[axis + 1:])
        if length % 2 == 0 and sorted(half) == sorted(target):
            yield axis, half


def _inside(layout, outer):
    """A layout of every array of several, which ``outer`` axes count."""
    if layout == SAME:
        return SAME
    more = len(outer)
    return ", ".join(
        f"{word} {words(outer if word == 'reshape' else range(more))} "
        + words(number + more * (word == "transpose") for number in numbers)
        for word, numbers in parsed(layout))
