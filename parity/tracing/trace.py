"""Look into any model, without editing it.

``trace(model, *inputs)`` runs a ``torch.nn.Module``, a Keras layer or model,
or an ``nnx.Module`` once, and returns what went into and came out of each of
its sub-modules, by attribute path, as NumPy arrays. A model of this project
adds its taps, which are finer steps.

What is seen is what is called: a sub-module's own call. Its other methods,
functions that are no module, and what a compiled function hides are not, and
``Trace.notes`` and ``Trace.never_called`` say where that happened.
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
        began, ended: when, counted in events of the run; steps stand in order
            of ``ended``, so that a part comes before what it is a part of.
        inputs, outputs: name -> array. A single output is called "output",
            those of a tuple "output.0" and so on.
        others: "inputs.NAME" or "outputs.NAME" -> what stood there instead of
            an array, in words: "None", "0.1", "not kept: Cache".
        parameters: the paths of the parameters that the module itself holds.
        settings: the numbers, words and switches among its attributes.
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
    """What one run of a model did.

    Attributes:
        framework: "torch", "keras" or "jax".
        versions, precision: name -> version, name -> setting in force.
        dtype: what the model computed in: its first floating output's, else
            its first floating parameter's, else "".
        steps: every Step, in order of ``ended``; the last is WHOLE.
        parameters: path -> array: parameters, and buffers that are kept with
            them, as they were before the run.
        trainable: the paths of those that can have gradients.
        aliases: path of a parameter that is another one -> path of that one.
        gradients: path of a parameter -> gradient of the loss by it.
        loss: the loss, or None where no gradients were asked for.
        never_called: paths of modules that the run did not call.
        notes: what was not seen, a sentence each.
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
        """array_digest of one of the trace's arrays, found once."""
        kept, found = self._hashes.get(id(array), (None, None))
        if kept is not array:
            found = array_digest(array)
            self._hashes[id(array)] = array, found
        return found

    @property
    def live(self):
        """Whether the model is at hand, so that rerun works."""
        return self._rerun is not None

    @property
    def inputs(self):
        """The arrays that the model was given: name -> array."""
        return self.step(WHOLE).inputs

    @property
    def inputs_hash(self):
        """SHA-256 of the arrays that the model was given."""
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
        """The step of this path; raises InputError if there is none."""
        for step in reversed(self.steps):
            if step.path == path:
                return step
        raise InputError(
            f"the trace holds no step {path!r}; choose one of its steps, such "
            f"as {self.steps[0].path!r}.")

    def rerun(self, path, inputs):
        """Run one sub-module again, on other inputs.

        Args:
            path: of a step whose source is MODULE.
            inputs: name -> array, named as in ``step(path).inputs``; what is
                left out is as it was in the run.

        Returns:
            Name -> array, as in ``step(path).outputs``. The model is left as
            it was.

        Raises:
            InputError: the trace was read from a file, the step is a tap, an
                input is unknown or of another shape, or the module was given
                something that cannot be given again, such as a cache.
        """
        step = self.step(path)
        if not self.live:
            raise InputError(
                f"{path!r} cannot be run again, for this trace was read from "
                "a file; trace the model anew.")
        if step.source != MODULE:
            raise InputError(
                f"{path!r} is a value inside {step.module!r}, not a module; "
                "run that again.")
        for name, array in inputs.items():
            if name not in step.inputs:
                raise InputError(
                    f"{path!r} was given no array {name!r}; choose from "
                    f"{', '.join(step.inputs) or 'none'}.")
            there = step.inputs[name]
            if np.shape(array) != there.shape:
                raise InputError(
                    f"the input {name!r} of {path!r} has shape "
                    f"{list(np.shape(array))} where {list(there.shape)} was "
                    "seen; give it that shape.")
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
    """Whether an array is floating point, bfloat16 and its like included."""
    return array.dtype.kind == "f" or array.dtype.name.startswith(
        ("bfloat", "float"))


# What a run is made of, in words that all frameworks share

