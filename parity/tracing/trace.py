"""Trace any model, without editing it.

``trace(model, *inputs)`` runs a ``torch.nn.Module``, a Keras layer or model,
or an ``nnx.Module`` once, and returns the inputs and outputs of each of its
sub-modules, by attribute path, as NumPy arrays. A model of this project adds
its taps, which are finer steps.

Only calls of sub-modules are recorded: not their other methods, not functions
outside a module, and nothing inside a compiled function. ``Trace.notes`` and
``Trace.never_called`` say where that happened.
"""

import contextlib
import dataclasses
import hashlib
import importlib
import inspect
import json
import sys
import threading
from collections.abc import Callable, Mapping

import ml_dtypes  # noqa: F401  teaches NumPy bfloat16
import numpy as np

import contract.trace
from contract.errors import InputError

#: The path of the model itself; no attribute is called that.
WHOLE = "(model)"

MODULE, TAP = "module", "tap"

EMPTY = np.zeros(0)

#: Values that can be given to a module again as they are.
PLAIN = (type(None), bool, int, float, complex, str, bytes, type)


@dataclasses.dataclass
class Step:
    """One call of one sub-module, or one tap.

    Attributes:
        path: the attribute path, followed by ``#2`` for the second call.
        module: the path of the module that was called, or of the tap's owner.
        kind: the name of the module's class; "tap" for a tap.
        source: MODULE or TAP.
        began, ended: when, counted in events of the run; steps are in order of
            ``ended``, so that a part comes before the whole.
        inputs, outputs: name -> array. A single output is called "output",
            those of a tuple "output.0" and so on.
        others: "inputs.NAME" or "outputs.NAME" -> the value that is no array,
            as text: "None", "0.1", "not kept: Cache".
        parameters: the paths of the parameters that the module itself owns.
        settings: the numbers, texts and booleans among its attributes.
        gradients: name of an output -> gradient of the loss by it.
    """

    path: str
    module: str
    kind: str
    source: str
    began: int
    ended: int
    inputs: dict
    outputs: dict
    others: dict = dataclasses.field(default_factory=dict)
    parameters: list = dataclasses.field(default_factory=list)
    settings: dict = dataclasses.field(default_factory=dict)
    gradients: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Trace:
    """One run of a model.

    Attributes:
        framework: "torch", "keras" or "jax".
        versions, precision: name -> version, name -> setting in force.
        dtype: that of the model's first floating output, else of its first
            floating parameter, else "".
        steps: every Step, in order of ``ended``; the last is WHOLE.
        parameters: path -> array: parameters, and buffers that are kept with
            them, as they were before the run.
        trainable: the paths of those that can have gradients.
        aliases: second path of a parameter -> its first path.
        gradients: path of a parameter -> gradient of the loss by it.
        loss: the loss, or None where no gradients were asked for.
        never_called: paths of modules that the run did not call.
        notes: what was not recorded, a sentence each.
        origin: the folder that it was read from, or None for a live one.
    """

    framework: str
    versions: dict
    precision: dict
    dtype: str
    steps: list
    parameters: dict
    trainable: list
    aliases: dict = dataclasses.field(default_factory=dict)
    gradients: dict = dataclasses.field(default_factory=dict)
    loss: float | None = None
    never_called: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)
    origin: str | None = None
    _rerun: Callable | None = dataclasses.field(default=None, repr=False)
    _hashes: dict = dataclasses.field(default_factory=dict, repr=False)

    def hash_of(self, array):
        """array_digest of one of the trace's arrays, computed once."""
        hashed, value = self._hashes.get(id(array), (None, None))
        if hashed is not array:
            value = array_digest(array)
            self._hashes[id(array)] = array, value
        return value

    @property
    def live(self):
        """Whether the model itself is there, so that rerun works."""
        return self._rerun is not None

    @property
    def inputs(self):
        """The model's input arrays: name -> array."""
        return self.step(WHOLE).inputs

    @property
    def inputs_hash(self):
        """SHA-256 of the model's input arrays."""
        return digest(self.inputs, self.hash_of)

    @property
    def parameters_hash(self):
        """SHA-256 of all parameters, with their paths."""
        return digest(self.parameters, self.hash_of)

    @property
    def content_hash(self):
        """SHA-256 of everything that was computed, with all paths."""
        state = hashlib.sha256(self.framework.encode())
        for part in (self.parameters, self.gradients, *(
                values for step in self.steps for values in (
                    {step.path: EMPTY}, step.inputs, step.outputs,
                    step.gradients))):
            state.update(digest(part, self.hash_of).encode())
        return state.hexdigest()

    def step(self, path):
        """The step at this path; raises InputError if there is none."""
        for step in reversed(self.steps):
            if step.path == path:
                return step
        raise InputError(
            f"the trace has no step {path!r}; choose one of its steps, such "
            f"as {self.steps[0].path!r}.")

    def rerun(self, path, inputs):
        """Run one sub-module again, on other inputs.

        Args:
            path: of a step whose source is MODULE.
            inputs: name -> array, named as in ``step(path).inputs``; the
                others are those of the traced run.

        Returns:
            Name -> array, as in ``step(path).outputs``. The model is left as
            it was.

        Raises:
            InputError: the trace was read from a file, the step is a tap, an
                input is unknown or of another shape, or an argument of the
                module was not saved, such as a cache.
        """
        step = self.step(path)
        if not self.live:
            raise InputError(
                f"{path!r} cannot be run again, because this trace was read "
                "from a file; trace the model again.")
        if step.source != MODULE:
            raise InputError(
                f"{path!r} is a value inside {step.module!r}, not a module; "
                "run that again.")
        for name, array in inputs.items():
            if name not in step.inputs:
                raise InputError(
                    f"{path!r} has no input array {name!r}; choose from "
                    f"{', '.join(step.inputs) or 'none'}.")
            expected = step.inputs[name]
            if np.shape(array) != expected.shape:
                raise InputError(
                    f"the input {name!r} of {path!r} has shape "
                    f"{list(np.shape(array))}, not "
                    f"{list(expected.shape)}; give it that shape.")
        return self._rerun(path, inputs)


