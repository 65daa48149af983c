"""Rows of a table: token embeddings and positions."""

import itertools

import numpy as np

from parity.causes.formulas.family import Family, Sized, rounded
from parity.tracing.trace import is_float

ROWS = {"the number's own": 0, "the next": 1, "the one after next": 2,
        "the one before": -1}


def look_up(ids, table, settings):
    """factor · table[id]."""
    step = ROWS[settings["row"]]
    if (ids + step).min() < 0:
        raise IndexError
    y = settings["factor"] * table[ids + step]
    padding = settings.get("padding", "").partition("id ")[2]
    return y * (ids != int(padding))[..., None] if padding else y


class Embedding(Family):
    """A row of a table for every number."""

    name = "embedding"

    def readings(self, side):
        """The one table; a number beside it may be its factor."""
        tables = [a for a in side.parameters.values()
                  if is_float(a) and a.ndim]
        ids = _ids(side.seen[0])
        if (len(tables) == 1 and tables[0].ndim == 2 and ids is not None
                and not side.seen[0].floats
                and side.seen[0].output.shape == (
                    *ids.shape, tables[0].shape[1])):
            yield {"table": tables[0]}

    def fields(self, side, parameters):
        """The scale, which row is taken, and padding's row."""
        table = parameters["table"]
        fields = {"factor": [Sized(word, table.shape[1]) for word in (
                     "1", "√d", "1/√d", "d")],
                  "row": ["the number's own"]}
        ids = _ids(side.seen[0])
        empty = ids[~side.seen[0].output.any(-1)]
        if empty.size and (empty == empty.flat[0]).all() and (
                table[empty.flat[0]].any()):
            fields["padding"] = ["a row as any", f"zero, id {empty.flat[0]}"]
        fields["factor"] += self.observed(side, parameters, fields)
        return fields

    def word(self, name, value):
        """A row of zeros is one, whichever padding's id."""
        return (value.partition(",")[0] if name == "padding"
                else super().word(name, value))

    def compute(self, seen, parameters, settings):
        """factor · table[id]."""
        return look_up(_ids(seen), parameters["table"], settings)


def _ids(seen):
    """The first input of integers, or None."""
    return next((a for a in seen.others.values() if a.dtype.kind in "iu"),
                None)


#: Sinusoids as they should be.
SINUSOIDS = {"positions' layout": "interleaved",
             "positions' exponent": "2i/d", "positions' base": 10000.0,
             "table": "exact", "first position": 0}


def sinusoids(settings, length, size):
    """Sines and cosines of position / base^exponent, [length, size]."""
    layout, exponent, base, table, start = (
        settings[name] for name in SINUSOIDS)
    pair = np.arange((size + 1) // 2)
    step = {"2i/d": 2 * pair / size, "4i/d": 4 * pair / size,
            "i/(d/2 - 1)": pair / max(size // 2 - 1, 1)}.get(exponent)
    position = start + np.arange(length)[:, None]
    if step is None:  # every feature by its own number
        angle = position / base**(np.arange(size) / size)
        even, odd = angle[:, ::2], angle[:, 1::2]
    else:
        even = position / base**step
        odd = even[:, :size // 2]
    first, second = (np.cos, np.sin) if "cosine first" in layout else (
        np.sin, np.cos)
    rows = np.concatenate([first(even), second(odd)], -1)
    if "in halves" not in layout:
        rows[:, ::2], rows[:, 1::2] = first(even), second(odd)
    return rounded(rows, table.removeprefix("exact").removeprefix(
        "rounded to "))


def sinusoid_settings(rows, limit, values):
    """The settings that give these rows, [length, size]; None if unsure.

    Args:
        rows: what may be sinusoids.
        limit: how far off they may be.
        values: setting -> the values to be tried.
    """
    if rows.ndim != 2 or min(rows.shape) < 2 or not (
            np.abs(rows).max() <= 1 + limit):
        return None
    choices = [dict(zip(values, choice))
               for choice in itertools.product(*values.values())]
    for length in 2, len(rows):  # the first rows say what is not
        choices = [settings for settings in choices if np.abs(
            sinusoids(settings, length, rows.shape[1]) - rows[:length]
        ).max() <= limit]
    return choices[0] if len(choices) == 1 else None


class Positions(Family):
    """Sinusoids or a learned table, alone or added to an input."""

    name = "position encoding"
    own = ("time",)

    def readings(self, side):
        """No table, or the one that is held."""
        seen = side.seen[0]
        tables = [a for a in side.parameters.values() if is_float(a)]
        if (len(tables) > 1 or len(seen.floats) > 1 or seen.output.ndim < 2
                or seen.floats and seen.x.ndim < 2):
            return
        size = seen.output.shape[-1]
        if size > 1:
            yield {}
        if tables and tables[0].shape[-1] == size and tables[0].ndim < 4:
            table = tables[0].reshape(-1, size)
            yield {"table": table}

    def fields(self, side, parameters):
        """Layout, exponent, base, first position and the input's factor."""
        size = side.seen[0].output.shape[-1]
        fields = {"first position": [0], "time": ["second", "first"]}
        if side.seen[0].floats:
            fields["input's factor"] = [1.0, 0.0, *(
                Sized(word, size) for word in ("√d", "1/√d"))]
        if "table" not in parameters:
            fields |= {name: [value] for name, value in SINUSOIDS.items()}
            fields["positions"] = ["added"]
        return fields

    def compute(self, seen, parameters, settings):
        """factor · x + table[first + t]."""
        y = seen.output
        # Nothing but the shape of the output is used.
        shape, size = y.shape, y.shape[-1]
        axis = 0 if settings["time"] == "first" or len(shape) == 2 else 1
        length, first = shape[axis], settings["first position"]
        if "table" in parameters:
            table = parameters["table"]
            if first < 0 or first + length > len(table):
                raise IndexError
            rows = table[first:first + length]
        else:
            rows = sinusoids(settings, length, size)
            rows = rows * (settings["positions"] == "added")
        rows = rows.reshape(*(1,) * axis, length,
                            *(1,) * (len(shape) - 2 - axis), size)
        x = (settings["input's factor"] * seen.x
             if seen.floats and seen.x.shape == shape else 0)
        return np.broadcast_to(x + rows, shape)
