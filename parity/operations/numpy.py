"""A function of NumPy arrays as operations; see parity.operations.program.

The arrays that the function is given are of a subclass of ``numpy.ndarray``,
which NumPy asks to carry out each of its functions. What NumPy computes of
plain arrays alone, and what is written into one, is not seen: such an array is
a constant.
"""

import copy
import time

import numpy as np

from parity_io.errors import InputError
from parity.operations.frames import Frames
from parity.operations.numpy_array import RecordedArray, plain
from parity.operations.numpy_names import (
    IDENTITIES, MIXED, NAMES, REDUCED, indexed, moved, translated)
from parity.operations.keeping import put_down
from parity.operations.program import (
    CONSTANT, INPUT, LEAF, MADE, OPERAND, PARAMETER, RESULT, Operation,
    Program, Rounding)
from parity.tracing.recorder import argument_names, mapped

#: What is shorter than float64, and what an exact run has instead.
LONGER = {np.dtype(short): np.dtype(long) for short, long in (
    ("float16", "float64"), ("float32", "float64"),
    ("complex64", "complex128"))}


class NumpyRecording:
    """Records, widens and edits the operations of one run.

    Args:
        exact, edits, keep: as of ``Runner.run``.
    """

    def __init__(self, exact, edits, keep):
        self.program, self.exact = Program("numpy", exact), exact
        self.edits, self.keep = dict(edits or {}), keep
        self.frames = Frames({}, ("numpy",), Runner.run.__code__)
        self.rounded = {}

    def seen(self, array, declared, kind=MADE, name="", made_by=None):
        """An array as a new Value."""
        array = self.widened(np.asarray(array))
        number = put_down(self.program, self.keep, np.array(array), kind,
                          name, str(declared), made_by)
        made = array.view(RecordedArray)
        made.recording, made.number, made.declared = self, number, declared
        return made

    def leaf(self, kind, name, array):
        """An input or a parameter."""
        array, declared = np.array(array), array.dtype
        return self.seen(self.edited(self.widened(array), (LEAF, name)),
                         declared, kind, name)

    def widened(self, array):
        """An array in float64 if the run is exact."""
        return array.astype(LONGER[array.dtype]) if (
            self.exact and array.dtype in LONGER) else array

    def edited(self, array, key):
        """An array, or what an edit puts in its place."""
        if key not in self.edits:
            return array
        return np.array(np.broadcast_to(self.edits[key], array.shape),
                        array.dtype)

    def known(self, operand):
        """An operand as an array whose Value is known."""
        if isinstance(operand, RecordedArray) and operand.recording is self:
            return operand
        array = np.asarray(plain(operand))
        made = self.seen(array, array.dtype, CONSTANT)
        if isinstance(operand, (int, float, complex)) and not isinstance(
                operand, np.generic):
            made.scalar = operand
        return made

    def record(self, name, native, settings, operands, compute, declared):
        """Do an operation and record it.

        Args:
            operands: arrays whose Values are known.
            compute: of plain arrays, in the order of the operands.
            declared: of plain results, the dtype that the program has.

        Returns:
            The results, a list.
        """
        number = len(self.program.operations)
        place, module = self.frames.here()
        arrays = [
            self.edited(plain(each), key) if each.scalar is None
            or key in self.edits else each.scalar for each, key in (
                (each, (OPERAND, number, slot))
                for slot, each in enumerate(operands))]
        made = compute(arrays)
        several = made if isinstance(made, (tuple, list)) else (made,)
        operation = Operation(
            number, name, native, tuple(each.number for each in operands),
            settings, (), place, module)
        self.program.operations.append(operation)
        results = []
        for slot, each in enumerate(map(np.asarray, several)):
            each = self.edited(self.widened(each), (RESULT, number, slot))
            results.append(self.seen(each, declared(each), MADE, "", number))
        operation.results = tuple(each.number for each in results)
        return results if isinstance(made, (tuple, list)) else results[0]

    def declared(self, operands, keywords):
        """The dtype of a result, as the program has it."""
        def of(made):
            if keywords.get("dtype") is not None:
                return np.dtype(keywords["dtype"])
            floats = [each.declared for each in operands
                      if each.declared.kind in "fc" and (
                          each.ndim or each.number is not None and
                          self.program.values[each.number].kind != CONSTANT)]
            if made.dtype.kind not in "fc" or not floats:
                return made.dtype
            return np.result_type(*floats)
        return of

    def longer(self, keywords):
        """Keywords whose dtype is float64 at least."""
        if keywords.get("dtype") is None or not self.exact:
            return keywords
        dtype = np.dtype(keywords["dtype"])
        return keywords | {"dtype": LONGER.get(dtype, dtype)}

    def ufunc(self, function, method, inputs, keywords):
        """A ufunc, or its reduction."""
        keywords = dict(keywords)
        out = keywords.pop("out", (None,))
        native = function.__name__
        if native in IDENTITIES:
            made = self.known(inputs[0])
        else:
            operands = [self.known(each) for each in inputs]
            args = keywords
            if method == "reduce":
                args = {"axis": 0} | keywords
            name = NAMES.get(native, native) if method == "__call__" else (
                REDUCED.get((native, method), f"{native}.{method}"))
            name, settings = translated(name, operands, inputs, args, None)
            wide = self.longer(plain(keywords))
            made = self.record(
                name, native, settings, operands,
                lambda arrays: getattr(function, method)(*arrays, **wide),
                self.declared(operands, keywords))
        if out[0] is None:
            return made
        return self.put(out[0], made)

    def put(self, target, made):
        """Write a result into the array that is to have it."""
        np.ndarray.__setitem__(target, ..., plain(made))
        if isinstance(target, RecordedArray):
            target.recording, target.number = self, made.number
            target.declared = made.declared
        return target

    def call(self, native, function, args, keywords):
        """One of NumPy's functions, or an array's method."""
        name = NAMES.get(native, native)
        if native in IDENTITIES:
            made = plain(args[0]).copy().view(RecordedArray)
            made.recording, made.number = self, args[0].number
            made.declared = args[0].declared
            return made
        operands = []

        def visit(_, leaf):
            if isinstance(leaf, np.ndarray) or (
                    native in MIXED and isinstance(leaf, (int, float))
                    and not isinstance(leaf, bool)):
                operands.append(self.known(leaf))
                return ArrayPlace(len(operands) - 1)
            return leaf
        args, keywords = mapped((tuple(args), dict(keywords)), "", visit)
        if name == "cast":
            self.cast(operands[0], args, keywords)

        def compute(arrays):
            def fill(_, leaf):
                return arrays[leaf.place] if isinstance(
                    leaf, ArrayPlace) else leaf
            given, options = mapped((args, wide), "", fill)
            return function(*given, **options)
        wide = self.longer(keywords)
        if name == "cast" and self.exact and len(args) > 1:
            dtype = np.dtype(args[1])
            args = (args[0], LONGER.get(dtype, dtype), *args[2:])
            keywords = keywords | {"dtype": dtype}
        if name == "transpose":
            settings = {"axes": moved(lambda each: function(
                *(each if isinstance(arg, ArrayPlace) else arg for arg in args),
                **keywords), operands[0].ndim)}
        else:
            made = compute([plain(each) for each in operands]) if (
                name in ("reshape", "broadcast")) else None
            name, settings = translated(name, operands, args, keywords, made)
        return self.record(name, native, settings, operands, compute,
                           self.declared(operands, keywords))

    def cast(self, array, args, keywords):
        """Count what a cast would round."""
        dtype = np.dtype(keywords.get("dtype", args[1] if args[1:] else None))
        if dtype in LONGER and array.declared.itemsize > dtype.itemsize:
            numbers = plain(array)
            with np.errstate(all="ignore"):
                lost = numbers.astype(dtype).astype(numbers.dtype) != numbers
            key = self.frames.here()[0], str(dtype)
            self.rounded[key] = self.rounded.get(key, 0) + int(
                np.sum(lost & ~np.isnan(numbers)))

    def item(self, array, index):
        """``array[index]``."""
        index = plain(index)
        made = plain(array)[index]
        name, settings = indexed(array.shape, index, np.shape(made))
        operands = [array, *(self.known(part) for part in (
            index if isinstance(index, tuple) else (index,)) if isinstance(
                part, (np.ndarray, list)))]
        return self.record(name, "getitem", settings, operands,
                           lambda arrays: arrays[0][index],
                           lambda _: array.declared)

    def written(self, array, index, value):
        """``array[index] = value`` was done."""
        made = self.record(
            "put", "setitem", {}, [array, self.known(value)],
            lambda arrays: np.array(plain(array)), lambda _: array.declared)
        array.number = made.number

    def finish(self, output, seconds):
        """The Program, its outputs named."""
        def visit(name, leaf):
            if isinstance(leaf, (np.ndarray, np.generic)):
                self.program.outputs[name] = self.known(leaf).number
            return leaf
        mapped(output, "output", visit)
        self.program.roundings = [Rounding(*key, count) for key, count
                                  in self.rounded.items() if count]
        self.program.seconds = seconds
        return self.program