def array_digest(array):
    """SHA-256 over dtype, shape and bytes."""
    array = np.asarray(array)
    state = hashlib.sha256(f"{array.dtype} {array.shape}\n".encode())
    state.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return state.hexdigest()


def digest(arrays, hash_of=array_digest):
    """SHA-256 over names and arrays, in order of name."""
    lines = [f"{json.dumps(name)} {hash_of(arrays[name])}\n"
             for name in sorted(arrays)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def is_float(array):
    """Whether an array is floating point, including bfloat16 and float8."""
    return array.dtype.kind == "f" or array.dtype.name.startswith(
        ("bfloat", "float"))


# Parts of a run, the same for all frameworks

class Slot:
    """The place of an array among a module's arguments.

    ``foreign`` says that it was NumPy's, not the framework's.
    """

    def __init__(self, name, foreign):
        self.name, self.foreign = name, foreign


def mapped(value, name, visit):
    """Rebuild a nest of containers with every leaf replaced.

    Args:
        value: tuples, lists, dicts and dataclasses of anything.
        name: the name of the whole; a part's is NAME.0 or NAME.key.
        visit: is called with each leaf's name and the leaf.
    """
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(getattr(value, field), f"{name}.{field}",
                                    visit) for field in value._fields))
    if type(value) in (list, tuple):
        return type(value)(mapped(item, f"{name}.{i}", visit)
                           for i, item in enumerate(value))
    if isinstance(value, Mapping):
        parts = {key: mapped(item, f"{name}.{key}", visit)
                 for key, item in value.items()}
        if all(parts[key] is item for key, item in value.items()):
            return value
        return parts if type(value) is dict else type(value)(parts)
    if (dataclasses.is_dataclass(value) and not isinstance(value, type)
            and not callable(value)):
        parts = {field.name: mapped(getattr(value, field.name),
                                    f"{name}.{field.name}", visit)
                 for field in dataclasses.fields(value) if field.init}
        if all(parts[key] is getattr(value, key) for key in parts):
            return value
        return dataclasses.replace(value, **parts)
    return visit(name, value)


def argument_names(function, args, keywords):
    """The names of the arguments: positional ones, keyword ones."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = ()
    names = []
    for parameter in parameters:
        if parameter.kind == parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}.{i}"
                      for i in range(len(args) - len(names))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY,
                                parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    names += [f"argument.{i}" for i in range(len(names), len(args))]
    return names[:len(args)], list(keywords)


def settings_of(module):
    """The numbers, texts and booleans among a module's own attributes."""
    settings = {}
    for name, value in vars(module).items():
        if name.startswith("_"):
            continue
        if isinstance(value, (bool, int, float, str)):
            settings[name] = value
        elif (type(value) is tuple
              and all(isinstance(item, (int, float)) for item in value)):
            settings[name] = list(value)
    return {name: value if isinstance(value, (bool, int, str, list))
            or np.isfinite(value) else str(value)
            for name, value in settings.items()}


def in_words(value):
    """The text for a value that is no array."""
    if isinstance(value, (type(None), bool, int, float, str)):
        return repr(value)[:80]
    return f"not kept: {type(value).__name__}"


