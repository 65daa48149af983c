"""An nnx.Module's run as operations; see parity.operations.program.

A copy of the model is run, so that the caller's own is never touched; which
module asked for an operation is seen from the Python stack.
"""

import copy

import jax
import numpy as np
from flax import nnx

from contract.errors import InputError
from parity.operations.jax_recording import is_array, record
from parity.operations.program import INPUT, PARAMETER
from parity.tracing.jax import held, modules, named_variables
from parity.tracing.recorder import argument_names, mapped
from parity.tracing.trace import WHOLE

#: Rounding to float32 changes a number by at most this part of it.
FLOAT32 = 2.0 ** -24


def raw(value):
    """The array of a variable, or an array itself."""
    return value.get_raw_value() if isinstance(value, nnx.Variable) else value


def arrays_of(model):
    """{name: what has it} of variables and arrays that are attributes.

    Variables are named as in a Trace; arrays by module and attribute.
    """
    found = dict(named_variables(model)[0])
    for path, module in modules(model):
        for name, value in held(module):
            if is_array(value) and not isinstance(value, nnx.Variable):
                found[name if path == WHOLE else f"{path}.{name}"] = value
    return found


def close(exact, plain):
    """Whether two arrays differ by no more than float32's rounding."""
    exact, plain = np.asarray(exact), np.asarray(plain)
    if exact.shape != plain.shape:
        return False
    if exact.dtype.kind not in "fc":
        return np.array_equal(exact, plain)
    exact, plain = (each.astype(np.result_type(each, np.float64))
                    for each in (exact, plain))
    with np.errstate(invalid="ignore"):
        return bool(np.all((exact == plain) | (
            np.abs(exact - plain) <= 2 * FLOAT32 * np.abs(plain)) | (
                np.isnan(exact) & np.isnan(plain))))


class Runner:
    """Runs an nnx.Module as operations; see parity.operations.program.Runner.

    Args:
        model: an nnx.Module.
        inputs, keywords: of its call.
        make: ``() -> (model, inputs, keywords)``, or None.
    """

    framework = "jax"

    def __init__(self, model, inputs, keywords, make=None):
        if not isinstance(model, nnx.Module):
            raise InputError(
                f"a {type(model).__name__} cannot be seen as operations of "
                "JAX; hand in the nnx.Module that it was made of.")
        self.model, self.inputs = model, tuple(inputs)
        self.keywords, self.make = dict(keywords), make

    def run(self, exact=False, edits=None, keep=True):
        """Run the model once; see parity.operations.program.Runner."""
        notes = []
        model = self.model
        if exact and self.make is not None:
            model = self.built(notes)
        program = record(lambda recording: self.call(recording, model),
                         exact, edits, keep)
        program.notes += notes
        return program

    def built(self, notes):
        """The model made anew in float64, with the trained weights."""
        made = record(lambda _: self.make()[0], exact=True, silent=True)
        if type(made) is not type(self.model):
            notes.append("the model could not be made anew in float64.")
            return self.model
        return made

    def call(self, recording, model):
        """Call a copy of the model, as ``record`` asks for."""
        plain, memo = arrays_of(self.model), {}
        for name, owner in arrays_of(model).items():
            array = raw(owner)
            if model is not self.model and name in plain and (
                    isinstance(plain[name], nnx.Param)
                    or not close(array, raw(plain[name]))):
                kept = raw(plain[name])
            else:
                kept = array
            memo[id(array)] = recording.leaf(PARAMETER, name, kept)
        for _, value in nnx.iter_graph(model):  # such as random states
            array = raw(value)
            if isinstance(array, jax.Array):
                memo.setdefault(id(array), array)

        def visit(name, leaf):
            if is_array(leaf) and id(leaf) not in memo:
                memo[id(leaf)] = recording.leaf(INPUT, name, leaf)
            return leaf
        names, by_keyword = argument_names(
            type(self.model).__call__.__get__(self.model),
            self.inputs, self.keywords)
        for name, value in [*zip(names, self.inputs), *(
                (name, self.keywords[name]) for name in by_keyword)]:
            mapped(value, name, visit)
        model, inputs, keywords = copied(
            (model, self.inputs, self.keywords), memo)
        recording.paths = {id(each): path for path, each in modules(model)}
        return model(*inputs, **keywords)


def copied(value, memo):
    """A copy of a model and its inputs, with other arrays in their places.

    Args:
        memo: id(array) -> what stands in its place.
    """
    try:
        return copy.deepcopy(value, memo)
    except TypeError as problem:
        raise InputError(
            f"the model holds what cannot be copied ({problem}), so that it "
            "cannot be run without a change of it; hand in one without that."
        ) from problem
