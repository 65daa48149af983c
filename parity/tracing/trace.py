"""Trace any model, without editing it.

``trace(model, *inputs)`` runs a ``torch.nn.Module``, a Keras layer or model,
or an ``nnx.Module`` once, and returns the inputs and outputs of each of its
sub-modules, by attribute path, as NumPy arrays. A model of this project adds
its taps, which are finer steps.

Only calls of sub-modules are recorded: not their other methods, not functions
outside a module, and nothing inside a compiled function. ``Trace.notes`` and
``Trace.never_called`` say where that happened.
"""

import dataclasses
import hashlib
import importlib
import json
import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes  # noqa: F401  teaches NumPy bfloat16
import numpy as np

from parity_io.errors import InputError
from parity import out_of_memory
from parity.tracing import outline

#: The path of the model itself; no attribute is called that.
WHOLE = "(model)"

MODULE, TAP = "module", "tap"

EMPTY = np.zeros(0)


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
            as text: "None", "0.1", "not kept: Scale"; "opened: Cache" where
            the arrays that it holds are among the outputs.
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

    def __repr__(self):
        """The step in a line, without its numbers."""
        return outline.one_step(self)


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
        device: where a live one was computed, as its framework calls it.
        printed: (path, "inputs" or "outputs", name) -> shape, of arrays of
            which the corners alone are known; see parity.dumps.printed.
        raw: what its inputs were made of; see parity.inputs.raw.
        gives: whether it says what the model gave.
        ordered: whether its steps are known to be in order.
        given: the model, its inputs and keywords, of a live one.
        resolution: up to what its numbers are known: (absolute, relative).
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
    device: str = ""
    _rerun: Callable | None = dataclasses.field(default=None, repr=False)
    _hashes: dict = dataclasses.field(default_factory=dict, repr=False)
    printed: dict = dataclasses.field(default_factory=dict)
    resolution: tuple = (0.0, 0.0)
    raw: dict = dataclasses.field(default_factory=dict)
    gives: bool = True
    ordered: bool = True
    given: tuple | None = dataclasses.field(default=None, repr=False)

    def __getstate__(self):
        """What is copied or pickled: all but the model, so it is not live."""
        return vars(self) | {"_rerun": None, "_hashes": {}, "given": None}

    def hash_of(self, array):
        """array_digest of one of the trace's arrays, computed once."""
        hashed, value = self._hashes.get(id(array), (None, None))
        if hashed is not array:
            value = array_digest(array)
            self._hashes[id(array)] = array, value
        return value

    def know(self, arrays):
        """Take over what hash_of would compute: {array_digest: array}."""
        self._hashes |= {
            id(array): (array, key) for key, array in arrays.items()}

    def known_to(self, array):
        """The relative error with which one of the trace's arrays is known."""
        absolute, relative = self.resolution
        size = float(np.sqrt(np.square(array, dtype=np.float64).mean())
                     ) if absolute and array.size else 0.0
        return relative + (absolute / size if size else 0.0)

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

    def __repr__(self):
        """About ten lines, and no numbers."""
        return outline.outline(self)

    def _repr_html_(self):
        """The same as a tree that can be opened, as a notebook shows it."""
        return outline.as_html(self)

    def __getitem__(self, path):
        """The step at this path: ``trace["blocks.0.ln1"]``."""
        return self.step(path)

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
            InputError: the trace is not live, the step is a tap, an input is
                unknown or of another shape, an argument of the module was not
                saved, such as a cache, or the module failed.
        """
        step, rerun = self.step(path), self._rerun
        if rerun is None:
            raise InputError(
                f"{path!r} cannot be run again, because this trace was read "
                "from a file or copied; trace the model again.")
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
        try:
            return rerun(path, inputs)
        except (InputError, MemoryError):
            raise
        except Exception as error:  # the module's own, whatever it is
            if out_of_memory.message(error):
                raise
            text = " ".join(str(error).split())[:300].rstrip(".")
            raise InputError(
                f"{path!r} failed when it was run again "
                f"({type(error).__name__}: {text}); give inputs that it can "
                "take.") from error


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


def framework_of(model):
    """The framework of a model: "keras", "torch", "jax" or
    "mlx".

    Raises:
        InputError: the model is of none of these.
    """
    for name, needs, attribute in (
            ("keras", "keras", "layers.Layer"),
            ("torch", "torch", "nn.Module"),
            ("jax", "flax.nnx", "Module"),
            ("mlx", "mlx.nn", "Module")):
        kind: Any = sys.modules.get(needs)
        for word in attribute.split("."):
            kind = getattr(kind, word, None)
        if kind is not None and isinstance(model, kind):
            return name
    hint = "."
    if isinstance(model, tuple):
        hint = "; did you mean parity.trace(*make())?"
    elif callable(model):
        hint = ", whose call may be this function."
    raise InputError(
        f"a {type(model).__name__} is not a model that can be traced; give a "
        "torch.nn.Module, a Keras layer or model, an nnx.Module or an "
        f"mlx.nn.Module{hint}")


def trace(model: Any, *inputs: Any, gradients: Callable | None = None,
          **keywords: Any) -> Trace:
    """Run a model once and return every sub-module's inputs and outputs.

    Tracing changes no number. What is hooked for the run is unhooked after it,
    also when the model fails, and its exceptions pass through. Buffers,
    counters and random states are restored, so that the model is as it was;
    one that makes its weights on its first call has them afterwards. The mode
    (training or evaluation) and torch's gradient mode are not changed.

    Several threads may trace at once, each what it calls itself; what a model
    calls in another thread is not seen.

    Args:
        model: a torch.nn.Module, a Keras layer or model, an nnx.Module or an
            mlx.nn.Module.
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
    if gradients is not None and not callable(gradients):
        raise InputError(
            "gradients must be a function of the model's output that returns "
            f"the loss, not a {type(gradients).__name__}.")
    made = _captured(model, inputs, keywords, gradients)
    made.given = model, inputs, keywords
    return made


def trace_alone(model, *inputs, **keywords):
    """``trace`` of a model that nobody else has, in little memory.

    A torch.nn.Module reads its large parameters afterwards from the file in
    which the Trace has them.
    """
    made = trace(model, *inputs, **keywords)
    if made.framework == "torch":
        tracing_of(model).share(model, made.parameters)
        out_of_memory.release()
    return made


def trace_run(model, run):
    """Trace what a function does with a model, as the model's own call.

    Args:
        model: as for trace.
        run: a function of the Recorder, whose ``clock`` is the number of the
            present event; what it returns is the output of WHOLE.

    Returns:
        A Trace. Of a module that was called again, a call is ``PATH#2``.
    """
    return _captured(model, (), {}, None, run)


def _captured(model, inputs, keywords, loss, run=None):
    """The Trace that a framework captures."""
    return tracing_of(model).capture(model, inputs, keywords, loss, run)


def tracing_of(model):
    """The module that traces models of this framework."""
    return importlib.import_module(f"parity.tracing.{framework_of(model)}")
