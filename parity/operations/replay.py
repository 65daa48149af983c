"""A stored Program run again in NumPy, from what an edit changes on.

An operation is believed only if NumPy makes of its operands what the run made
of them; where it does not, such as of one that NumPy lacks, nothing that
follows from it can be edited.
"""

import dataclasses
import itertools
import math

import numpy as np

from parity_io.errors import InputError
from parity.operations.layouts import distance
from parity.operations.program import LEAF, OPERAND, RESULT
from parity.operations.signature import signature

#: How far NumPy's result of stored operands is from the stored one at most.
NEAR = 1e-10

#: Name in the vocabulary -> a function of arrays, number by number.
PLAIN = {name: getattr(np, name) for name in (
    "negative", "exp", "expm1", "log", "log1p", "sqrt", "abs", "sign", "sin",
    "cos", "tan", "tanh", "floor", "ceil", "logical_not", "isfinite", "isnan",
    "reciprocal", "conjugate", "real", "imag", "add", "subtract", "multiply",
    "divide", "power", "maximum", "minimum", "remainder", "floor_divide",
    "arctan2", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal", "logical_and", "logical_or", "logical_xor", "where",
    "bitwise_and", "bitwise_or", "bitwise_xor", "clip")} | {
    "round": np.rint, "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": np.vectorize(math.erf, otypes="d"),
    "erfc": np.vectorize(math.erfc, otypes="d"),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0), "cast": lambda x: x,
    "stop_gradient": lambda x: x, "reshape": lambda x: x,
    "full": lambda x: x, "softplus": lambda x: np.logaddexp(x, 0)}

#: Those along axes.
REDUCED = {"sum", "mean", "max", "min", "prod", "any", "all", "argmax",
           "argmin", "cumsum", "cumprod"}


def replayed(program, edits, checked):
    """A Program as it would be under edits.

    Args:
        program: a Program with all arrays.
        edits: as of ``program.Runner.run``.
        checked: {number of an operation: its way}, kept between calls.

    Raises:
        InputError: NumPy does not do what the run did.
    """
    given = {name: array for (what, name, *_), array in edits.items()
             if what == LEAF}
    changed = {value.number: _as(array, value) for value in program.values
               for array in [given.get(value.name)]
               if value.name and array is not None}

    def array_of(number):
        return changed[number] if number in changed else (
            program.values[number].array)

    with np.errstate(all="ignore"):
        for operation in program.operations:
            number = operation.number
            asked = {slot: edits[OPERAND, number, slot] for slot in range(
                len(operation.operands)) if (OPERAND, number, slot) in edits}
            if asked or any(each in changed for each in operation.operands):
                arrays = [_as(asked[slot], program.values[each])
                          if slot in asked else array_of(each)
                          for slot, each in enumerate(operation.operands)]
                changed |= zip(operation.results, _made(
                    program, operation, arrays, checked))
            for slot, result in enumerate(operation.results):
                if (RESULT, number, slot) in edits:
                    changed[result] = _as(
                        edits[RESULT, number, slot], program.values[result])
    values = [dataclasses.replace(
        value, array=changed[value.number],
        signature=signature(changed[value.number], value.signature))
        if value.number in changed else value for value in program.values]
    return dataclasses.replace(program, values=values)


def _as(array, value):
    """An array in the shape and dtype of a Value's."""
    return np.array(np.broadcast_to(array, value.array.shape),
                    value.array.dtype)


def _made(program, operation, arrays, checked):
    """What an operation makes of other operands: an array a result."""
    results = [program.values[each] for each in operation.results]
    if operation.number not in checked:
        checked[operation.number] = _way(program, operation, results)
    way = checked[operation.number]
    if way is None:
        raise InputError(
            f"{operation.native} at {operation.place} is not computed anew.")
    return [_as(array.reshape(value.shape) if array.size == value.array.size
                else array, value)
            for array, value in zip(way(arrays), results)]


def _way(program, operation, results):
    """The first function of arrays that gives an operation's own results of
    its own operands, or None."""
    arrays = [program.values[each].array for each in operation.operands]
    for way in ways_of(operation, results):
        try:
            made = way(arrays)
            if len(made) == len(results) and all(
                    np.size(one) == two.array.size and distance(
                        np.reshape(one, two.shape), two.array) <= NEAR
                    for one, two in zip(made, results)):
                return way
        except (ValueError, IndexError, TypeError, KeyError):
            continue
    return None


