"""Where JAX's private interface is used: to be given each primitive.

JAX asks the current trace of a thread to carry out a primitive. Ours hands it
to the thread's innermost handler, with its values; nothing is patched, and
other threads do not see it. ``vmap`` and ``grad`` stand above it as usual.
"""

import contextlib
import dataclasses
import threading
from collections.abc import Callable

import jax
from jax._src import core

#: A thread's handlers, the innermost last.
HANDLERS = threading.local()


@dataclasses.dataclass
class ForeignCall:
    """What is carried out like a primitive, and is none.

    Attributes:
        name: as of a primitive.
        impl: its function of arrays; a list of arrays.
    """

    name: str
    impl: Callable
    multiple_results = True


class Dispatch(core.Trace):
    """The trace that hands each primitive to a handler."""

    def stage_value(self, val):
        """An array of what is none yet."""
        return HANDLERS.stack[-1].staged(val)

    def process_primitive(self, primitive, args, params, /):
        """Carry out a primitive; its results."""
        results = HANDLERS.stack[-1].process(primitive, list(args), params)
        return results if primitive.multiple_results else results[0]

    def process_call(self, primitive, function, args, params, /):
        """Run a function that is called by a primitive."""
        return self.process_custom_jvp_call(primitive, function, None, args)

    def process_custom_jvp_call(self, primitive, function, jvp, args, /, **_):
        """Run a function that has its own derivative."""
        with core.set_current_trace(self):
            return function.call_wrapped(*args)

    def process_custom_vjp_call(self, primitive, function, fwd, bwd, args, /,
                                **_):
        """Run a function that has its own derivative."""
        return self.process_custom_jvp_call(primitive, function, None, args)

    def process_shard_map(self, primitive, function, args, **params):
        """Carry out as JAX itself does: nothing inside is seen."""
        trees = []

        def impl(*args):
            trees.append(core.eval_trace.process_shard_map(
                primitive, function, args, **params))
            return list(trees[0].vals)
        results = iter(HANDLERS.stack[-1].process(
            ForeignCall(primitive.name, impl), list(args), {}))
        return trees[0].map(lambda _: next(results))

    def cur_qdd(self, x):
        """What JAX knows of a mutable value."""
        return x.cur_qdd()


#: One is enough, since it has no state: JAX's caches are used again.
DISPATCH = Dispatch()


@contextlib.contextmanager
def handled_by(handler):
    """Give the handler each primitive of this thread."""
    stack = HANDLERS.__dict__.setdefault("stack", [])
    stack.append(handler)
    try:
        with core.set_current_trace(DISPATCH):
            yield
    finally:
        stack.pop()


def undisturbed():
    """A context without the handler, in this thread."""
    return core.set_current_trace(core.eval_trace)


def carried_out(primitive, args, params):
    """What a primitive gives: a list of arrays."""
    results = core.eval_trace.process_primitive(primitive, args, params)
    return list(results) if primitive.multiple_results else [results]


def opened(params, name):
    """The jaxpr of a parameter, and its constants."""
    jaxpr = params[name]
    return ((jaxpr.jaxpr, jaxpr.consts)
            if isinstance(jaxpr, core.ClosedJaxpr) else (jaxpr, ()))


def is_jaxpr(value):
    """Whether a parameter is a program."""
    return isinstance(value, (core.ClosedJaxpr, core.Jaxpr))


def literal(atom):
    """(whether a jaxpr's operand stands in it, its value)."""
    return ((True, atom.val) if isinstance(atom, core.Literal)
            else (False, None))


def file_of(jaxpr):
    """The file of the function that a jaxpr was made of, or ""."""
    return jaxpr.debug_info.func_filename or ""


def lines_of(equation):
    """Yield (file, line, function) of what asked for it, innermost first."""
    traceback = equation.source_info.traceback
    for frame in traceback.frames if traceback else ():
        yield frame.file_name, frame.line_num, frame.function_name


def sixty_four_bits():
    """A context in which this thread's JAX has 64 bits."""
    return jax.enable_x64(True)
