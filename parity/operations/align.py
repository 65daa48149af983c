"""Which values of two programs are the same numbers, and what is not.

Values are aligned by their signatures, so up to order and shape. A value is
*lost* if the other program has it nowhere and an output that differs follows
from it through values that are lost as well: what is absorbed on the way, such
as softmax's own shift, is not.
"""

import functools

import numpy as np

from parity.operations.layouts import distance, relaid
from parity.operations.program import CONSTANT, MADE

#: How far two signatures of the same numbers are apart at most: exact runs of
#: sound models agree to 1e-15 or so, and means to less.
NEAR = 1e-12

#: How far outputs of exact runs are apart at most, as a share of a's: the
#: smallest fault that is known makes 4e-9.
ENDS = 1e-10


class Alignment:
    """The values of a and b that have the same numbers.

    Args:
        a, b: Programs.
        near: how far apart signatures may be, as a share.
        ends: [(number in a, number in b)] of the values that are asked of,
            instead of the outputs.

    Attributes:
        in_a: {number of b's value: numbers of a's values with its numbers}.
        in_b: the same the other way round.
    """

    def __init__(self, a, b, near=NEAR, ends=None):
        self.a, self.b, self.near = a, b, near
        self._ends = ends
        self.in_a, self.in_b = {}, {}
        self._tables = {"a": _tables(a)}
        self._ordered = a.kept.setdefault("ordered", {})
        known = a.kept.setdefault(("found", near), {})
        for value in b.values:
            of = value.signature
            key = of.digest, of.size, of.kind, (
                () if of.telling else value.shape), value.array is None
            if key not in known:
                known[key] = [
                    number for number in self._found("a", of)
                    if of.telling or self.ordered(a.values[number], value)]
            if known[key]:
                self.in_a[value.number] = known[key]
                for number in known[key]:
                    self.in_b.setdefault(number, []).append(value.number)

    def _found(self, side, signature):
        """The numbers of a side's values with the numbers of a signature."""
        if side not in self._tables:
            self._tables[side] = _tables(getattr(self, side))
        table = self._tables[side].get(signature.kind)
        return [*_found(signature, *table, self.near)] if table else []

    def holds(self, side, signature):
        """Whether a side has a value with the numbers of a signature, where
        these are enough to be recognised."""
        return signature.telling and bool(self._found(side, signature))

    def ordered(self, one, two):
        """Whether two arrays of few different numbers have them at the same
        places, which their signatures do not tell."""
        if one.array is None or two.array is None or two.signature.size == 1:
            return True
        key = (one.signature.digest, one.shape), (
            two.signature.digest, two.shape)
        if key not in self._ordered:
            self._ordered[key] = key[0] == key[1] or any(
                distance(made, two.array) <= ENDS
                for made in relaid(one.array, two.array, 1)) or any(
                distance(made, one.array) <= ENDS
                for made in relaid(two.array, one.array, 1))
        return self._ordered[key]

    def has(self, side, number):
        """Whether the other program has a value of this one.

        Args:
            side: "a" or "b", which has the value.
            number: of the value.
        """
        return number in (self.in_b if side == "a" else self.in_a)

    @functools.cached_property
    def outputs(self):
        """[(name in a, name in b)]: the outputs that are each other's."""
        ours, theirs = self.a.outputs, self.b.outputs
        pairs = [(name, name) for name in ours if name in theirs
                 and self._like(ours[name], theirs[name])]
        left = [[name for name in side if name not in {
            pair[i] for pair in pairs}] for i, side in enumerate(
            (ours, theirs))]
        for name in left[0]:
            for other in left[1]:
                if self._like(ours[name], theirs[other]) and other not in {
                        pair[1] for pair in pairs}:
                    pairs.append((name, other))
                    break
        return pairs

    def _like(self, one, two):
        """Whether two values may be each other's: they are of one size."""
        one, two = self.a.values[one], self.b.values[two]
        return (one.signature.size, one.signature.kind) == (
            two.signature.size, two.signature.kind)

    @functools.cached_property
    def ends(self):
        """[(number in a, number in b)] of what is asked of: the outputs."""
        return [(self.a.outputs[one], self.b.outputs[two])
                for one, two in self.outputs
                ] if self._ends is None else self._ends

    @functools.cached_property
    def different(self):
        """Those of the ends whose numbers differ, or stand elsewhere."""
        return [pair for pair in self.ends if self._differ(*pair)]

    def _differ(self, one, two):
        """Whether two values of the ends are not the same."""
        mine, theirs = self.a.values[one], self.b.values[two]
        if self._ends is not None or mine.array is None or (
                theirs.array is None):
            return one not in self.in_a.get(two, ())
        laid = relaid(mine.array, theirs.array, 1) if (
            mine.shape != theirs.shape) else [mine.array]
        return not laid or distance(theirs.array, laid[0]) > max(
            ENDS, self.near)

    @functools.cached_property
    def lost(self):
        """{"a": …, "b": …}: the numbers of each side's lost values."""
        return {side: self._lost(side, program, [
            pair[i] for pair in self.different])
            for i, (side, program) in enumerate(
                (("a", self.a), ("b", self.b)))}

    def _lost(self, side, program, ends):
        lost, queue = set(), [*ends]
        while queue:
            number = queue.pop()
            if number in lost:
                continue
            lost.add(number)
            queue += [
                each for maker in program.makers(number)
                for each in maker.operands
                if not self.has(side, each) and not is_scalar(
                    program.values[each])]
        return lost

    @functools.cached_property
    def depth(self):
        """{"a": …, "b": …}: of each lost value, how many lost ones stand
        between it and what both have."""
        depths = {}
        for side, program in (("a", self.a), ("b", self.b)):
            mine = depths[side] = {}
            for number in sorted(self.lost[side]):
                maker = program.maker(number)
                operands = () if maker is None else maker.operands
                mine[number] = max((
                    mine[each] + (1 if program.values[each].kind == MADE
                                  and not is_view(maker)
                                  and not is_filled(program, each) else 0)
                    for each in operands if each in mine), default=0)
        return depths


