"""Rotary positions: the tables of cosines and sines, and how they turn."""

import numpy as np

from parity.causes.formulas.family import Family

#: Rotary positions as they should be, where an attention makes its own tables.
ROTARY = {"rotary on": "neither", "rotary pairs": "in halves",
          "rotary direction": "forwards"}

#: Which of (queries, keys) are turned.
TURNED = {"queries and keys": (True, True), "queries": (True, False),
          "keys": (False, True), "neither": (False, False)}


def angles(position, size, base):
    """position / base^(2i / size): [… size / 2]."""
    return position[..., None] / base**(np.arange(0, size, 2) / size)


def turned(x, cosines, sines, pairs, direction):
    """Each pair of features of x [B H T K] turned.

    The tables are [… T R/2]; features from R on stay as they are.
    """
    width = 2 * cosines.shape[-1]
    rest, x = x[..., width:], x[..., :width]
    sines = -sines if direction == "backwards" else sines
    if pairs == "interleaved":
        one, two = x[..., ::2], x[..., 1::2]
    else:
        one, two = np.split(x, 2, -1)
    one, two = one * cosines - two * sines, one * sines + two * cosines
    if pairs == "interleaved":
        y = np.stack([one, two], -1).reshape(x.shape)
    else:
        y = np.concatenate([one, two], -1)
    return np.concatenate([y, rest], -1)


def half_table(table):
    """A table of every pair once, [… T R/2], where each stands twice."""
    size = table.shape[-1]
    for one, two in (np.split(table, 2, -1) if not size % 2 else (
            table, None), (table[..., ::2], table[..., 1::2])):
        if two is not None and np.array_equal(one, two):
            return one
    return table


class RotaryTable(Family):
    """A module that gives cosines or sines of positions."""

    name = "rotary table"
    own = ("function", "columns")

    def readings(self, side):
        """None are needed; every number is a cosine or a sine."""
        seen = side.seen[0]
        shape = seen.output.shape
        if (len(shape) > 1 and shape[-2] > 1 and shape[-1] > 1
                and np.abs(seen.output).max() < 1 + 1e-6 and positions(
                    seen) is not None):
            yield {}

    def reach(self, side):
        """An angle's rounding is enlarged by its position."""
        return max(1.0, float(np.abs(positions(side.seen[0])).max()))

    def fields(self, side, parameters):
        """Base, factor and first position."""
        bases, factors = self.estimated(side.seen[0])
        return {"function": ["cosine", "sine"],
                "columns": ["in halves", "interleaved", "once"],
                "rotary base": [10000.0, *bases],
                "rotary factor": [1.0, *factors],
                "first position": [0, 1, 2, -1]}

    @staticmethod
    def estimated(seen):
        """Bases and factors of few digits that position 1 suggests."""
        table = half_table(seen.output)
        table = table.reshape(-1, *table.shape[-2:])[0]
        place = positions(seen).reshape(-1, len(table))[0]
        first = table[place == 1]
        bases, factors = {}, {}
        if not len(first) or first.shape[-1] < 2:
            return bases, factors
        size = 2 * first.shape[-1]
        for invert in np.arccos, np.arcsin:
            angle = invert(np.clip(first[0], -1, 1))
            if angle.min() > 0:
                ratio = (angle[0] / angle[1])**(size / 2)
                bases[float(f"{ratio:.3g}")] = None
                factors[float(f"{1 / angle[0]:.3g}")] = None
        return bases, factors

    def compute(self, seen, parameters, settings):
        """Cosine or sine of (first + position) / factor / base^(2i / d)."""
        shape = seen.output.shape
        once = settings["columns"] == "once"
        angle = angles(
            (positions(seen) + settings["first position"])
            / settings["rotary factor"],
            shape[-1] * (1 + once), settings["rotary base"])
        if settings["columns"] == "in halves":
            angle = np.concatenate([angle, angle], -1)
        elif not once:
            angle = np.repeat(angle, 2, -1)
        function = np.cos if settings["function"] == "cosine" else np.sin
        return np.broadcast_to(function(angle), shape)


def positions(seen):
    """The positions that a module was given, or 0, 1, …; None if unknown."""
    length = seen.output.shape[-2]
    whole = [a for a in seen.others.values() if a.dtype.kind in "iu"]
    if not whole:
        return np.arange(length, dtype=np.float64)
    place = whole[0]
    fits = place.ndim and place.shape[-1] == length and place.ndim < (
        seen.output.ndim)
    return place.astype(np.float64) if fits else None
