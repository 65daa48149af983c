"""Record every call while a model runs; the same for all frameworks.

A framework's file says what an array is and hooks the calls of modules: it
makes a Framework, and a Recorder of it. ``finished`` makes the Trace.
"""

import contextlib
import dataclasses
import inspect
import sys
from collections.abc import Mapping

import numpy as np

from parity_io.errors import InputError
from parity.tracing.holders import OPENED, held
from parity.tracing.storage import stored
from parity.tracing.trace import (
    MODULE, TAP, WHOLE, Step, Trace, array_digest, is_float)

#: Values that can be given to a module again as they are.
PLAIN = (type(None), bool, int, float, complex, str, bytes, type)

#: The module whose function ``tap`` names values inside our Transformer.
TAPS = "transformer_contract.trace"

#: Why a call is not seen, in most frameworks the only reason.
COMPILED = "compiled or symbolic"


class Slot:
    """The place of an array among a module's arguments.

    ``foreign`` says that it was NumPy's, not the framework's.
    """

    def __init__(self, name, foreign):
        self.name, self.foreign = name, foreign


class NotGiven:
    """The place of what cannot be given to a module again, such as a cache.

    The object itself is not kept: what it holds may be as large as a model.
    """

    def __init__(self, value):
        self.kind = type(value).__name__


def can_be_given(value):
    """Whether a value that is no array can be given to a module again."""
    return isinstance(value, PLAIN) or callable(value) or (
        type(value).__module__.partition(".")[0] in (  # a dtype or a device
            "torch", "jax", "mlx", "numpy", "ml_dtypes", "tensorflow"))


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
    names: list = []
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
    settings: dict = {}
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

    def device_of(self, value):
        """Where an array lies, in the framework's words, or ""."""
        return ""

    def is_seen(self, value):
        """Whether an array has values, not only a shape."""
        return True

    def unseen(self, value):
        """Why an array is not seen: what a call with it is."""
        return COMPILED

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

    def state(self):
        """What of the thread's present state changes what a call computes."""
        return None

    def within(self, state):
        """A ``with`` block in which the thread's state is this one."""
        return contextlib.nullcontext()