def is_filled(program, number):
    """Whether a value is one number at all its places, whose size says
    nothing: what others are put into."""
    maker = program.maker(number)
    return not program.values[number].signature.telling and all(
        is_scalar(program.values[each]) for each in maker.operands)


def is_scalar(value):
    """Whether a value is a single number that stands in the program."""
    return value.kind == CONSTANT and value.signature.size == 1


def is_view(operation):
    """Whether an operation changes no number, only where it stands."""
    return operation is not None and operation.name in (
        "reshape", "transpose", "broadcast", "cast")


def moves(operation):
    """Whether an operation only says where numbers stand, or which of them."""
    return is_view(operation) or operation.name in (
        "slice", "flip", "concatenate", "roll", "repeat")


def _tables(program):
    """{kind: (moments, sizes, numbers, the largest moment in order)}."""
    if "tables" in program.kept:
        return program.kept["tables"]
    groups = {}
    for value in program.values:
        groups.setdefault(value.signature.kind, []).append(value)
    tables = {}
    for kind, values in groups.items():
        values.sort(key=lambda value: value.signature.moments[-1])
        moments = np.array([value.signature.moments for value in values])
        tables[kind] = moments, values, moments[:, -1]
    program.kept["tables"] = tables
    return tables


def _found(signature, moments, values, roots, near):
    """Yield the numbers of values with the numbers of a signature."""
    mine = np.array(signature.moments)
    room = near * abs(mine[-1]) + 1e-300
    first = np.searchsorted(roots, mine[-1] - room)
    last = np.searchsorted(roots, mine[-1] + room, "right")
    for i in range(first, last):
        if np.abs(moments[i, :-1] - mine[:-1]).max() <= near and alike(
                signature, values[i].signature):
            yield values[i].number


def alike(one, two):
    """Whether two signatures may be of one array, or of one and the same
    several times over."""
    if one.size == two.size:
        return one.special == two.special
    small, large = sorted((one, two), key=lambda each: each.size)
    return bool(small.size > 1 and (small.telling or small.kind == "b")
                and large.size % small.size == 0 and all(
                    less * (large.size // small.size) == more
                    for less, more in zip(small.special, large.special)))
