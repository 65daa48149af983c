"""What a function computes with JAX, recorded operation by operation.

JAX gives each primitive of this thread to a JaxRecording, with its values; the
programs inside ``jit``, ``scan`` and others are run operation by operation. No
class is patched, and Python's own control flow is kept.
"""

import contextlib
import time

import jax
import jax.numpy as jnp
import numpy as np

from parity_io.errors import InputError
from parity.operations.frames import Frames
from parity.operations.jax_again import JaxAgain
from parity.operations.jax_dispatch import (
    carried_out, file_of, handled_by, lines_of, literal, opened,
    sixty_four_bits, undisturbed)
from parity.operations.jax_names import (
    CALLS, DRAWN, IDENTITIES, MOVING, OPAQUE, RANDOM, named)
from parity.operations.jax_parts import LOOPS, PARTS
from parity.operations.jax_values import (
    JaxValues, bits, dtype_of, is_array, precision, put)
from parity.operations.jax_widening import (
    DTYPES, as_asked, is_key, is_short, longer, widened, widened_params)
from parity.operations.program import (
    CONSTANT, MADE, OPERAND, RESULT, Operation, Place, Program, Rounding)
from parity.tracing.recorder import mapped
from parity.tracing.trace import WHOLE

#: Where JAX draws random numbers.
DRAWS = "/jax/_src/random/"

#: Instead of what a plain run drew: there was none.
NONE = ()

#: What is not done anew by itself.
FOREIGN = OPAQUE | RANDOM | DRAWN


def is_draw(jaxpr):
    """Whether a program draws random numbers as JAX's own functions do."""
    return jaxpr is not None and DRAWS in file_of(jaxpr)


class MustDraw(BaseException):
    """An exact run is to draw random numbers: those of a plain one."""


