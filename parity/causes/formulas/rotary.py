"""Rotary positions: the tables of cosines and sines, and how they turn."""

import numpy as np

from parity.causes.formulas import narrow
from parity.causes.formulas.family import Family
from parity.causes.formulas.narrow import NARROW, TABLE, neighbour, single

#: By how many float32 numbers a frequency may be off: a power and a quotient.
FEW = 2

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


def base_of(cosines, sines):
    """The base of a table, [… T R/2] each, to three digits; None if unknown.
    """
    z = (cosines + 1j * sines).reshape(-1, *cosines.shape[-2:])[0]
    if min(z.shape) < 2:
        return None
    angle = np.angle(z[1] / z[0])
    if not angle[:2].min() > 0:
        return None
    return float(f"{(angle[0] / angle[1])**z.shape[-1]:.3g}")


class RotaryTable(Family):
    """A module that gives cosines or sines of positions."""

    name = "rotary table"
    own = ("function", "columns")
    narrow = TABLE, narrow.FREQUENCIES

    def readings(self, side):
        """None are needed; every number is a cosine or a sine."""
        seen = side.seen[0]
        shape = seen.output.shape
        if (len(shape) > 1 and min(shape) > 0 and min(shape[-2:]) > 1
                and np.abs(seen.output).max() < 1 + 1e-6
                and positions(seen) is not None):
            yield {}

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
        rounded = np.array_equal(single(first), first)
        for invert in np.arccos, np.arcsin:
            angle = invert(np.clip(first[0], -1, 1))
            if angle.min() > 0:
                ratio = (angle[0] / angle[1])**(size / 2)
                for digits in (3,) if rounded else (3, 5, 7):
                    bases[float(f"{ratio:.{digits}g}")] = None
                    factors[float(f"{1 / angle[0]:.{digits}g}")] = None
        return bases, factors

    def compute(self, seen, parameters, settings):
        """Cosine or sine of (first + position) / factor / base^(2i / d)."""
        return self.table(seen, settings, frequencies(seen, settings))

    def narrowed(self, seen, parameters, settings, exact):
        """Frequencies in float32, and with TABLE whatever is made of them.

        A frequency is off alike at every position.
        """
        whole = settings[NARROW] == TABLE
        frequency = frequencies(seen, settings)
        result, _ = narrow.nearest((
            (self.table(seen, settings, neighbour(frequency, step), whole),
             step) for step in range(-FEW, FEW + 1)), seen.output, -2)
        if not whole:
            return result
        off = np.abs(seen.output - result)
        one = np.array_equal(single(seen.output), seen.output) and (
            off <= 2 * narrow.UNIT * np.abs(result)).all()
        return seen.output if one else result

    @staticmethod
    def table(seen, settings, frequency, whole=False):
        """Cosines or sines; ``whole`` has all rounded to float32."""
        place = positions(seen) + settings["first position"]
        angle = place[..., None] * frequency
        angle = single(angle) if whole else angle
        if settings["columns"] == "in halves":
            angle = np.concatenate([angle, angle], -1)
        elif settings["columns"] == "interleaved":
            angle = np.repeat(angle, 2, -1)
        function = np.cos if settings["function"] == "cosine" else np.sin
        table = function(angle)
        return np.broadcast_to(single(table) if whole else table,
                               seen.output.shape)


def frequencies(seen, settings):
    """1 / factor / base^(2i / d), one for each pair of features."""
    once = settings["columns"] == "once"
    size = seen.output.shape[-1] * (1 + once)
    return angles(np.float64(1 / settings["rotary factor"]), size,
                  settings["rotary base"])


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