def ways_of(operation, results):
    """Yield functions of a list of arrays that may be an operation."""
    name, settings = operation.name, operation.settings
    if name in PLAIN and len(results) == 1:
        yield lambda arrays: [PLAIN[name](*arrays)]
    elif name in REDUCED:
        yield lambda arrays: [getattr(np, name)(
            arrays[0], _axes(settings.get("axis"), name))]
    elif name in ("var", "norm"):
        yield lambda arrays: [_spread(name, arrays[0], settings)]
    elif name == "transpose":
        rank = len(results[0].shape)
        yield lambda arrays: [np.transpose(arrays[0], settings["axes"])]
        for axes in itertools.permutations(range(rank)) if rank < 6 else ():
            yield lambda arrays, axes=axes: [np.transpose(arrays[0], axes)]
    elif name == "broadcast":
        yield lambda arrays: [np.broadcast_to(arrays[0], results[0].shape)]
    elif name == "matmul":
        yield lambda arrays: [_product(*arrays, settings)]
        yield lambda arrays: [np.matmul(*arrays)]
    elif name == "slice":
        yield lambda arrays: _parts(arrays[0], settings, results)
    elif name == "take":
        axis = settings.get("axis", 0)
        yield lambda arrays: [np.take(arrays[0], arrays[1].astype(int), axis)]
    elif name == "take_along_axis":
        yield lambda arrays: [np.take_along_axis(
            arrays[0], arrays[1].astype(int), settings["axis"])]
    elif name == "concatenate":
        yield lambda arrays: [np.concatenate(arrays, settings.get("axis", 0))]
    elif name in ("flip", "roll"):
        more = [settings["shift"]] if name == "roll" else []
        axes = settings.get("axis", settings.get("axes")) or None
        yield lambda arrays: [getattr(np, name)(arrays[0], *more, axes)]
    elif name in ("tril", "triu"):
        yield lambda arrays: [getattr(np, name)(
            arrays[0], settings.get("diagonal", 0))]
    elif name == "repeat":
        yield lambda arrays: [np.tile(arrays[0], settings["repeats"])]
        yield lambda arrays: [np.repeat(
            arrays[0], settings["repeats"], settings["axis"])]
    elif name == "pad":
        yield lambda arrays: [_padded(*arrays, settings=settings)]
    elif name == "convolution":
        yield lambda arrays: [_convolved(*arrays[:2], settings)]


def _axes(axis, name):
    """An axis as NumPy takes it: one, several, or None of all."""
    if axis in (None, ()):
        return None
    one = isinstance(axis, tuple) and (
        len(axis) == 1 or name.startswith(("arg", "cum")))
    return axis[0] if one else axis


def _spread(name, x, settings):
    """A variance, or a Euclidean norm."""
    axis = _axes(settings.get("axis"), name)
    if name == "norm":
        return np.sqrt((np.abs(x) ** 2).sum(axis))
    return np.var(x, axis, ddof=int(settings.get("correction") or 0))


def _product(x, y, settings):
    """A product that sums over axes: batch, then x's others, then y's."""
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    one, two = ["" for _ in x.shape], ["" for _ in y.shape]
    (left, right), (first, second) = settings["contract"], settings["batch"]
    made = ""
    for i, j in zip((*left, *first), (*right, *second)):
        one[i % x.ndim] = two[j % y.ndim] = next(letters)
    made = "".join(one[i % x.ndim] for i in first)
    for names in (one, two):
        for i, name in enumerate(names):
            names[i] = name or next(letters)
            made += "" if name else names[i]
    product = np.einsum(f"{''.join(one)},{''.join(two)}->{made}", x, y)
    return product.transpose(settings["axes"]) if (
        "axes" in settings) else product


def _parts(x, settings, results):
    """A slice, or the parts of a split."""
    start, stop, step = (settings.get(each)
                         for each in ("start", "stop", "step"))
    if isinstance(start, tuple):
        return [x[tuple(map(slice, start, stop, step))]]
    axis = (settings.get("axis") or 0) % x.ndim
    if "sizes" not in settings and len(results) == 1:
        stop = None if stop is None or stop > x.shape[axis] else stop
        return [x[(slice(None),) * axis + (slice(start, stop, step),)]]
    count = sum(each.array.size for each in results)
    sizes = [each.array.size * x.shape[axis] // count for each in results]
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def _padded(x, value=0.0, settings=None):
    """With a constant at the sides; torch names the last axis first."""
    pads = [*zip(settings["low"], settings["high"])] if (
        "low" in settings) else [(0, 0)] * (
        x.ndim - len(settings["pad"]) // 2) + [
        settings["pad"][i:i + 2]
        for i in range(len(settings["pad"]) - 2, -1, -2)]
    mode = settings.get("mode")
    return np.pad(x, pads, mode) if mode else np.pad(
        x, pads, constant_values=float(np.reshape(value, -1)[0]))


def _convolved(x, kernel, settings):
    """A convolution in any layout: of channels first, or as ``layout`` has
    it, or else of channels last."""
    if settings.get("transposed"):
        raise ValueError("a transposed convolution")
    rank = x.ndim - 2
    first = (0, 1, *range(2, rank + 2))
    last = (0, rank + 1, *range(1, rank + 1))
    layouts = settings.get("layout") or (
        (last, (rank + 1, rank, *range(rank)), last)
        if isinstance(settings["padding"][0], tuple) else (first,) * 3)
    x, kernel = x.transpose(layouts[0]), kernel.transpose(layouts[1])
    pads = [each if isinstance(each, tuple) else (each, each)
            for each in settings["padding"]]
    groups = settings.get("groups", 1)
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    dilation, strides = settings["dilation"], settings["strides"]
    spans = [(size - 1) * by + 1 for size, by in zip(
        kernel.shape[2:], dilation)]
    seen = np.lib.stride_tricks.sliding_window_view(
        x, spans, tuple(range(2, rank + 2)))
    seen = seen[(slice(None), slice(None), *(
        slice(None, None, by) for by in strides), *(
        slice(None, None, by) for by in dilation))]
    seen = seen.reshape(len(x), groups, -1, *seen.shape[2:])
    kernel = kernel.reshape(groups, -1, *kernel.shape[1:])
    places = "uvw"[:rank]
    taps = "xyz"[:rank]
    made = np.einsum(f"ngc{places}{taps},goc{taps}->ngo{places}", seen, kernel)
    made = made.reshape(len(x), -1, *made.shape[3:])
    return made.transpose(np.argsort(layouts[2]))