class Recorder:
    """Records every call while a model runs.

    Args:
        framework: a Framework.
        paths: id(module) -> path, the model's own being WHOLE.
        own: path of a module -> paths of the parameters that it owns.
        watch: None, or a function of a key and an output that returns the
            output's replacement; gradients are computed with it. The key is
            (path of the step, name of the output).

    The paths in ``silent`` are of modules that only contain others; ``device``
    is where the first output was computed.
    """

    def __init__(self, framework, paths, own, watch=None):
        self.framework, self.paths, self.own = framework, paths, own
        self.watch, self.device = watch, ""
        self.steps, self.calls, self.hidden = [], {}, {}
        self.arguments, self.copies = {}, {}
        self.clock, self.active = 0, True
        self.called, self.silent = set(), set()

    def whole(self, model, inputs, keywords, run=None):
        """Call the model, or instead ``run(recorder)`` as its own call."""
        if run is None:
            return model(*inputs, **keywords)
        return self.call(model, lambda: run(self), (), {})

    def tick(self):
        """The number of the next event."""
        self.clock += 1
        return self.clock

    def keep(self, value):
        """A read-only copy of an array; equal ones are stored once."""
        array = self.framework.to_numpy(value)
        key = array_digest(array)
        if key not in self.copies:
            self.copies[key] = stored(array, key)
        return self.copies[key]

    def numbered(self, path):
        """The path of this call: path, path#2, path#3."""
        count = self.calls[path] = self.calls.get(path, 0) + 1
        return path if count == 1 else f"{path}#{count}"

    def call(self, module, function, args, keywords):
        """Call ``function(*args, **keywords)`` as the call of ``module``."""
        path = self.paths.get(id(module))
        if path is None or not self.active:
            return function(*args, **keywords)
        arrays = []
        mapped([args, keywords], "", lambda _, leaf: arrays.append(leaf))
        arrays = [a for a in arrays if self.framework.is_array(a)]
        if not all(map(self.framework.is_seen, arrays)):
            self.hide(path, arrays)
            return function(*args, **keywords)
        # Numbered when it begins, so that #2 is the second call to begin.
        began, inputs, others = self.tick(), {}, {}
        step_name = self.numbered(path)

        def visit(name, leaf):
            if self.framework.is_array(leaf):
                inputs[name] = self.keep(leaf)
                return Slot(name, isinstance(leaf, np.ndarray))
            others[f"inputs.{name}"] = in_words(leaf)
            return leaf if can_be_given(leaf) else NotGiven(leaf)

        names, by_keyword = argument_names(
            self.framework.function(module), args, keywords)
        template = (
            [mapped(value, name, visit) for name, value in zip(names, args)],
            {name: mapped(keywords[name], name, visit)
             for name in by_keyword})
        state = self.framework.state()
        output = function(*args, **keywords)
        if not self.active:
            return output
        step = Step(step_name, path, type(module).__name__, MODULE, began, 0,
                    inputs, {}, others, self.own.get(path, []),
                    self.framework.settings(module))
        output, seen = self.record(step, output)
        if seen:
            self.called.add(path)
            self.arguments[step_name] = module, template, state
        else:
            arrays = []
            mapped(output, "", lambda _, leaf: arrays.append(leaf))
            self.hide(path, filter(self.framework.is_array, arrays))
        return output

    def hide(self, path, arrays):
        """Put down why a call was not recorded."""
        self.hidden[path] = next(
            self.framework.unseen(array) for array in arrays
            if not self.framework.is_seen(array))

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
                arrays = self.opened(name, leaf)
                step.outputs |= {part: self.keep(array)
                                 for part, array in arrays.items()}
                step.others[f"outputs.{name}"] = (
                    f"{OPENED}{type(leaf).__name__}" if arrays
                    else in_words(leaf))
                return leaf
            self.device = self.device or self.framework.device_of(leaf)
            array = step.outputs[name] = self.keep(leaf)
            if self.watch is not None and is_float(array):
                return self.watch((step.path, name), leaf)
            return leaf
        watched = mapped(output, "output", visit)
        step.ended = self.tick()
        self.steps.append(step)
        return (output if self.watch is None else watched), True

    def opened(self, name, leaf):
        """The arrays with values that an object holds, such as a cache."""
        if isinstance(leaf, PLAIN) or can_be_given(leaf):
            return {}
        return {part: array for part, array in held(
            leaf, name, self.framework.is_array).items()
            if self.framework.is_seen(array)}

    def tap(self, module, name, value):
        """Record a tap of one of this project's models."""
        owner = self.paths.get(id(module))
        if (owner is None or not self.active
                or not self.framework.is_array(value)):
            return value
        path = name if owner == WHOLE else f"{owner}.{name}"
        if not self.framework.is_seen(value):
            self.hide(f"{path}()", [value])
            return value
        # A sub-module may have the name of a step: query, output.
        path = self.numbered(f"{path}()")
        self.called.add(path)
        return self.record(Step(path, owner, TAP, TAP, self.tick(), 0, {}, {}),
                           value)[0]

    @contextlib.contextmanager
    def tapping(self):
        """Record the taps of a model that has some, as our Transformer has.

        A tap is a value that a module's code names. Whatever taps has
        imported the module TAPS, which this one does not need.
        """
        taps = sys.modules.get(TAPS)
        if taps is None:
            yield
            return
        with taps.tracing({}) as opened:
            opened.record = self.tap
            yield

    def again(self, path, inputs):
        """Call a step's module again, with some of its arrays replaced.

        It runs in the state of the thread in which it was called.

        Returns:
            Copies of its output's arrays, by name.
        """
        module, args, keywords, state = self.fill(path, inputs)
        with self.framework.within(state):
            return self.arrays(module(*args, **keywords))

    def fill(self, path, inputs):
        """The arguments of a step's call, with some arrays replaced.

        Returns:
            The module, its positional and its keyword arguments, and the
            state that its framework had.
        """
        module, (args, keywords), state = self.arguments[path]
        step = next(s for s in self.steps if s.path == path)

        def put(name, leaf):
            if isinstance(leaf, Slot):
                original = step.inputs[leaf.name]
                array = np.array(
                    inputs.get(leaf.name, original), original.dtype)
                return (array if leaf.foreign
                        else self.framework.to_native(array))
            if isinstance(leaf, NotGiven):
                raise InputError(
                    f"{path!r} was called with a {leaf.kind}, which cannot be "
                    "given again; run a step that takes only arrays.")
            return leaf
        return (module, [mapped(value, "", put) for value in args],
                {name: mapped(value, "", put)
                 for name, value in keywords.items()}, state)

    def put_gradients(self, by_step):
        """Put gradients, {(path of a step, name of its output): array}, into
        the steps."""
        for step in self.steps:
            for name in step.outputs:
                gradient = by_step.get((step.path, name))
                if gradient is not None:
                    step.gradients[name] = self.keep(gradient)

    def arrays(self, output):
        """Copies of an output's arrays, by name."""
        arrays = {}

        def visit(name, leaf):
            if self.framework.is_array(leaf):
                arrays[name] = self.framework.to_numpy(leaf)
            else:
                arrays.update({
                    part: self.framework.to_numpy(array) for part, array
                    in self.opened(name, leaf).items()})
            return leaf
        mapped(output, "output", visit)
        return arrays


def check_scalar(loss, is_tensor):
    """Raise InputError unless a loss is a tensor, of one number."""
    if not is_tensor or np.prod(loss.shape) != 1:
        raise InputError(
            "the function of gradients must return a scalar loss; it returned "
            + (f"shape {list(loss.shape)}." if is_tensor
               else f"a {type(loss).__name__}."))


def main_dtype(steps, parameters):
    """The dtype that a model computed in; "" where nothing is floating."""
    arrays = [*(steps[-1].outputs.values() if steps else ()),
              *parameters.values()]
    return next((a.dtype.name for a in arrays if is_float(a)), "")


def finished(recorder, versions, precision, parameters, trainable, aliases,
             gradients, loss, rerun, notes=()):
    """The Trace of a Recorder."""
    if not recorder.steps or recorder.steps[-1].path != WHOLE:
        why = recorder.hidden.get(WHOLE, COMPILED)
        raise InputError(
            f"the model's own call was not recorded, because it is {why}; "
            + ("trace the model before it is compiled." if why == COMPILED
               else "let it take and give dense arrays."))
    trace = Trace(
        recorder.framework.name, versions, precision,
        main_dtype(recorder.steps, parameters), recorder.steps, parameters,
        trainable, aliases, gradients, loss,
        [path for path in dict.fromkeys(recorder.paths.values())
         if path not in recorder.called | recorder.silent],
        [*notes, *(f"a call of {path!r} was {why} and not recorded."
                   for path, why in recorder.hidden.items()
                   if path not in recorder.called)],
        None, recorder.device, rerun)
    trace.know(recorder.copies)
    return trace