class ArrayPlace:
    """The place of an operand among arguments."""

    def __init__(self, place):
        self.place = place


def parts_of(model, path="", seen=None):
    """Yield (path, array or object) of a callable object's attributes."""
    seen = set() if seen is None else seen
    if id(model) in seen or isinstance(model, type):
        return
    seen.add(id(model))
    if isinstance(model, np.ndarray):
        yield path, model
        return
    if isinstance(model, dict):
        held = model.items()
    elif isinstance(model, (list, tuple)):
        held = enumerate(model)
    elif hasattr(model, "__dict__") and not hasattr(model, "__code__"):
        held = vars(model).items()
        yield path, model
    else:
        return
    for name, value in held:
        yield from parts_of(value, f"{path}.{name}" if path else str(name),
                            seen)


class Runner:
    """Runs a callable on NumPy arrays; see ``program.Runner``.

    A copy of a callable object runs, with its arrays as parameters. What a
    plain function has in its closure are constants. ``make`` is not asked:
    tables of plain NumPy are as they are.
    """

    framework = "numpy"

    def __init__(self, model, inputs, keywords, make=None):
        if not callable(model):
            raise InputError(
                f"a {type(model).__name__} cannot be called; hand in a "
                "function of NumPy arrays.")
        self.model, self.inputs, self.keywords = model, inputs, keywords

    def run(self, exact=False, edits=None, keep=True):
        """Run the function once; see ``program.Runner``."""
        began = time.perf_counter()
        recording = NumpyRecording(exact, edits, keep)
        memo = {}
        for path, part in parts_of(self.model):
            if isinstance(part, np.ndarray):
                memo[id(part)] = recording.leaf(PARAMETER, path, part)
        model = copy.deepcopy(self.model, memo)
        recording.frames.paths = {
            id(part): path or "(model)" for path, part in parts_of(model)
            if not isinstance(part, np.ndarray)}
        names, _ = argument_names(self.model, self.inputs, self.keywords)

        def visit(name, leaf):
            return recording.leaf(INPUT, name, leaf) if isinstance(
                leaf, np.ndarray) else leaf
        args = [mapped(value, name, visit)
                for name, value in zip(names, self.inputs)]
        keywords = {name: mapped(value, name, visit)
                    for name, value in self.keywords.items()}
        output = model(*args, **keywords)
        return recording.finish(output, time.perf_counter() - began)
