"""Of what a parameter of B may be made, the likeliest first.

Nothing here decides: names, order and shapes say only what is tried first.
"""

import dataclasses
import functools
import heapq
import itertools
import re

import numpy as np

from parity.conversion.entry import RUN, MadeOf, Taken
from parity.matching.rearrangement import (
    MOST_HEADS, PACKED, SAME, candidates, parsed)
from parity.matching.words import likeness, words_of

#: How many sources of one parameter are kept, and how many arrays are joined.
MOST, JOINED = 60, (2, 3)

#: By how many rows a table may be longer, which nobody reads.
SPARE_ROWS = 8


@dataclasses.dataclass(frozen=True)
class MadeFrom:
    """Of what a parameter of B may be made.

    Attributes:
        entry: the MadeOf.
        cost: how unlikely it is.
        owners: the modules of A that have the pieces.
        kind: the layout without its sizes.
        cut: takes, out of what A's module gives, what B's should; or None.
        cuts: takes, out of what B's module gives, what each of A's gave.
    """

    entry: MadeOf
    cost: float
    owners: tuple
    kind: tuple
    cut: object = None
    cuts: tuple = ()

    @property
    def marks(self):
        """(name, part) of each piece, to see that none is used twice."""
        return {(piece.a, part_of(piece.layout))
                for piece in self.entry.pieces}


def part_of(layout):
    """The beginning of a layout that leaves something out; "" of a whole."""
    texts = layout.split(", ")
    last = max((i for i, text in enumerate(texts)
                if text.startswith(("part", "slice"))), default=-1)
    return ", ".join(texts[:last + 1])


def kind_of(layout):
    """A layout without its sizes."""
    return tuple((word, numbers if word == "transpose" else len(numbers))
                 for word, numbers in parsed(layout))


def is_bias(name):
    """Whether a parameter is a bias, by its name."""
    return words_of(name)[0][-1:] == ["bias"]


def then(first, second):
    """Two layouts as one."""
    return ", ".join(each for each in (first, second) if each != SAME) or SAME


def last_part(which, count, array):
    return np.split(array, count, -1)[which - 1]


def last_heads(heads, which, count, array):
    split = array.reshape(*array.shape[:-1], heads, count, -1)
    return split[..., which - 1, :].reshape(*array.shape[:-1], -1)


def last_slice(start, stop, array):
    return array[..., start:stop]


