"""Where each parameter of B comes from, and what is done to it.

A parameter of B is made of one or several of A: each is taken in a layout (see
parity.matching.rearrangement), they are joined, and the whole gets a layout:

    concatenate 0   one after another along axis 0
    stack 1         along a new axis 1
    sum             added, with axes of one number repeated
    weight_norm     g v / |v|, the norm being over the axes along which g is
                    one number (Salimans and Kingma, 2016, eq. 2)

All but the last two only move numbers, so that it can be undone to the bit.
"""

import contextlib
import dataclasses
import functools
import operator
import re

import numpy as np

from parity_io.errors import InputError
from parity.matching.rearrangement import SAME, parsed, rearranged
from parity.matching.rearrangement import shapes as sizes_after

SUM, WEIGHT_NORM = "sum", "weight_norm"

#: Joins that compute.
COMPUTED = SUM, WEIGHT_NORM

#: Why an entry stands: the run shows it, it is a guess that nothing shows, a
#: person says so.
RUN, GUESS, USER = "run", "guess", "user"


@dataclasses.dataclass(frozen=True)
class Slice:
    """A parameter of A, and the layout in which it is taken."""

    a: str
    layout: str = SAME


@dataclasses.dataclass(frozen=True)
class Rule:
    """A parameter of B.

    Attributes:
        b: its name.
        pieces: of what it is made, a Slice each.
        join: "" of one piece, else "concatenate N", "stack N" or "sum".
        then: the layout of the whole.
        by: RUN, GUESS or USER.
    """

    b: str
    pieces: tuple
    join: str = ""
    then: str = SAME
    by: str = USER

    @property
    def names(self):
        """The parameters of A, in order."""
        return tuple(piece.a for piece in self.pieces)

    @property
    def whole(self):
        """The names of which all numbers are used, as far as is plain."""
        layouts = (*(piece.layout for piece in self.pieces), self.then)
        if self.join not in COMPUTED and any(word in ("part", "slice")
                                    for layout in layouts
                                    for word, _ in parsed(layout)):
            return ()
        return self.names

    def shape(self, shapes):
        """The shape that is made of A's; raises InputError as made."""
        taken = [sizes_after(piece.layout, shapes[piece.a])[-1]
                 for piece in self.pieces]
        return sizes_after(self.then, joined_shape(
            self.join, taken, self.b))[-1]

    def made(self, arrays):
        """B's array, of A's by name.

        Raises:
            InputError: a layout does not fit, or the pieces do not.
        """
        taken = [rearranged(piece.layout, arrays[piece.a])
                 for piece in self.pieces]
        return rearranged(self.then, joined(self.join, taken, self.b))

    def places(self, shapes):
        """Where each number of B's array comes from.

        Args:
            shapes: name -> shape, of A's arrays.

        Returns:
            For each piece its name, indices into A's flattened array, and
            those into B's.
        """
        if self.join in COMPUTED:
            raise InputError(
                f"{self.b!r} is a {self.join}, which cannot be taken apart; "
                "leave it out where the mapping is reversed.")
        sizes = [int(np.prod(shapes[name])) for name in self.names]
        starts = np.cumsum([0, *sizes])
        taken = [rearranged(piece.layout, np.arange(
            start, start + size).reshape(shapes[piece.a]))
            for piece, start, size in zip(self.pieces, starts, sizes)]
        whole = rearranged(
            self.then, joined(self.join, taken, self.b)).reshape(-1)
        for name, start, size in zip(self.names, starts, sizes):
            there = np.flatnonzero((start <= whole) & (whole < start + size))
            yield name, whole[there] - start, there


def joined(join, arrays, name):
    """Arrays as one; raises InputError where they do not fit."""
    joined_shape(join, [array.shape for array in arrays], name)
    if not join:
        return arrays[0]
    word, axis = parsed_join(join)
    if word == SUM:
        return functools.reduce(operator.add, arrays)
    if word == WEIGHT_NORM:
        scale, direction = arrays
        axes = tuple(axis for axis, size in enumerate(scale.shape)
                     if size == 1)
        return scale * (direction / np.sqrt(np.square(direction).sum(
            axes, keepdims=True)))
    return (np.concatenate if word == "concatenate" else np.stack)(
        arrays, axis)


def joined_shape(join, shapes, name):
    """The shape of arrays as one; raises InputError where they do not fit."""
    if not join:
        if len(shapes) == 1:
            return shapes[0]
        raise InputError(
            f"{name!r} is made of {len(shapes)} arrays; say how they are "
            "joined: concatenate 0, stack 0 or sum.")
    word, axis = parsed_join(join)
    first, ranks = shapes[0], {len(shape) for shape in shapes}
    if word == WEIGHT_NORM:
        if len(shapes) == 2 and len(first) == len(shapes[1]) and all(
                one in (1, size) for one, size in zip(*shapes)):
            return shapes[1]
    elif word == SUM:
        with contextlib.suppress(ValueError):
            return np.broadcast_shapes(*shapes)
    elif word == "stack" and len({*shapes}) == 1 and axis <= len(first):
        return (*first[:axis], len(shapes), *first[axis:])
    elif word == "concatenate" and len(ranks) == 1 and axis < len(
            first) and len({shape[:axis] + shape[axis + 1:]
                            for shape in shapes}) == 1:
        return (*first[:axis], sum(shape[axis] for shape in shapes),
                *first[axis + 1:])
    raise InputError(
        f"{name!r} cannot be joined by {join!r}: the arrays have shapes "
        f"{', '.join(str(list(shape)) for shape in shapes)}; correct their "
        "layouts.")


