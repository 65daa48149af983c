"""Fused projections whose heads stand otherwise in the other model.

Queries, keys and values of one array stand one after another (GPT-2, Phi-3), or
head by head (GPT-NeoX, BLOOM), or group by group, each with several queries,
one key and one value (Falcon, InternLM2):

    blocks    all queries, all keys, all values
    groups    of each group its queries, its key, its value
"""

import dataclasses
import itertools

from parity.conversion.entry import Slice
from parity.conversion.layouts import then, words
from parity.matching.rearrangement import MOST_HEADS, SAME, parsed
from parity.matching.rearrangement import shapes as sizes_after

#: How queries, keys and values of one array stand.
BLOCKS, GROUPS = "blocks", "groups"


@dataclasses.dataclass(frozen=True)
class HeadLayout:
    """How an axis is made of heads.

    Attributes:
        groups: how many groups there are, or heads.
        queries: how many queries' heads a group has.
        size: of a head.
    """

    groups: int
    queries: int
    size: int

    @property
    def lengths(self):
        """Of all queries, all keys, all values."""
        one = self.groups * self.size
        return one * self.queries, one, one

    @property
    def bounds(self):
        """Where queries, keys and values begin and end among the blocks."""
        ends = [0, *itertools.accumulate(self.lengths)]
        return [*itertools.pairwise(ends)]

    @property
    def heads(self):
        """Which heads of a group are queries, keys and values."""
        count = self.queries
        return (0, count), (count, count + 1), (count + 1, count + 2)

    def split(self, shape, axis, count):
        """A shape whose axis is groups, heads of a group, size."""
        return (*shape[:axis], self.groups, count, self.size,
                *shape[axis + 1:])


def head_layouts(length, width, known):
    """The HeadLayouts that an axis may well have, the likeliest first.

    Queries have as many numbers as what is read, or both models' settings say
    how many heads there are.

    Args:
        length: of the axis.
        width: of what is read.
        known: whole numbers that are settings of either model.
    """
    found = []
    for groups in range(2, MOST_HEADS + 1):
        for queries in range(1, length // groups - 1):
            size, rest = divmod(length, groups * (queries + 2))
            each = HeadLayout(groups, queries, size)
            told = {groups, groups * queries} <= known
            if not rest and size > 1 and (told or each.lengths[0] == width):
                found.append((not told, queries, each))
    return [each for *_, each in sorted(found, key=lambda each: each[:2])]


def packed_length(source, shapes, target, axis):
    """Of what a source is packed: (a key, the packed axis' length, the width
    of what is read); None of what is no matrix, or is packed of others.

    The parts of one array of A have one key.

    Args:
        source, shapes, target, axis: as of ``regrouped``.
    """
    entry, first = source.entry, source.entry.pieces[0]
    if len(target) != 2:
        return None
    if len(entry.pieces) == 1 and not entry.join:
        steps = parsed(first.layout)
        if steps and steps[0][0] in ("part", "slice"):
            shape, at = shapes[first.a], steps[0][1][2]
            return (first.a, shape[at], shape[1 - at]) if (
                len(shape) == 2) else None
    elif len(entry.pieces) != 3:
        return None
    return entry.b, target[axis], target[1 - axis]


def regrouped(source, shapes, target, axis, layout, order, which):
    """A WeightSource of the same numbers, with heads that stand otherwise.

    Args:
        source: a WeightSource.
        shapes: name -> shape of A's parameters.
        target: the shape of B's parameter.
        axis: of B's array, along which the features are.
        layout: a HeadLayout of the packed axis, A's or B's.
        order: which of queries, keys and values the three are that are joined,
            or that are taken of one array.
        which: the place among those of the one that is made.

    Returns:
        Of a part of a packed array its part group by group; of three that are
        joined their groups; of a packed array, where ``order`` is BLOCKS or
        GROUPS, itself in these. None where that does not fit.
    """
    entry, pieces = source.entry, source.entry.pieces
    if len(pieces) == 1 and not entry.join:
        if order not in (BLOCKS, GROUPS):
            part = _part(pieces[0], shapes[pieces[0].a], layout, order[which])
            return part and _replaced(source, pieces=(part,))
        if axis >= len(target) or target[axis] != sum(layout.lengths):
            return None
        whole = then(pieces[0].layout, entry.then)
        return _replaced(source, pieces=tuple(
            Slice(pieces[0].a, then(whole, each))
            for each in _cuts(target, axis, layout, order)),
            join=f"concatenate {axis + (order == GROUPS)}",
            then=f"reshape {words(target)}")
    if len(pieces) != 3 or order in (BLOCKS, GROUPS) or (
            entry.join != f"concatenate {axis}" or entry.then != SAME):
        return None
    made: list = [None] * 3
    for piece, kind in zip(pieces, order):
        first, last = layout.heads[kind]
        shape = sizes_after(piece.layout, shapes[piece.a])[-1]
        if shape[axis] != layout.lengths[kind]:
            return None
        made[kind] = Slice(piece.a, then(piece.layout, "reshape " + words(
            layout.split(target, axis, last - first))))
    return _replaced(source, pieces=tuple(made),
                     join=f"concatenate {axis + 1}",
                     then=f"reshape {words(target)}")


def _part(piece, shape, layout, kind):
    """A Slice of a part as one of groups; None if it is not as long."""
    word, (*numbers, axis) = parsed(piece.layout)[0]
    length = (numbers[1] - numbers[0] if word == "slice"
              else shape[axis] // numbers[1])
    if shape[axis] != sum(layout.lengths) or length != layout.lengths[kind]:
        return None
    first, last = layout.heads[kind]
    rest = (*shape[:axis], length, *shape[axis + 1:])
    _, _, more = piece.layout.partition(", ")
    return Slice(piece.a, then(
        f"reshape {words(layout.split(shape, axis, layout.queries + 2))}, "
        f"slice {first} {last} along {axis + 1}, reshape {words(rest)}",
        more or SAME))


def _cuts(shape, axis, layout, order):
    """The layouts of queries, keys and values of a packed array, which are to
    be joined to ``order``."""
    for (start, stop), (first, last), length in zip(
            layout.bounds, layout.heads, layout.lengths):
        if order == GROUPS:
            yield (f"slice {start} {stop} along {axis}, reshape "
                   + words(layout.split(shape, axis, last - first)))
        else:
            rest = (*shape[:axis], length, *shape[axis + 1:])
            whole = words(layout.split(shape, axis, layout.queries + 2))
            yield (f"reshape {whole}, slice {first} {last} along {axis + 1}, "
                   f"reshape {words(rest)}")


def _replaced(source, **parts):
    """A WeightSource with another entry."""
    return dataclasses.replace(
        source, entry=dataclasses.replace(source.entry, **parts))
