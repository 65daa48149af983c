"""Of what a parameter of B may be made, the likeliest first.

Nothing here decides: names, order and shapes say only what is tried first.
"""

import dataclasses
import functools
import itertools
import re

import numpy as np

from parity.conversion.entry import RUN, SUM, WEIGHT_NORM, Rule, Slice
from parity.conversion.weight_source import (
    WeightSource, common, is_bias, numberless)
from parity.conversion.experts import Numbered, expert, packed
from parity.conversion.layouts import (
    joins, kind_of, overlap, parts, slices, then, turned_round)
from parity.matching.rearrangement import PACKED, SAME, candidates
from parity.matching.words import likeness

#: How many sources of one parameter are kept, and how many arrays are joined.
MOST, JOINED = 60, (2, 3)

#: How experts are joined, which are kept besides.
PACK = "stack 0"

#: What a source costs less that is right in another layer.
AGAIN = 2

#: Orders of a recurrent layer's gates in another library. A GRU of torch has
#: reset, update, new, and of Keras and ONNX update, reset, new. An LSTM of both
#: has input, forget, cell, output; of ONNX input, output, forget, cell.
GATES = {"GRU": ((1, 0, 2),), "LSTM": ((0, 3, 1, 2), (0, 2, 3, 1))}


class SourceIndex:
    """What may be made of A's parameters.

    Args:
        a, b: Lives.
        left: names of A that are left out.
        order: A's modules with parameters, as they are called.
    """

    def __init__(self, a, b, left):
        self.a, self.b = a, b
        self.names = [name for name in a.names if name not in left]
        began: dict = {}
        for step in a.trace.steps:
            began.setdefault(step.module, step.began)
        self.names.sort(key=lambda name: began.get(a.owners[name], 0))
        self.similar = dict(zip(b.names, 1 - likeness(
            list(b.names), self.names)))
        self.taken, self.learned, self.alike = set(), {}, {}
        self.recurrent = {step.module: orders for step in a.trace.steps
                          for kind, orders in GATES.items()
                          if kind in step.kind}
        ties = set(a.trace.aliases.values())
        self.tied = {name for name in self.names if name in ties}
        self.numbered = Numbered(b.names)
        self.lists = Numbered(self.names)

    def free(self, source):
        """Whether no piece of a source is taken already."""
        for name, part in source.marks:
            if any(self.twice(name, part, *taken) for taken in self.taken):
                return False
        return True

    def twice(self, name, part, other, taken):
        """Whether two marks have one number of A."""
        return name == other and name not in self.tied and overlap(
            self.a.names[name].shape, part, taken)

    def take(self, source):
        """Its pieces are used; its layout is what such parameters have."""
        self.taken |= source.marks
        self.learned[self._sort(source)] = source.kind
        self.alike.setdefault(numberless(source.entry.b), set()).add(
            source.alike)

    def _sort(self, source):
        piece = source.entry.pieces[0]
        return (piece.a.rpartition(".")[2], source.entry.b.rpartition(".")[2],
                self.a.names[piece.a].ndim, self.b.names[source.entry.b].ndim)

    def sources(self, b, near=(), wide=False):
        """The MadeFroms of one of B's parameters, the likeliest first.

        Args:
            b: its name.
            near: modules of A that were given the inputs of B's.
            wide: whether to think of modules that were not.
        """
        found = []
        for source in itertools.chain(
                self._single(b, near, wide), self._joined(b, near, wide),
                self._experts(b, near, wide), self._packed(b, near, wide),
                self._normed(b, near, wide), self._gated(b, near, wide),
                self._summed(b, near, wide)):
            if self.free(source):
                learned = self.learned.get(self._sort(source))
                extra = 0 if learned is None or learned == source.kind else 1.5
                if source.alike in self.alike.get(numberless(b), ()):
                    extra -= AGAIN
                found.append(dataclasses.replace(
                    source, cost=source.cost + extra))
        found.sort(key=lambda source: source.cost)
        return found[:MOST] + [source for source in found[MOST:]
                               if source.entry.join == PACK]

    def _likely(self, b, near, wide):
        """Yield (A's name, cost) without the layout's."""
        rank: dict = {}
        around = common(near)
        for i, name in enumerate(self.names):
            array = self.a.names[name]
            place = rank[array.size] = rank.get(array.size, -1) + (
                (name, "") not in self.taken)
            far = 0
            if near and self.a.owners[name] not in near:
                far = 1 if around and name.startswith(around) else 4
            if far and not wide:
                continue
            mixed = 3 * (is_bias(name) != is_bias(b))
            yield name, (2 * float(self.similar[b][i]) + far + mixed
                         + min(0.1 * place, 2))

    def _single(self, b, near, wide):
        """Of one parameter of A, whole or a part of it."""
        target = self.b.names[b].shape
        size = int(np.prod(target))
        place = functools.partial(self.numbered.place, b)
        for name, cost in self._likely(b, near, wide):
            shape = self.a.names[name].shape
            count, whole = divmod(int(np.prod(shape)), max(size, 1))
            taken = [("", 0, None, shape)] if count == 1 and not whole else [
                *(parts(shape, count) if not whole and count in PACKED
                  and not self.numbered.is_expert(b, target, name, shape)
                  else ()), *slices(shape, target, place)]
            for part, more, cut, rest in taken:
                for i, layout in enumerate(candidates(rest, target)):
                    both = then(part or SAME, layout)
                    yield WeightSource(
                        Rule(b, (Slice(name, both),), by=RUN),
                        cost + more + self._layout_cost(name, b, layout, i),
                        (self.a.owners[name],), kind_of(layout), cut,
                        number=place(count))

    def _experts(self, b, near, wide):
        """Of one expert out of an array of all."""
        target = self.b.names[b].shape
        for name, cost in self._likely(b, near, wide):
            shape = self.a.names[name].shape
            number = self.numbered.place(b, shape[0]) if shape else None
            for layout, more in expert(shape, target, number):
                yield WeightSource(
                    Rule(b, (Slice(name, layout),), by=RUN), cost + more,
                    (self.a.owners[name],), kind_of(layout), number=number)

    def _packed(self, b, near, wide):
        """Of a list of experts, with one array each or two."""
        target = self.b.names[b].shape
        costs = dict(self._likely(b, near, wide))
        order = {name: i for i, name in enumerate(self.names)}
        shapes = {name: self.a.names[name].shape for name in costs}
        for pack in self.lists.packs(int(np.prod(target)), shapes):
            names = [*itertools.chain(*pack)]
            cost = sum(costs[name] for name in names) / len(names) + (
                0.05 * (order[pack[0][0]] > order[pack[0][-1]]))
            for layout, more, every in packed(
                    shapes[names[0]], len(pack[0]), len(pack), target):
                yield WeightSource(
                    Rule(b, tuple(map(Slice, names)), PACK, layout, RUN),
                    cost + more,
                    tuple(self.a.owners[name] for name in names),
                    kind_of(layout), every=every)

    def _normed(self, b, near, wide):
        """Of a scale and a direction, by weight norm."""
        target = self.b.names[b].shape
        costs = dict(self._likely(b, near, wide))
        for scale, direction in itertools.permutations(costs, 2):
            g, v = (self.a.names[name].shape for name in (scale, direction))
            if self.a.owners[scale] != self.a.owners[direction] or (
                    len(v) < 2 or len(g) != len(v) or g == v
                    or int(np.prod(v)) != int(np.prod(target))
                    or any(one not in (1, size) for one, size in zip(g, v))):
                continue
            for i, layout in enumerate(candidates(v, target)):
                yield WeightSource(
                    Rule(b, (Slice(scale), Slice(direction)), WEIGHT_NORM,
                           layout, RUN),
                    costs[direction] - 1 + 0.2 * i,
                    (self.a.owners[scale],) * 2, kind_of(layout))

    def _gated(self, b, near, wide):
        """Of a recurrent layer's gates in another order: of one array, or of
        two biases one after the other."""
        target = self.b.names[b].shape
        size = int(np.prod(target))
        costs = {name: cost for name, cost in self._likely(b, near, wide)
                 if self.a.owners[name] in self.recurrent}
        for count in (1, 2):
            for names in itertools.permutations(costs, count):
                arrays = [self.a.names[name] for name in names]
                if sum(array.size for array in arrays) != size or (
                        count > 1 and {array.ndim for array in arrays} != {1}):
                    continue
                cost = sum(costs[name] for name in names) / count + 0.3
                for order, (axis, length) in itertools.product(
                        self.recurrent[self.a.owners[names[0]]],
                        enumerate(arrays[0].shape)):
                    if length % len(order) or length == len(order):
                        continue
                    pieces = tuple(
                        Slice(name, f"part {gate + 1} of {len(order)} along "
                              f"{axis}") for name in names for gate in order)
                    shape = arrays[0].shape if count == 1 else (size,)
                    for i, layout in enumerate(candidates(shape, target)):
                        yield WeightSource(
                            Rule(b, pieces, f"concatenate {axis}", layout,
                                   RUN),
                            cost + self._layout_cost(names[0], b, layout, i),
                            (self.a.owners[names[0]],), kind_of(layout),
                            gates=order)

    def _summed(self, b, near, wide):
        """Of a recurrent layer's two biases, which are added."""
        target = self.b.names[b].shape
        costs = {name: cost for name, cost in self._likely(b, near, wide)
                 if self.a.owners[name] in self.recurrent
                 and self.a.names[name].shape == target and len(target) == 1}
        for names in itertools.combinations(costs, 2):
            if len({self.a.owners[name] for name in names}) > 1:
                continue
            yield WeightSource(
                Rule(b, tuple(map(Slice, names)), SUM, SAME, RUN),
                sum(costs[name] for name in names) / 2 - 0.2,
                (self.a.owners[names[0]],), kind_of(SAME))

    def _layout_cost(self, name, b, layout, i):
        """What the frameworks' names imply costs nothing.

        Torch's ``weight`` has a layer's features first, and others' ``kernel``
        has them last; with heads apart, too.
        """
        ends = {re.split("[._]", each)[-1] for each in (name, b)}
        if ends == {"weight", "kernel"} and self.a.names[name].ndim > 1:
            return (0 if turned_round(layout) else 0.6) + 0.1 * min(i, 5)
        return 0.2 * i

    def _joined(self, b, near, wide):
        """Of two or three parameters of A."""
        target = self.b.names[b].shape
        size = int(np.prod(target))
        costs = {name: cost for name, cost in self._likely(b, near, wide)
                 if self.a.names[name].size < size}
        likely = sorted(costs, key=costs.__getitem__)[:8]
        order = {name: i for i, name in enumerate(self.names)}
        for count in JOINED:
            for names in itertools.permutations(likely, count):
                arrays = [self.a.names[name] for name in names]
                if sum(array.size for array in arrays) != size or any(
                        self.lists.mixed(*two)
                        for two in itertools.combinations(names, 2)):
                    continue
                turned = sum(order[one] > order[two] for one, two
                             in itertools.combinations(names, 2))
                cost = (sum(costs[name] for name in names) / count + 0.3
                        + 0.05 * turned)
                for join in joins(arrays, target):
                    pieces, word, whole, more, cuts = join
                    owners = tuple(self.a.owners[name] for name in names)
                    yield WeightSource(
                        Rule(b, tuple(map(Slice, names, pieces)), word,
                              whole, RUN),
                        cost + more + self._layout_cost(
                            names[0], b, pieces[0], 0), owners,
                        kind_of(pieces[0]), cuts=cuts)