class JaxRecording(JaxValues):
    """Is given each primitive of a run, carries it out and records it.

    Args:
        exact, edits, keep: as of ``Runner.run``.
        packages: those of the framework, whose lines are told last.
        silent: whether to carry out alone, and record nothing.
        before: the Program of an earlier run, or None.
        draws: of an exact run, the results of each drawing of random numbers
            in the plain one; of a plain one, where they are put.

    Set ``paths``, {id(module): path}, before the model is called.
    """

    def __init__(self, exact, edits, keep, packages, silent=False,
                 draws=None, before=None):
        super().__init__(Program("jax", exact), edits, keep, silent, before)
        self.stack = Frames({}, packages, record.__code__, (
            "jax", "jaxlib", "numpy"), WHOLE)
        self.rounded, self.place, self.draws = {}, None, draws

    @property
    def paths(self):
        """{id(module): path}."""
        return self.stack.paths

    @paths.setter
    def paths(self, paths):
        self.stack.paths = paths

    def unseen(self, name):
        """Note what cannot be seen inside."""
        self.note(f"nothing inside {name} can be seen.")

    def note(self, sentence):
        """Say something once."""
        if sentence not in self.program.notes:
            self.program.notes.append(sentence)

    def process(self, primitive, args, params, dtypes=None):
        """Carry out a primitive, or what it consists of, and record it.

        Args:
            dtypes: of the arguments, as the program has them; None where that
                is what they have.
        """
        name = primitive.name
        dtypes = dtypes or [dtype_of(each) for each in args]
        args = [self.taken(each) for each in args]
        if name in CALLS and not is_draw(params.get(CALLS[name])):
            return self.inner(*opened(params, CALLS[name]), args)
        if name in LOOPS:
            results = LOOPS[name](self, args, params)
            if results is not None:
                return results
        if name in PARTS:
            results = PARTS[name](self, args, params)
            if results is not None:
                return results
        if self.is_identity(name, args, params):
            return self.passed(primitive, args, params)
        return self.operation(primitive, args, params, dtypes)

    def is_identity(self, name, args, params):
        """Whether a primitive gives back the numbers that it is given."""
        if name in IDENTITIES:
            return True
        if name == "reduce_precision":
            return self.exact
        if name != "convert_element_type" or is_key(dtype_of(args[0])):
            return False
        new = params["new_dtype"]
        new = longer(jnp.dtype(new)) if self.exact else new
        return new == dtype_of(args[0]) or (
            np.ndim(args[0]) == 0 and not isinstance(args[0], jax.Array))

    def passed(self, primitive, args, params):
        """The operands themselves, as arrays; what they would lose."""
        new = params.get("new_dtype")
        if primitive.name == "reduce_precision":
            new = precision(params)
        if self.exact and primitive.name not in IDENTITIES:
            # A copy, so that it may be of another dtype to the program.
            dtype = dtype_of(args[0]) if new is None else jnp.dtype(new)
            results = [jnp.array(args[0], longer(dtype), copy=True)]
        else:
            results = carried_out(primitive, args, params)
        if self.silent:
            return results
        for array, result in zip(args, results):
            short = None
            if new is not None and is_short(new) and (
                    isinstance(array, jax.Array)):
                short = min(self.dtype(array), jnp.dtype(new), key=bits)
                self.rounds(self.stack.here()[0], short, array.size)
            self.know(result, self.number(array), short)
        return results

    def rounds(self, place, dtype, count):
        """Count what would be rounded."""
        if not self.silent:
            key = self.place or place, str(dtype)
            self.rounded[key] = self.rounded.get(key, 0) + count

    def operation(self, primitive, args, params, dtypes):
        """Carry out one primitive; record it."""
        if self.silent:
            return self.carried(primitive, args, params, dtypes)
        drawn = primitive.name in CALLS
        asked = named(primitive, args, params)
        if drawn:
            asked.name, asked.settings = "random", {"of": params["name"]}
        operands = tuple(self.number(each) for each in asked.operands)
        number = len(self.program.operations)
        given = asked.operands
        again = None if drawn or primitive.name in FOREIGN else JaxAgain(
            primitive, given, params, asked.restore)
        for i, each in enumerate(given):
            if (OPERAND, number, i) in self.edits:
                given = [*given[:i], put(self.edits[OPERAND, number, i], each),
                         *given[i + 1:]]
        if asked.restore:
            primitive, given, params = asked.restore(given)
        results = self.carried(primitive, given, params, [
            *dtypes, *map(dtype_of, given[len(dtypes):])])
        place, module = self.stack.here()
        place = self.place or place
        declared = self.declared(primitive, given, params)
        for i, result in enumerate(results):
            if (RESULT, number, i) in self.edits:
                results[i] = put(self.edits[RESULT, number, i], result)
        made = []
        for result in results:
            dtype = result.dtype
            if declared and jnp.issubdtype(dtype, jnp.inexact):
                dtype = min(dtype, declared, key=bits)
            if is_short(dtype) and primitive.name not in MOVING:
                self.rounds(place, dtype, result.size)
            made.append(self.value(MADE, "", result, dtype, number))
            self.know(result, made[-1])
        self.program.operations.append(Operation(
            number, asked.name, primitive.name, operands, asked.settings,
            tuple(made), place, module, again))
        return results

    def carried(self, primitive, args, params, dtypes):
        """A primitive's results, in float64 where the run is exact."""
        name = primitive.name
        if name in OPAQUE:
            self.unseen(name)
        drawn = name in CALLS or name in DRAWN
        if drawn and self.exact and not self.silent:
            return self.drawn(params)
        if not self.exact:
            results = carried_out(primitive, args, params)
            if drawn and self.draws is not None:
                self.draws.append(results)
            return results
        if name in CALLS or name in RANDOM or name in OPAQUE:
            return as_asked(primitive, args, params, dtypes)
        if name == "bitcast_convert_type":
            return as_asked(primitive, args, params, [
                self.source(args[0], dtypes[0], params["new_dtype"])])
        try:
            return carried_out(primitive, args, widened_params(params))
        except (TypeError, ValueError):
            results = as_asked(primitive, args, params, dtypes)
            self.note(f"{name} could not be computed in float64.")
            return results

    def drawn(self, params):
        """The numbers that the plain run drew here."""
        if self.draws is None:
            raise MustDraw
        if not self.draws:
            raise InputError(
                "the exact run draws random numbers that the plain one does "
                "not; hand in a model in evaluation, which draws none.")
        results = [widened(each) for each in self.draws.pop(0)]
        if "jaxpr" in params:
            results = [
                each if is_key(each.dtype) or jnp.issubdtype(
                    each.dtype, jnp.inexact) else each.astype(made.dtype)
                for each, made in zip(results, params["jaxpr"].out_avals)]
        return results

    def source(self, array, dtype, new):
        """The dtype of which a program takes the bits."""
        declared = self.dtype(array)
        same = jnp.dtype(new).itemsize
        return declared if (declared.itemsize == same
                            != jnp.dtype(dtype).itemsize) else dtype

    def declared(self, primitive, args, params):
        """The dtype that a program would give a floating result, or None."""
        asked = next((jnp.dtype(params[name]) for name in DTYPES
                      if params.get(name) is not None), None)
        # Beside arrays a scalar does not count.
        rank = min(1, max(map(np.ndim, args), default=0))
        dtypes = [self.dtype(each) for each in args
                  if isinstance(each, (jax.Array, np.ndarray))
                  and np.ndim(each) >= rank]
        dtypes = [each for each in dtypes if not is_key(each)
                  and jnp.issubdtype(each, jnp.inexact)]
        if asked is not None and (not dtypes or is_short(asked)):
            return asked if jnp.issubdtype(asked, jnp.inexact) else None
        return max(dtypes, key=bits, default=None)

    def inner(self, jaxpr, constants, args):
        """Run a program operation by operation; its results."""
        args = [*map(self.taken, constants), *args]
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], args))
        own = self.stack.kind(file_of(jaxpr)) == 0
        before = self.place

        def read(atom):
            is_literal, value = literal(atom)
            return value if is_literal else known[atom]
        try:
            for equation in jaxpr.eqns:
                if own:
                    self.place = next((
                        Place(*line) for line in lines_of(equation)
                        if self.stack.kind(line[0]) == 0), before)
                with equation.ctx.manager:
                    results = self.process(
                        equation.primitive, [*map(read, equation.invars)],
                        equation.params,
                        [getattr(each.aval, "dtype", None)
                         for each in equation.invars])
                known.update(zip(equation.outvars, results))
        finally:
            self.place = before
        return [self.staged(read(atom)) for atom in jaxpr.outvars]

    def finish(self, output):
        """The Program, its outputs named."""
        def visit(name, leaf):
            if is_array(leaf):
                self.program.outputs[name] = self.number(self.taken(leaf))
            return leaf
        with undisturbed():
            mapped(output, "output", visit)
        if all(self.program.values[number].kind == CONSTANT
               for number in self.program.outputs.values()):
            raise InputError(
                "none of the operations that make the model's output is seen; "
                "hand in the model before it is compiled, and let it return "
                "arrays of JAX.")
        self.program.roundings = [Rounding(*key, count) for key, count
                                  in self.rounded.items()]
        return self.program


