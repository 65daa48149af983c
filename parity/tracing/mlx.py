"""How an mlx.nn.Module is traced; see parity.tracing.trace.

While the model runs, ``__call__`` of every class among its sub-modules is
wrapped. A function that ``mx.compile`` has made is not seen into.
"""

import contextlib
import functools
import importlib.metadata
from typing import cast

import ml_dtypes
import mlx.core as mx
import mlx.nn as nn
import numpy as np

from parity.tracing import classes
from parity.tracing.recorder import (
    Framework, Recorder, check_scalar, finished)
from parity.tracing.trace import WHOLE, is_float


class Mlx(Framework):
    """MLX, as parity.tracing.recorder.Framework describes it."""

    name = "mlx"

    def device_of(self, value):
        """Where it computes by default; an array lies nowhere else."""
        return str(mx.default_device().type).rpartition(".")[2]

    def is_array(self, value):
        """Whether a value is MLX's or NumPy's array."""
        return isinstance(value, (mx.array, np.ndarray))

    def is_seen(self, value):
        """Whether an array has values; not while ``mx.compile`` traces it."""
        try:
            mx.eval(value)
        except ValueError:
            return False
        return True

    def to_numpy(self, value):
        """A copy of the same dtype."""
        if isinstance(value, mx.array) and value.dtype == mx.bfloat16:
            return np.array(value.view(mx.uint16)).view(ml_dtypes.bfloat16)
        return np.array(value)

    def to_native(self, array):
        """MLX's own copy, of the same dtype."""
        array = np.asarray(array, order="C")
        if array.dtype == np.float64:  # else it turns float32
            return mx.array(array, mx.float64)
        return mx.array(array)

    def function(self, module):
        """The method whose parameters name the inputs."""
        return module.__call__


def versions():
    """The framework's versions, by name."""
    return {"mlx": importlib.metadata.version("mlx")}


def precision():
    """The present settings that decide how exact a product is."""
    return {"default_device": str(mx.default_device())}


def modules(model):
    """Yield (path, module) of a model and all below it, each once.

    A module has its shortest path.
    """
    return classes.below(model, lambda owner: (
        (name, child) for name, child in held(owner)
        if isinstance(child, nn.Module)))


def held(owner):
    """Yield (name, value) of what a module holds, containers opened."""
    for name, value in owner.items():
        yield from classes.opened(name, value, nn.Module)


def places(model):
    """{path of an array: (its container, its key)} of each, once by module,
    and {path of a module: paths of its own}."""
    found = {}
    own: dict = {}

    def visit(owner, container, prefix, path):
        pairs = (enumerate(container) if isinstance(container, list)
                 else container.items())
        for key, value in pairs:
            name = f"{prefix}.{key}" if prefix else str(key)
            if isinstance(value, mx.array):
                found[name] = container, key
                own.setdefault(path, []).append(name)
            elif isinstance(value, (dict, list)) and not isinstance(
                    value, nn.Module):
                visit(owner, value, name, path)
    for path, module in modules(model):
        visit(module, module, "" if path == WHOLE else path, path)
    return found, own


def array_of(place):
    """The array at a place."""
    container, key = place
    return container[key]


def setters(model):
    """{path of an array: what puts NumPy's array into it}."""
    def put(place, array):
        container, key = place
        container[key] = Mlx().to_native(array)
    return {path: functools.partial(put, place)
            for path, place in places(model)[0].items()}


def calls_seen(model, recorder):
    """Pass every sub-module's call to a Recorder."""
    return classes.calls_seen([each for _, each in modules(model)], recorder)


@contextlib.contextmanager
def put_back(model):
    """Restore every array and the random state afterwards."""
    found = places(model)[0]
    high, low = map(int, cast(list, mx.random.state)[0])
    values = {path: array_of(place) for path, place in found.items()}
    try:
        yield
    finally:
        for path, (container, key) in found.items():
            container[key] = values[path]
        mx.random.seed(high << 32 | low)  # a seed is the two words of a key


def framework_for(model):
    """MLX."""
    return Mlx()


def capture(model, inputs, keywords, loss_of, run=None):
    """Trace an mlx.nn.Module; see parity.tracing.trace.trace.

    Gradients take a second run, in which a zero is added to every output.
    """
    found, own = places(model)
    paths = {id(module): path for path, module in modules(model)}
    recorder = Recorder(Mlx(), paths, own)
    recorder.silent = {path for path, module in modules(model)
                       if not classes.is_called(type(module))}
    parameters = {path: recorder.keep(array_of(place))
                  for path, place in found.items()}
    frozen = {path for path, (container, key) in found.items()
              if isinstance(container, nn.Module) and (
                  key in container._no_grad or key.startswith("_"))}
    trainable = [path for path in found if path not in frozen]
    loss, gradients = None, {}
    with put_back(model):
        with calls_seen(model, recorder), recorder.tapping():
            recorder.whole(model, inputs, keywords, run)
        recorder.active = False
    if loss_of:
        with put_back(model):
            loss, gradients = backward(
                model, inputs, keywords, loss_of, recorder,
                [path for path in trainable if is_float(parameters[path])])
    notes = ["a dropout is in training mode, so it drops values."] if any(
        isinstance(module, nn.Dropout) and module.training
        for _, module in modules(model)) else []

    def rerun(path, arrays):
        with put_back(model):
            return recorder.again(path, arrays)
    return finished(recorder, versions(), precision(), parameters, trainable,
                    {}, gradients, loss, rerun, notes)


def backward(model, inputs, keywords, loss_of, recorder, trainable):
    """The loss and its gradients by parameter; those by step go to the steps.
    """
    found, own = places(model)
    zeros = {(step.path, name): recorder.framework.to_native(
                 np.zeros(array.shape, array.dtype))
             for step in recorder.steps
             for name, array in step.outputs.items() if is_float(array)}

    def compute(weights, zeros):
        for path, weight in weights.items():
            container, key = found[path]
            container[key] = weight
        adder = Recorder(recorder.framework, recorder.paths, own,
                         lambda key, leaf: leaf + zeros[key])
        with calls_seen(model, adder), adder.tapping():
            output = model(*inputs, **keywords)
        loss = loss_of(output)
        check_scalar(loss, isinstance(loss, mx.array))
        return loss.reshape(())

    keys = list(zeros)  # mx.grad takes no tuple as a key
    loss, (by_weight, by_step) = mx.value_and_grad(
        lambda weights, arrays: compute(weights, dict(zip(keys, arrays))),
        argnums=(0, 1))({path: array_of(found[path]) for path in trainable},
                        list(zeros.values()))
    recorder.put_gradients(dict(zip(keys, by_step)))
    return float(loss), {
        path: recorder.keep(by_weight[path]) for path in trainable}
