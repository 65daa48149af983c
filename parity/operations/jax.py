"""An nnx.Module's run as operations; see parity.operations.program.

A copy of the model is run, so that the caller's own is never touched; which
module asked for an operation is seen from the Python stack.
"""

import jax
import numpy as np
from flax import nnx

from parity_io.errors import InputError
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
            if isinstance(value, (jax.Array, np.ndarray)):
                found[name if path == WHOLE else f"{path}.{name}"] = value
    return found


def same(left, right):
    """Whether two arrays are equal to the bit."""
    left, right = np.asarray(left), np.asarray(right)
    return (left.shape, left.dtype, left.tobytes()) == (
        right.shape, right.dtype, right.tobytes())


def close(exact, plain):
    """Whether two arrays differ by no more than float32's rounding."""
    exact, plain = np.asarray(exact), np.asarray(plain)
    if exact.shape != plain.shape or exact.dtype.kind != "f":
        return same(exact, plain)
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
        self.made, self.before = None, {}

    def run(self, exact=False, edits=None, keep=True):
        """Run the model once; see parity.operations.program.Runner."""
        instead, notes = {}, []
        if exact and self.make is not None:
            instead, notes = self.tables()
        program = record(lambda recording: self.call(recording, instead),
                         exact, edits, keep,
                         before=self.before.get(exact))
        self.before.setdefault(exact, program)
        program.notes += notes
        return program

    def tables(self):
        """Arrays of the model made anew in float64, and notes.

        A parameter stays as it was trained. Another array is the exact one
        where the two agree but for rounding, or where making the model once
        more gives the plain one again.

        Returns:
            {name: array}, and [a sentence of what could not be made].
        """
        if self.made is not None:
            return self.made
        plain = {name: owner for name, owner in arrays_of(self.model).items()
                 if not isinstance(owner, nnx.Param)}
        made, notes, again = {}, [], None
        try:
            exact = record(self.again, exact=True, silent=True)
        except Exception as error:  # the caller's function, run otherwise
            notes.append("the model was not made anew in float64: "
                         f"{type(error).__name__}.")
            exact, plain = {}, {}
        for name, owner in plain.items():
            if name not in exact:
                notes.append(f"{name!r} was not made anew in float64.")
            elif close(exact[name], raw(owner)):
                made[name] = exact[name]
            else:
                if again is None:
                    again = record(self.again, silent=True)
                if name in again and same(again[name], raw(owner)):
                    made[name] = exact[name]
        self.made = made, notes
        return self.made

    def again(self, recording):
        """{name: array} of the model made once more."""
        return {name: raw(owner)
                for name, owner in arrays_of(self.make()[0]).items()}

    def call(self, recording, instead):
        """Call a copy of the model, as ``record`` asks for.

        Args:
            instead: {name: array} for some of its own.
        """
        leaves = {}
        for name, owner in arrays_of(self.model).items():
            array = raw(owner)
            leaves[id(array)] = recording.leaf(
                PARAMETER, name, array, instead.get(name))

        def visit(name, leaf):
            if isinstance(leaf, nnx.Pytree):
                return copied(leaf, leaves)
            if not is_array(leaf):
                return leaf
            if id(leaf) not in leaves:
                leaves[id(leaf)] = recording.leaf(INPUT, name, leaf)
            return leaves[id(leaf)]
        names, by_keyword = argument_names(
            type(self.model).__call__.__get__(self.model),
            self.inputs, self.keywords)
        inputs = [mapped(value, name, visit)
                  for name, value in zip(names, self.inputs)]
        keywords = {name: mapped(self.keywords[name], name, visit)
                    for name in by_keyword}
        model = copied(self.model, leaves)
        recording.paths = {id(each): path for path, each in modules(model)}
        return model(*inputs, **keywords)


def copied(model, leaves):
    """A copy of a module, with other arrays in the places of its own.

    Args:
        leaves: id(array) -> what stands in its place.
    """
    graph, state = nnx.split(model)
    return nnx.merge(graph, jax.tree.map(
        lambda leaf: leaves.get(id(leaf), leaf), state), copy=True)
