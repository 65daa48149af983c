"""``parity.diff`` and ``parity.exact``: all in one call."""

import contextlib
import dataclasses
import inspect
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from parity_io.errors import InputError
from parity.causes.deciding import Side, decide
from parity.causes.foreign import finish
from parity.comparison.compare import compare
from parity.comparison.result import Comparison
from parity.exported import opening
from parity.exported.model import NotInstalled
from parity.inputs.raw import checked, kept
from parity.tracing.trace import framework_of, trace
from parity.tracing.users import told


def diff(a: Any, b: Any, *inputs: Any, exact: bool = False,
         gradients: Callable | None = None, names: Any = None,
         dtype: str | None = None, **keywords: Any) -> Comparison:
    """Compare two models, and say where they differ and why.

    Args:
        a: the truth: a model, or a function without parameters that returns
            (model, inputs) or (model, inputs, keywords). A model may be
            compiled or exported: what ``torch.compile``, ``torch.export``,
            ``jax.jit`` and ``tf.function`` return, or a runtime's session.
        b: what is held against it: likewise, or the path of an exported file.
        inputs, keywords: the arguments of models that are given as such, as
            arrays of any framework.
        exact: compare with nothing shorter than float64 inside, also where
            the models agree as they are.
        gradients: as of ``parity.trace``.
        names, dtype: as of ``parity.compare``.

    Returns:
        A Comparison with its explanations; it prints as the answer.

    Raises:
        InputError: one is neither a model nor such a function, or the two
            cannot be compared.
        NotInstalled: what runs an exported file is not there.
    """
    began = time.perf_counter()
    one = side_of(a, inputs, keywords)
    file = isinstance(b, (str, os.PathLike))
    two = None if file else side_of(b, inputs, keywords)
    if (inputs or keywords) and one.make and (file or two.make):
        raise InputError(
            "functions that make models make their inputs too; leave out "
            "those beside them, or give models.")
    if file:
        second, two = opened(opening.read(b, one.inputs, one.keywords))
    else:
        with theirs("b", two):
            second, two = seen(two, gradients)
    with theirs("a", one):
        first, one = seen(one, gradients)
    comparison = compare(first, second, names, dtype=dtype)
    decide(comparison, first, second, one, two, exact=exact)
    finish(comparison, one, two)
    comparison.seconds = time.perf_counter() - began
    return comparison


@contextlib.contextmanager
def theirs(name: str, side: Side) -> Iterator[None]:
    """Say which model an error is of, and what the model was given.

    Raises:
        InputError: in the place of any error of the model's own code.
    """
    try:
        yield
    except (InputError, NotInstalled, MemoryError):
        raise
    except Exception as error:  # a user's code raises what it likes
        if (words := told(error)) is None:
            raise
        place, raised = words
        given = ", ".join(
            f"{value.dtype} {list(value.shape)}".removeprefix("torch.")
            for value in (*side.inputs, *side.keywords.values())
            if hasattr(value, "shape") and hasattr(value, "dtype"))
        raise InputError(
            f"model {name} cannot be run{f' on {given}' if given else ''}"
            f"{place} {raised}; mend it, or give it other inputs.") from error


def seen(side: Side, gradients: Callable | None = None) -> tuple:
    """The Trace of a Side's model, and the Side; of a compiled or exported
    model the ExportedSide."""
    if foreign := opening.opened(side.model, side.inputs, side.keywords):
        return opened(foreign)
    made = trace(side.model, *side.inputs, gradients=gradients,
                 **side.keywords)
    made.raw = kept(side.raw, made.inputs)
    return made, side


def opened(foreign: opening.ExportedModel) -> tuple:
    """The Trace and the ExportedSide of an ExportedModel."""
    return foreign.trace(), foreign.side