def parsed_join(join):
    """("concatenate" or "stack", axis), ("sum", 0) or ("weight_norm", 0);
    raises InputError."""
    if join in COMPUTED:
        return join, 0
    match = re.fullmatch("(concatenate|stack) ([0-9])", join)
    if not match:
        raise InputError(
            f"the join {join!r} is unknown; write concatenate 0, stack 0, sum "
            "or weight_norm.")
    return match[1], int(match[2])


@dataclasses.dataclass
class Mapping:
    """What each parameter of B is made of.

    Attributes:
        entries: a Rule each, in B's order.
        a, b: name -> shape, of all parameters of each.
        tied_a, tied_b: second name of a parameter -> its first.
        left_a, left_b: names that have no partner and need none.
    """

    entries: list
    a: dict
    b: dict
    tied_a: dict = dataclasses.field(default_factory=dict)
    tied_b: dict = dataclasses.field(default_factory=dict)
    left_a: list = dataclasses.field(default_factory=list)
    left_b: list = dataclasses.field(default_factory=list)

    def forward(self, arrays):
        """B's arrays of A's: {name: array}, without those left out.

        Raises:
            InputError: an array is missing or of another shape, or an entry
                does not fit.
        """
        arrays = self.checked(arrays, "a")
        return {entry.b: np.asarray(entry.made(arrays), order="C")
                for entry in self.entries}

    def backward(self, arrays, base=None):
        """A's arrays of B's.

        Args:
            arrays: B's, by name.
            base: A's own, by name, for what B does not have; or None.

        Raises:
            InputError: as forward; two places of B hold different numbers for
                one of A; or B lacks some and there is no base.
        """
        arrays = self.checked(arrays, "b")
        base = self._based(base or {})
        made, known = {}, {}
        for entry in self.entries:
            array = arrays[entry.b].reshape(-1)
            for name, places, there in entry.places(self.a):
                if name not in made:
                    shape = tuple(self.a[name])
                    made[name] = (np.array(base[name]).reshape(-1)
                                  if name in base
                                  else np.zeros(int(np.prod(shape)),
                                                array.dtype))
                    known[name] = np.zeros(made[name].size, bool)
                numbers = array[there].astype(made[name].dtype)
                twice = known[name][places]
                if not np.array_equal(made[name][places][twice],
                                      numbers[twice], equal_nan=True):
                    raise InputError(
                        f"{entry.b!r} and another parameter of B hold "
                        f"different numbers for {name!r}, which is one in A; "
                        "make them equal, or leave one out.")
                made[name][places] = numbers
                known[name][places] = True
        for name, seen in known.items():
            if not seen.all() and name not in base:
                raise InputError(
                    f"{int((~seen).sum())} numbers of {name!r} are in no "
                    "parameter of B; give A as well, whose own are then kept.")
        return {name: array.reshape(self.a[name])
                for name, array in made.items()}

    def _based(self, base):
        """A's own arrays by first names."""
        return {self.tied_a.get(name, name): array
                for name, array in base.items()
                if tuple(array.shape) == tuple(self.a.get(
                    self.tied_a.get(name, name), ()))}

    def uncovered(self):
        """Parameters of A, of which B has not all numbers: name -> in words.

        The first rows of a table that B begins later, as BART's two before
        its first position, are none of them.
        """
        seen: dict = {}
        for entry in self.entries:
            for name in entry.whole:
                seen[name] = None
            if not entry.whole:
                for name, places, _ in entry.places(self.a):
                    there = seen.setdefault(name, np.zeros(
                        int(np.prod(self.a[name])), bool))
                    if there is not None:
                        there[places] = True
        over = {name: "nothing in B is made of it"
                for name in self.a if name not in seen}
        for name, there in seen.items():
            if there is None or there.all():
                continue
            rows = there.reshape(self.a[name])
            if rows.ndim == 2:
                whole = rows.all(1)
                first = int(np.argmax(whole))
                if whole[first:].all() and not rows[:first].any():
                    continue
            over[name] = (f"{int((~there).sum())} of its {there.size} numbers "
                          "are in no parameter of B")
        return over

    def checked(self, arrays, side):
        """The arrays of one side, by first names, each of its shape."""
        shapes, tied = getattr(self, side), getattr(self, f"tied_{side}")
        needed = ({name for entry in self.entries for name in entry.names}
                  if side == "a" else {entry.b for entry in self.entries})
        found: dict = {}
        for name, array in arrays.items():
            first = tied.get(name, name)
            if first not in shapes:
                if array.dtype.kind in "iub":
                    continue
                raise InputError(
                    f"the weights of {side.upper()} have {name!r}, which the "
                    "mapping does not know; give the weights of the model "
                    "that it was made of.")
            if tuple(array.shape) != tuple(shapes[first]):
                raise InputError(
                    f"{name!r} of {side.upper()} has shape "
                    f"{list(array.shape)}, and the mapping says "
                    f"{list(shapes[first])}; give the weights of the model "
                    "that it was made of.")
            if first in found and not np.array_equal(
                    found[first], array, equal_nan=True):
                raise InputError(
                    f"{name!r} and {first!r} of {side.upper()} differ, and the "
                    "mapping says that they are one; tie them, or make the "
                    "mapping anew.")
            found[first] = array
        for name in sorted(needed - found.keys()):
            raise InputError(
                f"there is no {name!r} among the weights of {side.upper()}; "
                "give the weights of the model that the mapping was made of.")
        return found