class Slot:
    """Where an array stood in a module's arguments, and whether as NumPy's."""

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
        found = {key: mapped(item, f"{name}.{key}", visit)
                 for key, item in value.items()}
        if all(found[key] is item for key, item in value.items()):
            return value
        return found if type(value) is dict else type(value)(found)
    if (dataclasses.is_dataclass(value) and not isinstance(value, type)
            and not callable(value)):
        found = {field.name: mapped(getattr(value, field.name),
                                    f"{name}.{field.name}", visit)
                 for field in dataclasses.fields(value) if field.init}
        if all(found[key] is getattr(value, key) for key in found):
            return value
        return dataclasses.replace(value, **found)
    return visit(name, value)


def argument_names(function, args, keywords):
    """What each argument is called: those by place, those by keyword."""
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        known = ()
    names = []
    for parameter in known:
        if parameter.kind == parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}.{i}"
                      for i in range(len(args) - len(names))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY,
                                parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    names += [f"argument.{i}" for i in range(len(names), len(args))]
    return names[:len(args)], list(keywords)


def settings_of(module):
    """The numbers, words and switches among a module's own attributes."""
    found = {}
    for name, value in vars(module).items():
        if name.startswith("_"):
            continue
        if isinstance(value, (bool, int, float, str)):
            found[name] = value
        elif (type(value) is tuple
              and all(isinstance(item, (int, float)) for item in value)):
            found[name] = list(value)
    return {name: value if isinstance(value, (bool, int, str, list))
            or np.isfinite(value) else str(value)
            for name, value in found.items()}


def in_words(value):
    """What stands where an array might have stood."""
    if isinstance(value, (type(None), bool, int, float, str)):
        return repr(value)[:80]
    return f"not kept: {type(value).__name__}"


class Framework:
    """What a framework's file provides; the defaults suit most.

    ``name`` is the framework's, and the rest as described there.
    """

    name = ""

    def is_array(self, value):
        """Whether a value is an array of the framework, or NumPy's."""
        return isinstance(value, np.ndarray)

    def is_seen(self, value):
        """Whether an array has numbers, not only a shape."""
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
        """Plain attributes of a module, to tell two of a kind apart."""
        return settings_of(module)


