"""The operations of torch, recorded as they come.

A TorchDispatchMode sees each operation of this thread below autograd, with its
values; what torch does in one call is taken apart by
``parity.operations.torch_parts``. No class is patched and nothing is hooked.
"""

import contextlib
import functools

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_unflatten
from torch.utils.weak import WeakIdKeyDictionary

from parity.operations.frames import Frames
from parity.operations.keeping import put_down, put_down_known
from parity.operations.program import (
    CONSTANT, LEAF, MADE, OPERAND, RESULT, Operation, Program)
from parity.operations.torch_again import TorchAgain
from parity.operations.torch_calls import (
    Mode, Unfused, in_full, is_random, mutated, native, tensors_of, to_numpy,
    tree_map)
from parity.operations.torch_known import Unchanged, moved
from parity.operations.torch_names import IDENTITIES, at, put, translated
from parity.operations.torch_parts import PARTS
from parity.operations.torch_twins import (
    LONGER, SIZE, Twins, lie, longer, widened)
from parity.tracing.recorder import mapped

aten = torch.ops.aten

#: What makes an array of whatever stood there.
EMPTY = {aten.empty, aten.empty_strided, aten.empty_like, aten.new_empty,
         aten.new_empty_strided}

#: Whether torch itself can take an operation apart.
decomposes = functools.cache(torch._ops.OpOverload._can_decompose)