class Book:
    """What may be made of A's parameters.

    Args:
        a, b: Lives.
        left: names of A that are left out.
        order: A's modules with parameters, as they are called.
    """

    def __init__(self, a, b, left):
        self.a, self.b = a, b
        self.names = [name for name in a.names if name not in left]
        began = {}
        for step in a.trace.steps:
            began.setdefault(step.module, step.began)
        self.names.sort(key=lambda name: began.get(a.owners[name], 0))
        self.similar = dict(zip(b.names, 1 - likeness(
            list(b.names), self.names)))
        self.taken, self.learned = set(), {}
        ties = set(a.trace.aliases.values())
        self.tied = {name for name in self.names if name in ties}

    def free(self, source):
        """Whether no piece of a source is taken already."""
        for name, part in source.marks:
            if name in self.tied:
                continue
            for other, taken in self.taken:
                if other == name and (
                        not part or not taken or part == taken):
                    return False
        return True

    def take(self, source):
        """Its pieces are used; its layout is what such parameters have."""
        self.taken |= source.marks
        self.learned[self._sort(source)] = source.kind

    def give_back(self, source):
        """Its pieces are free again."""
        self.taken -= source.marks

    def _sort(self, source):
        piece = source.entry.pieces[0]
        return (piece.a.rpartition(".")[2], source.entry.b.rpartition(".")[2],
                self.a.names[piece.a].ndim, self.b.names[source.entry.b].ndim)

    def sources(self, b, near=(), wide=False):
        """The MadeFroms of one of B's parameters, the likeliest first.

        Args:
            b: its name.
            near: modules of A that were given the inputs of B's.
            wide: whether to think of modules that were not, and of packing
                head by head.
        """
        found = []
        for source in itertools.chain(
                self._single(b, near, wide), self._joined(b, near, wide)):
            if self.free(source):
                learned = self.learned.get(self._sort(source))
                extra = 0 if learned is None or learned == source.kind else 1.5
                found.append(dataclasses.replace(
                    source, cost=source.cost + extra))
        found.sort(key=lambda source: source.cost)
        return found[:MOST]

    def _likely(self, b, near, wide):
        """Yield (A's name, cost) without the layout's."""
        rank = {}
        for i, name in enumerate(self.names):
            array = self.a.names[name]
            place = rank[array.size] = rank.get(array.size, -1) + (
                (name, "") not in self.taken)
            far = 4 if near and self.a.owners[name] not in near else 0
            if far and not wide:
                continue
            mixed = 3 * (is_bias(name) != is_bias(b))
            yield name, (2 * float(self.similar[b][i]) + far + mixed
                         + min(0.1 * place, 2))

    def _single(self, b, near, wide):
        """Of one parameter of A, whole or a part of it."""
        target = self.b.names[b].shape
        size = int(np.prod(target))
        for name, cost in self._likely(b, near, wide):
            shape = self.a.names[name].shape
            count, whole = divmod(int(np.prod(shape)), max(size, 1))
            taken = [("", 0, None, shape)] if count == 1 and not whole else [
                *(parts(shape, count, wide) if not whole and count in PACKED
                  else ()), *slices(shape, target)]
            for part, more, cut, rest in taken:
                for i, layout in enumerate(candidates(rest, target)):
                    both = then(part or SAME, layout)
                    yield MadeFrom(
                        MadeOf(b, (Taken(name, both),), by=RUN),
                        cost + more + self._layout_cost(name, b, layout, i),
                        (self.a.owners[name],), kind_of(layout), cut)

    def _layout_cost(self, name, b, layout, i):
        """What the frameworks' names imply costs nothing."""
        ends = {re.split("[._]", each)[-1] for each in (name, b)}
        crossed = parsed(layout)[:1] == [("transpose", (1, 0))]
        if ends == {"weight", "kernel"} and self.a.names[name].ndim == 2:
            return (0 if crossed else 0.6) + 0.1 * i
        return 0.2 * i

    def _joined(self, b, near, wide):
        """Of two or three parameters of A."""
        target = self.b.names[b].shape
        size = int(np.prod(target))
        costs = {name: cost for name, cost in self._likely(b, near, wide)
                 if self.a.names[name].size < size}
        likely = sorted(costs, key=costs.get)[:8]
        order = {name: i for i, name in enumerate(self.names)}
        for count in JOINED:
            for names in itertools.permutations(likely, count):
                arrays = [self.a.names[name] for name in names]
                if sum(array.size for array in arrays) != size:
                    continue
                turned = sum(order[one] > order[two] for one, two
                             in itertools.combinations(names, 2))
                cost = (sum(costs[name] for name in names) / count + 0.3
                        + 0.05 * turned)
                for join in joins(arrays, target, wide):
                    pieces, word, whole, more, cuts = join
                    owners = tuple(self.a.owners[name] for name in names)
                    yield MadeFrom(
                        MadeOf(b, tuple(map(Taken, names, pieces)), word,
                              whole, RUN), cost + more, owners,
                        kind_of(pieces[0]), cuts=cuts)