class Recorder:
    """Writes down every call while a model runs.

    Args:
        framework: a Framework.
        paths: id(module) -> path, the model's own being WHOLE.
        own: path of a module -> paths of the parameters that it holds.
        watch: None, or a function of a key and an output that returns what
            takes the output's place; gradients are found with it. The key is
            (path of the step, name of the output).

    The paths in ``silent`` are of modules that only hold others.
    """

    def __init__(self, framework, paths, own, watch=None):
        self.framework, self.paths, self.own = framework, paths, own
        self.watch = watch
        self.steps, self.calls, self.hidden = [], {}, {}
        self.arguments, self.kept = {}, {}
        self.clock, self.active = 0, True
        self.thread = threading.get_ident()
        self.called, self.silent = set(), set()

    def tick(self):
        """The number of the next event."""
        self.clock += 1
        return self.clock

    def keep(self, value):
        """Copy an array out; equal ones are kept once and for reading."""
        array = self.framework.to_numpy(value)
        key = array_digest(array)
        if key not in self.kept:
            array.flags.writeable = False
            self.kept[key] = array
        return self.kept[key]

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

        def given(name, leaf):
            if self.framework.is_array(leaf):
                inputs[name] = self.keep(leaf)
                return Slot(name, isinstance(leaf, np.ndarray))
            others[f"inputs.{name}"] = in_words(leaf)
            return leaf
        names, by_keyword = argument_names(
            self.framework.function(module), args, keywords)
        template = (
            [mapped(value, name, given) for name, value in zip(names, args)],
            {name: mapped(keywords[name], name, given)
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
        """Write a finished step down; the output to hand on, and whether."""
        leaves = []
        mapped(output, "output", lambda name, leaf: leaves.append(leaf))
        if not all(self.framework.is_seen(leaf) for leaf in leaves
                   if self.framework.is_array(leaf)):
            return output, False

        def made(name, leaf):
            if not self.framework.is_array(leaf):
                step.others[f"outputs.{name}"] = in_words(leaf)
                return leaf
            array = step.outputs[name] = self.keep(leaf)
            if self.watch is not None and is_float(array):
                return self.watch((step.path, name), leaf)
            return leaf
        handed = mapped(output, "output", made)
        step.ended = self.tick()
        self.steps.append(step)
        return (handed if self.watch is not None else output), True

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
        # A sub-module may be called what a step is called: query, output.
        path = self.numbered(f"{path}()")
        self.called.add(path)
        return self.record(Step(path, owner, TAP, TAP, self.tick(), 0, {}, {}),
                           value)[0]

    @contextlib.contextmanager
    def tapping(self):
        """Hear the taps of this project's own models."""
        with contract.trace.tracing({}) as opened:
            opened.record = self.tap
            yield

    def fill(self, path, inputs):
        """The arguments of a step's call, with other arrays in them.

        Returns:
            The module, the arguments by place and those by keyword.
        """
        module, (args, keywords) = self.arguments[path]
        step = next(s for s in self.steps if s.path == path)

        def put(name, leaf):
            if isinstance(leaf, Slot):
                there = step.inputs[leaf.name]
                array = np.array(inputs.get(leaf.name, there), there.dtype)
                return (array if leaf.foreign
                        else self.framework.to_native(array))
            if isinstance(leaf, PLAIN) or callable(leaf):
                return leaf
            if type(leaf).__module__.partition(".")[0] in (
                    "torch", "jax", "numpy", "ml_dtypes", "tensorflow"):
                return leaf  # a dtype or a device
            raise InputError(
                f"{path!r} was given a {type(leaf).__name__}, which cannot be "
                "given again; run a step that takes arrays alone.")
        return (module, [mapped(value, "", put) for value in args],
                {name: mapped(value, "", put)
                 for name, value in keywords.items()})

    def arrays(self, output):
        """The arrays of an output by name, copied out."""
        found = {}

        def made(name, leaf):
            if self.framework.is_array(leaf):
                found[name] = self.framework.to_numpy(leaf)
            return leaf
        mapped(output, "output", made)
        return found


def main_dtype(steps, parameters):
    """What a model computed in, by name; "" where nothing is floating."""
    arrays = [*(steps[-1].outputs.values() if steps else ()),
              *parameters.values()]
    return next((a.dtype.name for a in arrays if is_float(a)), "")


def finished(recorder, versions, precision, parameters, trainable, aliases,
             gradients, loss, rerun, notes=()):
    """Put a Trace together from what a Recorder wrote down."""
    if not recorder.steps or recorder.steps[-1].path != WHOLE:
        raise InputError(
            "the model's own call was not seen, for it is compiled or "
            "symbolic; trace the model before it is compiled.")
    trace = Trace(
        recorder.framework.name, versions, precision,
        main_dtype(recorder.steps, parameters), recorder.steps, parameters,
        trainable, aliases, gradients, loss,
        [path for path in dict.fromkeys(recorder.paths.values())
         if path not in recorder.called | recorder.silent],
        [*notes, *(f"a call of {path!r} was compiled or symbolic and is not "
                   "seen." for path in recorder.hidden
                   if path not in recorder.called)], None, rerun)
    return trace


def framework_of(model):
    """Whose a model is: "keras", "torch" or "jax".

    Raises:
        InputError: it is none of a module, a layer or an nnx.Module.
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
        f"a {type(model).__name__} is no model that can be traced; give a "
        "torch.nn.Module, a Keras layer or model, or an nnx.Module.")


def trace(model, *inputs, gradients=None, **keywords):
    """Run a model once and return what every sub-module saw and made.

    Every number is what it is without a trace. What is hooked for the run is
    unhooked after it, also when the model fails, and its exceptions pass
    through. Buffers, counters and random states are put back, so that the
    model is as it was; one that makes its weights on its first call has them
    afterwards. The mode, training or not, and whether torch keeps gradients
    are left as they are found.

    Args:
        model: a torch.nn.Module, a Keras layer or model, or an nnx.Module.
        inputs, keywords: what the model is called with, in its framework's own
            arrays or whatever else it takes.
        gradients: a function of the model's output that returns a scalar loss,
            in the framework's own operations; the loss's gradients by every
            parameter and by every step's outputs are then found as well.

    Returns:
        A Trace, which is live.

    Raises:
        InputError: the model is of no known framework, or compiled as a whole,
            or the loss is no scalar.
    """
    name = framework_of(model)
    if gradients is not None and not callable(gradients):
        raise InputError(
            "gradients must be a function of the model's output that returns "
            f"the loss; {type(gradients).__name__} is none.")
    capture = importlib.import_module(f"parity.tracing.{name}")
    return capture.capture(model, inputs, keywords, gradients)