class Framework:
    """What a framework's file provides; the defaults suit most."""

    name = ""

    def is_array(self, value):
        """Whether a value is an array of the framework, or NumPy's."""
        return isinstance(value, np.ndarray)

    def is_seen(self, value):
        """Whether an array has values, not only a shape."""
        return True

    def to_numpy(self, value):
        """A copy, as a NumPy array of the same dtype."""
        return np.array(value)

    def to_native(self, array):
        """A NumPy array as the framework's own copy, of the same dtype."""
        raise NotImplementedError

    def function(self, module):
        """The method whose parameters name a module's inputs."""
        raise NotImplementedError

    def settings(self, module):
        """Plain attributes of a module, to tell two of one class apart."""
        return settings_of(module)


class Recorder:
    """Records every call while a model runs.

    Args:
        framework: a Framework.
        paths: id(module) -> path, the model's own being WHOLE.
        own: path of a module -> paths of the parameters that it owns.
        watch: None, or a function of a key and an output that returns the
            output's replacement; gradients are computed with it. The key is
            (path of the step, name of the output).

    The paths in ``silent`` are of modules that only contain others.
    """

    def __init__(self, framework, paths, own, watch=None):
        self.framework, self.paths, self.own = framework, paths, own
        self.watch = watch
        self.steps, self.calls, self.hidden = [], {}, {}
        self.arguments, self.copies = {}, {}
        self.clock, self.active = 0, True
        self.thread = threading.get_ident()
        self.called, self.silent = set(), set()

    def tick(self):
        """The number of the next event."""
        self.clock += 1
        return self.clock

    def keep(self, value):
        """A read-only copy of an array; equal ones are stored once."""
        array = self.framework.to_numpy(value)
        key = array_digest(array)
        if key not in self.copies:
            array.flags.writeable = False
            self.copies[key] = array
        return self.copies[key]

    def numbered(self, path):
        """The path of this call: path, path#2, path#3."""
        count = self.calls[path] = self.calls.get(path, 0) + 1
        return path if count == 1 else f"{path}#{count}"

    def call(self, module, function, args, keywords):
        """Call ``function(*args, **keywords)`` as the call of ``module``."""
        path = self.paths.get(id(module))
        if (path is None or not self.active
                or threading.get_ident() != self.thread):
            return function(*args, **keywords)
        arrays = []
        mapped([args, keywords], "", lambda _, leaf: arrays.append(leaf))
        arrays = [a for a in arrays if self.framework.is_array(a)]
        if not all(map(self.framework.is_seen, arrays)):
            self.hidden[path] = None
            return function(*args, **keywords)
        began, inputs, others = self.tick(), {}, {}

        def visit(name, leaf):
            if self.framework.is_array(leaf):
                inputs[name] = self.keep(leaf)
                return Slot(name, isinstance(leaf, np.ndarray))
            others[f"inputs.{name}"] = in_words(leaf)
            return leaf
        names, by_keyword = argument_names(
            self.framework.function(module), args, keywords)
        template = (
            [mapped(value, name, visit) for name, value in zip(names, args)],
            {name: mapped(keywords[name], name, visit)
             for name in by_keyword})
        # Numbered when it begins, so that #2 is the second call to begin.
        name = self.numbered(path)
        output = function(*args, **keywords)
        if not self.active:
            return output
        step = Step(name, path, type(module).__name__, MODULE, began, 0,
                    inputs, {}, others, self.own.get(path, []),
                    self.framework.settings(module))
        output, seen = self.record(step, output)
        if seen:
            self.called.add(path)
            self.arguments[name] = module, template
        else:
            self.hidden[path] = None
        return output

    def record(self, step, output):
        """Record a finished step.

        Returns:
            The output to pass on, and whether the step was recorded.
        """
        leaves = []
        mapped(output, "output", lambda name, leaf: leaves.append(leaf))
        if not all(self.framework.is_seen(leaf) for leaf in leaves
                   if self.framework.is_array(leaf)):
            return output, False

        def visit(name, leaf):
            if not self.framework.is_array(leaf):
                step.others[f"outputs.{name}"] = in_words(leaf)
                return leaf
            array = step.outputs[name] = self.keep(leaf)
            if self.watch is not None and is_float(array):
                return self.watch((step.path, name), leaf)
            return leaf
        replaced = mapped(output, "output", visit)
        step.ended = self.tick()
        self.steps.append(step)
        return (replaced if self.watch is not None else output), True

    def tap(self, module, name, value):
        """Record a tap of one of this project's models."""
        owner = self.paths.get(id(module))
        if (owner is None or not self.active
                or not self.framework.is_array(value)
                or threading.get_ident() != self.thread):
            return value
        path = name if owner == WHOLE else f"{owner}.{name}"
        if not self.framework.is_seen(value):
            self.hidden[f"{path}()"] = None
            return value
        # A sub-module may have the name of a step: query, output.
        path = self.numbered(f"{path}()")
        self.called.add(path)
        return self.record(Step(path, owner, TAP, TAP, self.tick(), 0, {}, {}),
                           value)[0]

    @contextlib.contextmanager
    def tapping(self):
        """Record the taps of this project's own models."""
        with contract.trace.tracing({}) as opened:
            opened.record = self.tap
            yield

    def fill(self, path, inputs):
        """The arguments of a step's call, with some arrays replaced.

        Returns:
            The module, its positional and its keyword arguments.
        """
        module, (args, keywords) = self.arguments[path]
        step = next(s for s in self.steps if s.path == path)

        def put(name, leaf):
            if isinstance(leaf, Slot):
                original = step.inputs[leaf.name]
                array = np.array(
                    inputs.get(leaf.name, original), original.dtype)
                return (array if leaf.foreign
                        else self.framework.to_native(array))
            if isinstance(leaf, PLAIN) or callable(leaf):
                return leaf
            if type(leaf).__module__.partition(".")[0] in (
                    "torch", "jax", "numpy", "ml_dtypes", "tensorflow"):
                return leaf  # a dtype or a device
            raise InputError(
                f"{path!r} was called with a {type(leaf).__name__}, which "
                "cannot be given again; run a step that takes only arrays.")
        return (module, [mapped(value, "", put) for value in args],
                {name: mapped(value, "", put)
                 for name, value in keywords.items()})

    def arrays(self, output):
        """Copies of an output's arrays, by name."""
        arrays = {}

        def visit(name, leaf):
            if self.framework.is_array(leaf):
                arrays[name] = self.framework.to_numpy(leaf)
            return leaf
        mapped(output, "output", visit)
        return arrays


