"""A stored Program run again in NumPy, from what an edit changes on.

An operation is believed only if NumPy makes of its operands what the run made
of them; where it does not, such as of one that NumPy lacks, nothing that
follows from it can be edited.
"""

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Callable

import numpy as np

from parity_io.errors import InputError
from parity.operations.align import is_view
from parity.operations.layouts import distance
from parity.operations.program import LEAF, OPERAND, RESULT, Value
from parity.operations.signature import signature

#: How far NumPy's result of stored operands is from the stored one at most.
NEAR = 1e-10

#: Name in the vocabulary -> a function of arrays, number by number.
PLAIN: dict[str, Callable] = {
    name: function for name, function in vars(np).items()
    if isinstance(function, np.ufunc) and not function.signature} | {
    "real": np.real, "imag": np.imag, "where": np.where, "clip": np.clip,
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


def replayed(program, edits, checked, had=None):
    """A Program as it would be under edits.

    Args:
        program: a Program with all arrays.
        edits: as of ``program.Runner.run``.
        checked: {number of an operation: its way}, kept between calls.
        had: those of the edits under which the Program was run.

    Raises:
        InputError: NumPy does not do what the run did.
    """
    had, changed, by_operation = had or {}, {}, {}

    def put(number, array, source=None):
        value = program.values[number]
        array = _as(array, value)
        of = signature(array, value.signature, source)
        if of is not value.signature:  # else what follows is as it was
            changed[number] = Value(
                number, value.kind, value.name, value.shape, value.dtype,
                array, of, value.made_by)

    leaves = {}
    for edit, array in edits.items():
        what, which, *slot = edit
        new = had.get(edit) is not array
        if what != LEAF:
            by_operation.setdefault(which, {})[what, slot[0]] = array, new
        elif new:
            leaves[which] = array
    for value in program.values if leaves else ():
        if value.name in leaves and value.made_by is None:
            put(value.number, leaves[value.name])
    with np.errstate(all="ignore"):
        for operation in program.operations:
            mine = by_operation.get(operation.number, {})
            if not mine and changed.keys().isdisjoint(operation.operands):
                continue
            given = {slot: mine[RESULT, slot] for slot in range(
                len(operation.results)) if (RESULT, slot) in mine}
            if len(given) < len(operation.results) and (any(
                    new for (what, _), (_, new) in mine.items()
                    if what == OPERAND) or any(
                    each in changed for each in operation.operands)):
                arrays = [
                    _as(mine[OPERAND, slot][0], program.values[each])
                    if (OPERAND, slot) in mine
                    else changed.get(each, program.values[each]).array
                    for slot, each in enumerate(operation.operands)]
                made = _made(program, operation, arrays, checked, had)
                source = changed.get(operation.operands[0]) if is_view(
                    operation) else None
                for slot, (result, array) in enumerate(zip(
                        operation.results, made)):
                    if slot not in given:
                        put(result, array, source and source.signature)
            for slot, (array, new) in given.items():
                if new:
                    put(operation.results[slot], array)
    return dataclasses.replace(program, values=[
        changed.get(value.number, value) for value in program.values])


def _as(array, value):
    """An array in the shape and dtype of a Value's."""
    array = np.asarray(array, value.array.dtype)
    return array if array.shape == value.array.shape else np.array(
        np.broadcast_to(array, value.array.shape))


def _made(program, operation, arrays, checked, had):
    """What an operation makes of other operands: an array a result."""
    number = operation.number
    results = [program.values[each] for each in operation.results]
    if number not in checked:
        if any((RESULT, number, slot) in had for slot in range(len(results))):
            raise InputError(
                f"what {operation.native} at {operation.place} gives is not "
                "known.")
        checked[number] = _way(operation, [
            _as(had[OPERAND, number, slot], program.values[each])
            if (OPERAND, number, slot) in had else program.values[each].array
            for slot, each in enumerate(operation.operands)], results)
    way = checked[number]
    if way is None:
        raise InputError(
            f"{operation.native} at {operation.place} is not computed anew.")
    try:
        made = way(arrays)
    except Exception as error:  # NumPy's, or a framework's own
        raise InputError(
            f"{operation.native} at {operation.place} does not take what an "
            "edit gives it.") from error
    if any(np.size(array) != value.signature.size
           for array, value in zip(made, results)):
        raise InputError(f"{operation.native} at {operation.place} gives "
                         "another number of numbers.")
    return [_as(np.reshape(array, value.shape), value)
            for array, value in zip(made, results)]


def _way(operation, arrays, results):
    """The first function of arrays that gives an operation's own results of
    its own operands, or None."""
    for way in (*ways_of(operation, results),
                *filter(None, [operation.again])):
        with contextlib.suppress(Exception):  # it is not this one
            made = way(arrays)
            if len(made) == len(results) and all(
                    np.size(one) == two.array.size and distance(
                        np.reshape(one, two.shape), two.array) <= NEAR
                    for one, two in zip(made, results)):
                return way
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
