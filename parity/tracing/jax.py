"""How an nnx.Module is traced; see parity.tracing.trace.

While the model runs, ``__call__`` of every class among its sub-modules is
wrapped. Inside ``nnx.jit``, ``nnx.scan`` and similar transformations the
objects are new ones, and are not recorded.
"""

import contextlib
import functools

import flax
import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
from flax import nnx

from parity.tracing import classes
from parity.tracing.recorder import (
    Framework, Recorder, check_scalar, finished, mapped, settings_of)
from parity.tracing.trace import WHOLE, is_float

#: Settings that do not affect what is computed.
INNER = {"axis_name", "axis_index_groups", "promote_dtype"}


def is_traced(value):
    """Whether an array has no values, because JAX traces it."""
    return isinstance(value, jax.core.Tracer)


def is_hidden(value):
    """Whether an array is inside a compiled or mapped function."""
    return is_traced(value) and type(value).__name__ in (
        "DynamicJaxprTracer", "BatchTracer")


class Jax(Framework):
    """JAX, as parity.tracing.recorder.Framework describes it."""

    name = "jax"

    def device_of(self, value):
        """Where an array lies; "" while it is traced."""
        devices = getattr(value, "devices", lambda: ())
        return ("" if isinstance(value, jax.core.Tracer)
                else ", ".join(sorted(map(str, devices()))))

    def is_array(self, value):
        """Whether a value is JAX's or NumPy's array; keys are none."""
        if isinstance(value, (np.ndarray, np.generic)):
            return True
        return isinstance(value, jax.Array) and not jnp.issubdtype(
            value.dtype, jax.dtypes.extended)

    def is_seen(self, value):
        """Whether an array has values."""
        return not is_traced(value)

    def to_numpy(self, value):
        """A copy of the same dtype; 8-bit floats become float32."""
        array = np.array(value)
        if is_float(array) and array.dtype.itemsize == 1:
            return array.astype(np.float32)
        return array

    def to_native(self, array):
        """JAX's own copy, of the same dtype."""
        return jnp.array(array)

    def function(self, module):
        """The method whose parameters name the inputs."""
        return module.__call__

    def settings(self, module):
        """Plain attributes that affect what is computed."""
        return {name: value for name, value in settings_of(module).items()
                if name not in INNER}


def versions():
    """The framework's versions, by name."""
    return {"jax": jax.__version__, "jaxlib": jaxlib.__version__,
            "flax": flax.__version__}


def precision():
    """The present settings that decide how exact a product is."""
    return {name: getattr(jax.config, name) for name in (
        "jax_enable_x64", "jax_default_matmul_precision")}


def modules(model):
    """Yield (path, module) of a model and all below it, each once.

    Also those in lists, tuples and dicts; a module has its shortest path.
    """
    return classes.below(model, lambda owner: (
        (name, child) for name, child in held(owner)
        if isinstance(child, nnx.Module)))


def held(owner):
    """Yield (name, value) of a module's attributes, containers opened."""
    for name, value in vars(owner).items():
        if not name.startswith("_pytree__"):
            yield from classes.opened(name, value, nnx.Module)


def named_variables(model):
    """Every variable except random states: {path: variable}, {alias: path},
    and {path of a module: paths of its own}."""
    variables, aliases = {}, {}
    own: dict = {}
    seen: dict = {}
    for path, module in modules(model):
        for name, value in held(module):
            if (not isinstance(value, nnx.Variable)
                    or isinstance(value, (nnx.RngState, nnx.Intermediate))
                    or not isinstance(value.get_raw_value(), (
                        jax.Array, np.ndarray))):
                continue
            full = name if path == WHOLE else f"{path}.{name}"
            own.setdefault(path, []).append(full)
            if id(value) in seen:
                aliases[full] = seen[id(value)]
            else:
                variables[full] = value
                seen[id(value)] = full
    return variables, aliases, own


def setters(model):
    """{path of a variable: what puts NumPy's array into it}."""
    def put(variable, array):
        variable.set_raw_value(jnp.asarray(array))
    return {path: functools.partial(put, variable)
            for path, variable in named_variables(model)[0].items()}


def calls_seen(model, recorder):
    """Pass every sub-module's call to a Recorder."""
    return classes.calls_seen([each for _, each in modules(model)], recorder)


