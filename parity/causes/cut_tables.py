"""Positions that two models cut out of one table, from different rows on."""

import numpy as np

from parity.matching.rearrangement import SAME


def first_row(rows, table):
    """At which row of a table [N D] rows [T D] begin, to the bit; or None.

    One row alone may be that of a token.
    """
    length = len(rows)
    if length < 2 or table.ndim != 2 or table.shape[1:] != rows.shape[1:]:
        return None
    starts = [start for start in np.flatnonzero((table == rows[0]).all(-1))
              if np.array_equal(table[start:start + length], rows)]
    return int(starts[0]) if len(starts) == 1 else None


def rows_of(value):
    """The rows [T D] that are alike in a whole batch; or None."""
    array = value.array
    if array.ndim < 2 or not array.size:
        return None
    rows = array.reshape(-1, *array.shape[-2:])
    return rows[0] if (rows == rows[0]).all() else None


def looks_up(trace, value):
    """Whether a value is made of the ids that the model was given."""
    return any(
        array.dtype.kind in "iu" and any(
            np.array_equal(array, given) for given in trace.inputs.values())
        for what, path, _ in value.places if what == "output"
        for array in trace.step(path).inputs.values())


def first_positions(traces, values, pairs):
    """From which row on each of two models cuts one table.

    Args:
        traces: of both.
        values: an EarlierValue of each, which the other has not.
        pairs: those of the parameters.

    Returns:
        The first row in a and in b, or None: no table has both.
    """
    rows = [rows_of(value) for value in values]
    if any(each is None for each in rows) or any(
            map(looks_up, traces, values)):
        return None
    found = set()
    for pair in pairs:
        if pair.a_layout == pair.b_layout == SAME:
            firsts = [first_row(each, trace.parameters[trace.aliases.get(
                path, path)]) for each, trace, path in zip(
                    rows, traces, (pair.a, pair.b))]
            if None not in firsts:
                found.add(tuple(firsts))
    return found.pop() if len(found) == 1 else None