def side_of(given: Any, inputs: tuple = (), keywords: dict | None = None
            ) -> Side:
    """The Side that a model, or a function that makes one, stands for."""
    try:
        framework = framework_of(given)
    except InputError:
        framework = opening.framework_for(given, inputs, keywords)
    if framework:
        if not inputs and not keywords:
            raise InputError(
                "a model needs its inputs: diff(a, b, *inputs), or give "
                "functions that return (model, inputs).")
        return Side(given, tuple(of_framework(each, framework)
                                 for each in inputs),
                    {name: of_framework(each, framework)
                     for name, each in (keywords or {}).items()})
    if not callable(given) or inspect.isclass(given):
        raise InputError(
            f"{given!r:.60} is neither a model nor a function that returns "
            "(model, inputs); give one of them.")
    name = getattr(given, "__name__", "the function")
    asked = [each.name for each in inspect.signature(
        given).parameters.values() if each.default is each.empty
        and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    if asked and inputs and all(
            isinstance(each, np.ndarray) for each in inputs):
        return Side(given, inputs, dict(keywords or {}))  # in NumPy
    if asked:
        raise InputError(
            f"{name} asks for {', '.join(asked)}; give a function without "
            "parameters that returns (model, inputs).")

    raw = {}

    def make():
        made = given()
        if not isinstance(made, tuple) or len(made) not in (2, 3, 4) or not (
                isinstance((*made, {})[2], Mapping)):
            raise InputError(
                f"{name} must return (model, inputs) or (model, inputs, "
                f"keywords); it returned a {type(made).__name__}.")
        model, arrays, named, before = (*made, {}, {})[:4]
        raw.update(checked(before, name))
        return model, (tuple(arrays) if isinstance(arrays, (tuple, list))
                       else (arrays,)), dict(named)
    side = Side(*make(), make)
    side.raw = raw
    return side


def of_framework(value: Any, framework: str) -> Any:
    """An array as a framework's own; any other value as it is."""
    if framework == "torch":
        import torch
        if isinstance(value, torch.Tensor) or not hasattr(
                value, "__array__"):
            return value
        return torch.from_numpy(np.array(value))
    if not hasattr(value, "__array__"):
        return value
    array = np.asarray(value.detach() if hasattr(value, "detach") else value)
    if framework == "jax":
        import jax.numpy as jnp
        return jnp.asarray(array)
    if framework == "keras":
        from keras import ops
        return ops.convert_to_tensor(array, array.dtype.name)
    return array


@dataclasses.dataclass(frozen=True)
class ExactRun:
    """A run with nothing shorter than float64 inside.

    Attributes:
        outputs: name -> array, of float64 where the model's are floating.
        roundings: (file:line, dtype, how many numbers) of each line at which
            the model as it is rounds to something shorter.
        notes: what could not be widened, a sentence each.
        program: every operation; see parity.operations.program.Program.
    """

    outputs: dict[str, np.ndarray]
    roundings: list[tuple[str, str, int]]
    notes: list[str]
    program: Any = dataclasses.field(repr=False)

    def __repr__(self):
        names = ", ".join(f"{name} {list(array.shape)}"
                          for name, array in self.outputs.items())
        lines = [f"Exact run of {len(self.program.operations)} operations: "
                 f"{names}", *(f"  {place} rounds {count} numbers to {dtype}"
                               for place, dtype, count in self.roundings),
                 *(f"  {note}" for note in self.notes)]
        return "\n".join(lines)


def exact(model: Any, *inputs: Any, **keywords: Any) -> ExactRun:
    """Run a model with nothing shorter than float64 inside.

    Neither the model nor its caller is changed. Given a function that makes
    the model, it is also built so: tables too are computed in float64.

    Args:
        model: a model, or a function without parameters that returns (model,
            inputs) or (model, inputs, keywords).
        inputs, keywords: the model's arguments, if it is given itself.

    Returns:
        An ExactRun.

    Raises:
        InputError: the model cannot be seen as operations.
    """
    program = side_of(model, inputs, keywords).runner().run(exact=True)
    return ExactRun(
        {name: program.values[number].array
         for name, number in program.outputs.items()},
        [(str(each.place), each.dtype, each.count)
         for each in program.roundings], program.notes, program)