class TorchRecording(Mode):
    """Records, widens and edits each operation of a run.

    Args:
        names: [(kind, name, tensor)] of inputs, parameters and buffers.
        exact, edits, keep: as of ``Runner.run``.
        paths: id(module) -> path.
        before: the Program of an earlier run, of which what is the same is
            not computed anew.
        marks: the ``unchanged.marks`` of that run, or None.
    """

    def __init__(self, names, exact, edits, keep, paths, before=None,
                 marks=None, end=None):
        super().__init__()
        self.program, self.keep = Program("torch", exact), keep
        self.before = before
        self.edits = {}
        for (what, which, *slot), array in (edits or {}).items():
            self.edits.setdefault((what, which), {})[
                slot[0] if slot else 0] = array
        self.frames = Frames(
            paths, ("torch.nn", "torch"), end)
        self.twins = Twins(exact)
        self.numbers = WeakIdKeyDictionary()  # tensor -> number, version
        self.geometry = {}  # where it lies -> its storage, number, version
        self.writers = {}  # storage -> number of what was written last
        self.unchanged = Unchanged(
            self.program, self.edits, names, before, marks)
        self.leaves, self.lies = {}, {}  # name -> number, twin -> places
        self.names, self.roundings = {}, {}
        for kind, name, tensor in names:
            self.names.setdefault(lie(tensor), (kind, name))
            if (edit := self.edits.get((LEAF, name))) is not None:
                self.twins.replace(tensor, edit[0])

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        part = PARTS.get(function.overloadpacket)
        if part is not None or decomposes(function):
            with self:
                made = (part or function.decompose)(*args, **kwargs)
            if made is not NotImplemented:
                return made
        return self.operation(function, args, kwargs)

    def operation(self, function, args, kwargs):
        """Do an operation, record it, and return what it gives."""
        name, paths, settings = translated(function, args, kwargs)
        declared = self.declared(args, kwargs)
        self.forget()
        args, kwargs = self.wide(function, args, kwargs, declared)
        if function.overloadpacket in IDENTITIES and self.same_dtype(
                function, args, kwargs):
            made = function(*args, **kwargs)
            if declared is not None:
                self.twins.declare(made, declared)
            self.know(made, self.number(at(args, kwargs, paths[0])))
            return made
        number = len(self.program.operations)
        operation = Operation(number, name, str(function), (), settings, (),
                              *self.here(number, str(function)))
        self.program.operations.append(operation)
        mine = self.edits.get((OPERAND, number), {})
        for slot in mine:  # a number is what it is edited to
            if not isinstance(at(args, kwargs, paths[slot]), torch.Tensor):
                args, kwargs = put(args, kwargs, paths[slot], native(
                    mine[slot], at(args, kwargs, paths[slot])))
        operation.operands = tuple(
            self.number(at(args, kwargs, path)) for path in paths)
        for slot in mine:  # an array is numbered as what it stands for
            had = at(args, kwargs, paths[slot])
            if not isinstance(had, torch.Tensor):
                continue
            instead = native(mine[slot], had)
            if any(each is had for each in mutated(function, args, kwargs)):
                had.copy_(instead)  # it is written in place, for all to see
            else:
                args, kwargs = put(args, kwargs, paths[slot], instead)
        written = mutated(function, args, kwargs)
        if not written and not is_random(function):
            operation.again = TorchAgain(function, args, kwargs, paths)
        made = self.done(function, args, kwargs, declared)
        if name == "full" and function.overloadpacket in EMPTY:
            made.zero_()  # what nobody wrote would differ by chance
        if self.twins.exact:
            made = tree_map(widened, in_full(function, args, kwargs, made))
        made = self.edited(number, made, written)
        for each in written:
            self.twins.hold(each)
        results = {id(each): each for each in (*tensors_of(made), *written)}
        known = [None] * len(results) if is_random(function) else (
            self.unchanged.results(operation, len(results)))
        of = None if written else [moved(
            self.program, operation, each, self.edits)
            for each in results.values()]
        operation.results = tuple(
            self.add(MADE, "", each, declared, number, same, of and of[i])
            for i, (each, same) in enumerate(zip(results.values(), known)))
        for each in () if written else tensors_of(made):
            for base in tensors_of((args, kwargs)):
                if each.untyped_storage().data_ptr() == (
                        base.untyped_storage().data_ptr()):
                    # A view has its base's version, but not yet.
                    self.know(each, self.numbers[each][0], base._version)
        for each in written:  # torch counts the version up afterwards
            self.know(each, self.numbers[each][0], each._version + 1)
            self.writers[each.untyped_storage().data_ptr()] = self.numbers[
                each][0]
        return made

    def here(self, number, native):
        """The Place and module of an operation."""
        if self.before and number < len(self.before.operations):
            known = self.before.operations[number]
            if known.native == native:
                return known.place, known.module
        return self.frames.here()

    # What an exact run does otherwise.

    def declared(self, args, kwargs):
        """The dtype of an operation's result as the program declares it."""
        if isinstance(kwargs.get("dtype"), torch.dtype):
            return kwargs["dtype"]
        floats = [(each.dim() > 0, self.twins.dtype_of(each))
                  for each in tensors_of((args, kwargs))]
        floats = [each for each in floats if each[1] in SIZE]
        arrays = any(is_array for is_array, _ in floats)
        return max((dtype for is_array, dtype in floats
                    if is_array == arrays), key=SIZE.get, default=None)

    def wide(self, function, args, kwargs, declared):
        """Arguments with nothing shorter than float64 among them."""
        if self.twins.exact and not is_random(function):
            of = tensors_of(args)
            had = SIZE.get(self.twins.dtype_of(of[0]), 0) if of else 0
            for asked in (*args, *kwargs.values()):
                if isinstance(asked, torch.dtype) and asked in LONGER and (
                        SIZE[asked] < had):
                    place, _ = self.here(len(self.program.operations), "")
                    key = place, str(asked).removeprefix("torch.")
                    self.roundings[key] = (
                        self.roundings.get(key, 0) + of[0].numel())
            args = [longer(each) for each in args]
            kwargs = {name: longer(each) for name, each in kwargs.items()}

        def twin(value):
            made = self.twins.of(value)
            return made if made is value else self.named_as(made, value)
        return tree_map(twin, list(args)), tree_map(twin, kwargs)

    def named_as(self, twin, value):
        """A twin, which has the name that what it stands for has."""
        if lie(value) in self.names:
            place = lie(twin)
            self.names[place] = self.names[lie(value)]
            self.lies.setdefault(place[0], set()).add(place)
        return twin

    def given(self, value):
        """An input in float64 at least; any other value as it is.

        torch itself refuses an input that is shorter than a bias.
        """
        with _disable_current_modes():  # this is no operation of the model's
            twin = self.twins.of(value)
        return twin if twin is value else self.named_as(twin, value)

    def same_dtype(self, function, args, kwargs):
        """Whether a copy, or a view, keeps what its operand has."""
        asked = kwargs.get("dtype")
        return asked is None or asked == args[0].dtype

    def done(self, function, args, kwargs, declared):
        """What an operation gives: what is random, or has no float64, in the
        dtype that is declared."""
        if is_random(function):
            return self.drawn(function, args, kwargs, declared)
        try:
            return function(*args, **kwargs)
        except RuntimeError:
            if not self.twins.exact or declared not in LONGER:
                raise
            made = self.drawn(function, args, kwargs, declared)
        dtype = str(declared).removeprefix("torch.")
        note = f"{function} has no float64; it was done in {dtype}."
        if note not in self.program.notes:
            self.program.notes.append(note)
        return made

    def drawn(self, function, args, kwargs, declared):
        """What an operation gives in the dtype that is declared."""
        if not self.twins.exact or declared not in LONGER:
            return function(*args, **kwargs)

        def short(value):
            return value.to(declared) if isinstance(value, torch.Tensor) and (
                value.dtype in SIZE) else value
        less = tree_map(short, (args, kwargs))
        made = function(*less[0], **less[1])
        written = mutated(function, args, kwargs)
        for mine, theirs in zip(written, mutated(function, *less)):
            mine.copy_(theirs)
        return written[0] if written else made

    def edited(self, number, made, written):
        """What an operation gives, with edits in its place: in that of the
        tensor itself where it was written."""
        mine = self.edits.get((RESULT, number))
        if not mine:
            return made
        leaves, tree = tree_flatten(made)
        for slot, array in mine.items():
            at = [i for i, each in enumerate(leaves)
                  if isinstance(each, torch.Tensor)][slot]
            instead = native(array, leaves[at])
            if any(leaves[at] is each for each in written):
                leaves[at].copy_(instead)
            else:
                leaves[at] = instead
        return tree_unflatten(leaves, tree)

    # Which Value a tensor is.

    def number(self, operand):
        """The number of the Value that an operand is."""
        if not isinstance(operand, torch.Tensor):
            return self.add(CONSTANT, "", operand, None, None)
        value, version = self.numbers.get(operand, (None, None))
        if value is None:
            storage, value, version = self.geometry.get(
                lie(operand), (None, None, None))
            if storage is not None and storage.expired():
                value = None
        if value is None:
            kind, name = self.names.get(lie(operand), (CONSTANT, ""))
            if name in self.leaves and operand._version == 0 and (
                    operand.untyped_storage().data_ptr()
                    not in self.writers):
                self.know(operand, self.leaves[name])
                return self.leaves[name]
            number = self.add(
                kind, name, operand, self.twins.dtype_of(operand), None,
                self.unchanged.leaf(name) if name else None)
            if name:
                self.leaves[name] = number
            return number
        if version in (operand._version, operand._version + 1) or (
                operand.untyped_storage().data_ptr() not in self.writers):
            return value  # nothing was written in this run
        return self.updated(operand, value)

    def updated(self, tensor, before):
        """The Value of a tensor that was written through another view."""
        source = self.writers.get(tensor.untyped_storage().data_ptr())
        number = len(self.program.operations)
        operation = Operation(
            number, "put", "written in place",
            (before,) if source is None else (before, source), {}, (),
            *self.frames.here())
        self.program.operations.append(operation)
        operation.results = (self.add(
            MADE, "", tensor, self.twins.dtype_of(tensor), number),)
        return operation.results[0]

    def add(self, kind, name, value, declared, made_by, same=None, of=None):
        """Add a Value to the program; its number.

        Args:
            same: a Value of the earlier run that has the same array.
            of: its Signature, where that is known.
        """
        if not isinstance(value, torch.Tensor):
            array = np.asarray(value)
            return put_down(self.program, self.keep, array, kind, name,
                            str(array.dtype), made_by, self.before)
        dtype = declared if declared is not None and (
            value.dtype in SIZE) else value.dtype
        self.twins.declare(value, dtype)
        self.know(value, len(self.program.values))
        dtype, shape = str(dtype).removeprefix("torch."), tuple(value.shape)
        if same is not None and same.shape == shape and same.dtype == dtype:
            return put_down_known(
                self.program, self.keep, lambda: to_numpy(value), shape, kind,
                name, dtype, made_by, same.signature, same)
        if of is not None:
            return put_down_known(
                self.program, self.keep, lambda: to_numpy(value), shape, kind,
                name, dtype, made_by, of)
        return put_down(self.program, self.keep, to_numpy(value), kind, name,
                        dtype, made_by, self.before)

    def forget(self):
        """Let large twins go that were only read, and their names."""
        for pointer in self.twins.forget():
            for place in self.lies.pop(pointer, ()):
                self.names.pop(place, None)

    def know(self, tensor, number, version=None):
        """Put down which Value a tensor is, as of a version of its own."""
        version = tensor._version if version is None else version
        self.numbers[tensor] = number, version
        if tensor.layout == torch.strided and tensor.device.type != "meta":
            self.geometry[lie(tensor)] = (
                StorageWeakRef(tensor.untyped_storage()), number, version)


@contextlib.contextmanager
def recording(names, exact=False, edits=None, keep=True, paths=None,
              before=None, marks=None, end=None):
    """Record this thread's torch operations as a Program.

    Args:
        end: the code of the function that begins the run: who called that
            asked for nothing.

    Yields:
        The TorchRecording, whose ``program`` it is.
    """
    mode = TorchRecording(names, exact, edits, keep, paths or {}, before,
                          marks, end)
    with Unfused(exact) as above, mode:
        yield mode
    mode.autocast = above.autocast


def outputs_of(mode, output):
    """{name: number of its Value} of what a model returned."""
    outputs = {}

    def visit(name, leaf):
        if isinstance(leaf, torch.Tensor):
            outputs[name] = mode.number(mode.twins.of(leaf))
        return leaf
    mapped(output, "output", visit)
    return outputs
