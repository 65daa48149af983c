"""Arrays of which a program printed the corners alone, and their mean.

llama.cpp and PyTorch print the first and the last three places along each
axis. The other side is cut likewise, so that both know the same numbers. What
lies between is seen in the mean of all numbers, if that is printed.
"""

import dataclasses
import math

import numpy as np

from parity.tracing.trace import WHOLE, is_float

#: How many places at each end of an axis are printed.
END = 3

#: The name of the second array, [mean, root mean square of the corners].
MEAN = "mean"

#: What a step of the last row alone is called, after its path.
LAST_ROW = " (last row)"


def lean(shape):
    """A shape without its axes of one."""
    return tuple(length for length in shape if length != 1)


def corners(array):
    """What is printed of an array, its axes of one left out."""
    array = array.reshape(lean(array.shape))
    for axis, length in enumerate(array.shape):
        if length > 2 * END:
            array = np.take(array, [*range(END), *range(
                length - END, length)], axis)
    return array


def printed_as(name, known, total, size):
    """{name: what is known of an array}, with its mean if it is floating.

    Args:
        name: of the array.
        known: its corners.
        total: the sum of all its numbers, or None.
        size: how many these are.
    """
    if total is None or not is_float(known):
        return {name: known}
    root = float(np.sqrt(np.square(known, dtype=np.float64).mean())
                 ) if known.size else 0.0
    return {name: known, f"{name} {MEAN}": np.array(
        [total / max(size, 1), root], known.dtype)}


def alike(a, b):
    """Two Traces that know the same numbers of their arrays.

    Returns:
        The two as they are, unless one of them is printed: the other's arrays
        of a shape that is cut there are then cut.
    """
    return _cut(a, b), _cut(b, a)


def partly(a, b):
    """In words, which of the models' outputs are known in part alone."""
    shapes = a.printed | b.printed
    return [f"{array.size} of the {math.prod(shape)} of {name}"
            for name, array in a.step(WHOLE).outputs.items()
            if (shape := shapes.get((WHOLE, "outputs", name)))]


def _cut(trace, other):
    """A Trace, cut as another is that is printed."""
    if not other.printed:
        return trace
    shapes = set(other.printed.values())
    rows: dict = {path == WHOLE: set() for path in ("", WHOLE)}
    for step in other.steps:
        rows[step.path == WHOLE] |= {other.printed.get(
            (step.path, "outputs", name), lean(array.shape))
            for name, array in step.outputs.items()}
    steps, known = [], dict(trace.printed)
    for step in trace.steps:
        whole = step.path == WHOLE
        last = _last_rows(step.outputs, rows[whole])
        if whole and last and not rows[whole] & {
                lean(array.shape) for array in step.outputs.values()}:
            step, last = dataclasses.replace(step, outputs=last), {}
        steps.append(_cut_step(step, known, shapes))
        if last and not whole:
            steps.append(_cut_step(dataclasses.replace(
                step, path=step.path + LAST_ROW, inputs={}, outputs=last),
                known, shapes))
    return dataclasses.replace(trace, steps=steps, printed=known,
                               _rerun=None, _hashes={}, given=None)


def _last_rows(arrays, shapes):
    """The last rows of arrays, where such ones are printed: llama.cpp goes on
    with the last token alone in its last layer."""
    rows = {name: array[..., -1, :] for name, array in arrays.items()
            if array.ndim > 1 and array.shape[-2] > 1}
    return {name: row for name, row in rows.items()
            if lean(row.shape) in shapes}


def _cut_step(step, known, shapes):
    """A step whose arrays of these shapes are cut, and put into ``known``."""
    sides: dict = {}
    for side in ("inputs", "outputs"):
        arrays = sides[side] = {}
        for name, array in getattr(step, side).items():
            key = step.path, side, name
            if key in known or lean(array.shape) not in shapes:
                arrays[name] = array
                continue
            known[key] = lean(array.shape)
            arrays |= printed_as(name, corners(array), float(
                np.sum(array, dtype=np.float64)), array.size)
    return dataclasses.replace(step, **sides, gradients={}, others={})