def main_dtype(steps, parameters):
    """The dtype that a model computed in; "" where nothing is floating."""
    arrays = [*(steps[-1].outputs.values() if steps else ()),
              *parameters.values()]
    return next((a.dtype.name for a in arrays if is_float(a)), "")


def finished(recorder, versions, precision, parameters, trainable, aliases,
             gradients, loss, rerun, notes=()):
    """The Trace of a Recorder."""
    if not recorder.steps or recorder.steps[-1].path != WHOLE:
        raise InputError(
            "the model's own call was not recorded, because it is compiled or "
            "symbolic; trace the model before it is compiled.")
    trace = Trace(
        recorder.framework.name, versions, precision,
        main_dtype(recorder.steps, parameters), recorder.steps, parameters,
        trainable, aliases, gradients, loss,
        [path for path in dict.fromkeys(recorder.paths.values())
         if path not in recorder.called | recorder.silent],
        [*notes, *(f"a call of {path!r} was compiled or symbolic and not "
                   "recorded." for path in recorder.hidden
                   if path not in recorder.called)], None, rerun)
    return trace


def framework_of(model):
    """The framework of a model: "keras", "torch" or "jax".

    Raises:
        InputError: the model is of none of these.
    """
    for name, needs, attribute in (
            ("keras", "keras", "layers.Layer"),
            ("torch", "torch", "nn.Module"),
            ("jax", "flax.nnx", "Module")):
        kind = sys.modules.get(needs)
        for word in attribute.split("."):
            kind = getattr(kind, word, None)
        if kind is not None and isinstance(model, kind):
            return name
    raise InputError(
        f"a {type(model).__name__} is not a model that can be traced; give a "
        "torch.nn.Module, a Keras layer or model, or an nnx.Module.")


def trace(model, *inputs, gradients=None, **keywords):
    """Run a model once and return every sub-module's inputs and outputs.

    Tracing changes no number. What is hooked for the run is unhooked after it,
    also when the model fails, and its exceptions pass through. Buffers,
    counters and random states are restored, so that the model is as it was;
    one that makes its weights on its first call has them afterwards. The mode
    (training or evaluation) and torch's gradient mode are not changed.

    Args:
        model: a torch.nn.Module, a Keras layer or model, or an nnx.Module.
        inputs, keywords: the model's arguments, with arrays of its framework.
        gradients: a function of the model's output that returns a scalar loss,
            in the framework's own operations; the loss's gradients by every
            parameter and by every step's outputs are then computed as well.

    Returns:
        A Trace, which is live.

    Raises:
        InputError: the model is of no known framework or compiled as a whole,
            or the loss is no scalar.
    """
    name = framework_of(model)
    if gradients is not None and not callable(gradients):
        raise InputError(
            "gradients must be a function of the model's output that returns "
            f"the loss, not a {type(gradients).__name__}.")
    capture = importlib.import_module(f"parity.tracing.{name}")
    return capture.capture(model, inputs, keywords, gradients)