def record(function, exact=False, edits=None, keep=True, packages=("flax",),
           silent=False, before=None):
    """Run a function that computes with JAX, as a Program.

    Args:
        function: is called with the JaxRecording, which it tells its leaves
            (``leaf``) and the paths of its modules (``paths``); what it
            returns is the output, a nest of arrays. If the run is exact and
            draws random numbers, it is called three times, each time from the
            same state: the numbers are those of a plain run.
        exact, edits, keep: as of ``Runner.run``.
        packages: whose lines are told only where no other file asked.
        silent: compute alone, and record nothing.
        before: the Program of an earlier run, of which what is the same is
            not computed anew.

    Returns:
        The Program; if silent, what the function returned.
    """
    def run(exact, silent, draws):
        recording = JaxRecording(
            exact, edits, keep, packages, silent, draws, before)
        with sixty_four_bits() if exact else contextlib.nullcontext():
            with handled_by(recording):
                output = function(recording)
            return output if silent else recording.finish(output)
    began = time.perf_counter()
    try:
        result = run(exact, silent, None)
    except MustDraw:
        draws = []
        run(False, True, draws)
        result = run(True, silent, draws)
    except TypeError:
        if not exact:
            raise
        # Compiled functions may insist on a dtype: the carry of a scan.
        with jax.disable_jit():
            result = run(True, silent, NONE)
    if not silent:
        result.seconds = time.perf_counter() - began
    return result