@contextlib.contextmanager
def put_back(model):
    """Restore every variable afterwards, including random states."""
    values = [(value, value.get_raw_value())
              for _, value in nnx.iter_graph(model)
              if isinstance(value, nnx.Variable)]
    try:
        yield
    finally:
        for variable, value in values:
            if variable.get_raw_value() is not value:
                variable.set_raw_value(value)


class Adder(Recorder):
    """Adds a zero to every recorded output, to compute its gradient."""

    def __init__(self, framework, paths, zeros):
        super().__init__(framework, paths, {})
        self.zeros = zeros

    def call(self, module, function, args, keywords):
        """Call, and add to the output."""
        path = self.paths.get(id(module))
        leaves = []
        mapped([args, keywords], "", lambda _, leaf: leaves.append(leaf))
        if path is None or any(map(is_hidden, leaves)):
            return function(*args, **keywords)
        name = self.numbered(path)
        return self.added(name, function(*args, **keywords))

    def added(self, path, output):
        """An output with its zeros added."""
        def add(name, leaf):
            zero = self.zeros.get((path, name))
            if (zero is None or is_hidden(leaf)
                    or np.shape(leaf) != zero.shape):
                return leaf
            return leaf + zero
        return mapped(output, "output", add)

    def tap(self, module, name, value):
        """Add to a tap of one of this project's models."""
        owner = self.paths.get(id(module))
        if owner is None or is_hidden(value):
            return value
        path = name if owner == WHOLE else f"{owner}.{name}"
        return self.added(self.numbered(f"{path}()"), value)


def zeros_of(recorder):
    """A zero for every recorded floating output."""
    return {(step.path, name): jnp.zeros(array.shape, array.dtype)
            for step in recorder.steps
            for name, array in step.outputs.items() if is_float(array)}


def framework_for(model):
    """JAX."""
    return Jax()


def capture(model, inputs, keywords, loss_of, run=None):
    """Trace an nnx.Module; see parity.tracing.trace.trace.

    Gradients take a second run, in which a zero is added to every output.
    """
    framework = Jax()
    variables, aliases, own = named_variables(model)
    paths = {id(module): path for path, module in modules(model)}
    recorder = Recorder(framework, paths, own)
    recorder.silent = {path for path, module in modules(model)
                       if not classes.is_called(type(module))}
    parameters = {path: recorder.keep(variable.get_raw_value())
                  for path, variable in variables.items()}
    loss, gradients = None, {}
    with put_back(model):
        with calls_seen(model, recorder), recorder.tapping():
            recorder.whole(model, inputs, keywords, run)
        recorder.active = False
    if loss_of:
        with put_back(model):
            loss, gradients = backward(
                model, inputs, keywords, loss_of, recorder, parameters)
    late, aliases, _ = named_variables(model)
    for path, variable in late.items():
        if path not in parameters:
            parameters[path] = recorder.keep(variable.get_raw_value())
    notes = ["a dropout is not deterministic, so it drops values."] if any(
        isinstance(module, nnx.Dropout) and not module.deterministic
        and module.rate for _, module in modules(model)) else []

    def rerun(path, arrays):
        with put_back(model):
            return recorder.again(path, arrays)
    trainable = [path for path, variable in late.items()
                 if isinstance(variable, nnx.Param)]
    return finished(recorder, versions(), precision(), parameters, trainable,
                    aliases, gradients, loss, rerun, notes)


def backward(model, inputs, keywords, loss_of, recorder, parameters):
    """The loss and its gradients by parameter; those by step go to the steps.
    """
    graph, weights, rest = nnx.split(model, nnx.Param, ...)

    def compute(weights, zeros):
        # nnx: a new object, with new ids
        traced = nnx.merge(graph, weights, rest, copy=True)
        adder = Adder(recorder.framework, {
            id(module): path for path, module in modules(traced)}, zeros)
        with calls_seen(traced, adder), adder.tapping():
            output = traced(*inputs, **keywords)
        loss = loss_of(output)
        check_scalar(loss, hasattr(loss, "shape"))
        return loss.reshape(())

    loss, (by_weight, by_step) = jax.value_and_grad(
        compute, argnums=(0, 1), allow_int=True)(weights, zeros_of(recorder))
    recorder.put_gradients(by_step)
    holder = nnx.merge(graph, by_weight, rest, copy=True)
    return float(loss), {
        path: recorder.keep(variable.get_raw_value())
        for path, variable in named_variables(holder)[0].items()
        if isinstance(variable, nnx.Param) and is_float(parameters[path])}