def parts(shape, count, wide):
    """Yield (layout, cost, cut, shape) of the parts of a packed array."""
    for axis, length in enumerate(shape):
        if length % count:
            continue
        rest = (*shape[:axis], length // count, *shape[axis + 1:])
        for which in range(1, count + 1):
            yield (f"part {which} of {count} along {axis}", 0.1 * which,
                   functools.partial(last_part, which, count), rest)
            for heads in range(2, MOST_HEADS + 1) if wide else ():
                if length // count % heads or length // count == heads:
                    continue
                split = (*shape[:axis], heads, count, length // count // heads,
                         *shape[axis + 1:])
                yield (f"reshape {words(split)}, part {which} of {count} "
                       f"along {axis + 1}, reshape {words(rest)}",
                       1.5 + 0.1 * which + 0.01 * heads,
                       functools.partial(last_heads, heads, which, count),
                       rest)


def slices(shape, target):
    """Yield (layout, cost, cut, shape) of what is cut out of one axis."""
    size = int(np.prod(target))
    for axis, length in enumerate(shape):
        others = int(np.prod(shape)) // max(length, 1)
        width, odd = divmod(size, max(others, 1))
        if odd or not 0 < width < length:
            continue
        rest = (*shape[:axis], width, *shape[axis + 1:])
        starts = {0, length - width, *range(0, length - width + 1, width)}
        if len(starts) > 9:
            continue
        for start in sorted(starts):
            suffix = len(shape) == 2 and length - width <= SPARE_ROWS and start
            yield (f"slice {start} {start + width} along {axis}",
                   0.5 if suffix else 1,
                   functools.partial(last_slice, start, start + width), rest)


def joins(arrays, target, wide):
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
            yield layouts, f"concatenate {axis}", SAME, 0.3 * i, cuts
            if len(set(lengths)) > 1 or not wide:
                continue
            for heads in range(2, min(MOST_HEADS, lengths[0] - 1) + 1):
                if lengths[0] % heads:
                    continue
                split = (*target[:axis], heads, lengths[0] // heads,
                         *target[axis + 1:])
                yield ([then(layout, f"reshape {words(split)}")
                        for layout in layouts], f"stack {axis + 1}",
                       f"reshape {words(target)}",
                       1.5 + 0.3 * i + 0.01 * heads, tuple(
                           functools.partial(last_heads, heads, which,
                                             len(arrays))
                           for which in range(1, len(arrays) + 1)))


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


def cheapest(lists):
    """Yield tuples with one of each list, the cheapest sum first.

    Args:
        lists: of what has a cost, each sorted by it.
    """
    if not all(lists):
        return
    heap, known = [], set()

    def push(places):
        if places in known or any(
                i >= len(each) for i, each in zip(places, lists)):
            return
        known.add(places)
        total = sum(each[i].cost for i, each in zip(places, lists))
        heapq.heappush(heap, (total, places))
    push((0,) * len(lists))
    while heap:
        _, places = heapq.heappop(heap)
        yield tuple(each[i] for i, each in zip(places, lists))
        for i in range(len(places)):
            push((*places[:i], places[i] + 1, *places[i + 1:]))


def reordered(source, shape, width, pairs, axis):
    """A MadeFrom whose features stand in pairs, as rotary embeddings turn them.

    Args:
        source: a MadeFrom.
        shape: of B's array.
        width: of a head.
        pairs: "halves", for a model that turns the first half of a head with
            the second where A turns neighbours; or "neighbours", the reverse.
        axis: of B's array, along which the features are.

    Returns:
        A MadeFrom, or None where this does not fit.
    """
    if axis >= len(shape) or shape[axis] % width or width % 2:
        return None
    two = (2, width // 2) if pairs == "neighbours" else (width // 2, 2)
    split = (*shape[:axis], shape[axis] // width, *two, *shape[axis + 1:])
    order = [*range(len(split))]
    order[axis + 1], order[axis + 2] = axis + 2, axis + 1
    layout = (f"reshape {words(split)}, transpose {words(order)}, "
              f"reshape {words(shape)}")
    entry = dataclasses.replace(
        source.entry, then=then(source.entry.then, layout))
    return dataclasses.replace(source, entry=entry)
