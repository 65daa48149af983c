"""How a Keras layer or model is traced; see parity.tracing.trace.

``keras.layers.Layer.__call__`` is wrapped while the model runs, on any of
Keras' backends.
"""

import contextlib
import importlib
import re

import keras
import numpy as np
from keras import ops

from parity_io.errors import InputError
from parity.tracing import classes
from parity.tracing.recorder import (
    Framework, Recorder, check_scalar, finished, settings_of)
from parity.tracing.trace import WHOLE
from parity.tracing.wrapping import wrapped

#: Attributes for Keras' own bookkeeping.
INNER = {"_layers", "_operations", "_functional", "_inbound_nodes", "_tracker",
         "_operations_by_depth", "_nodes", "_metrics", "_outbound_nodes",
         "_parent_path", "_modules", "_trainable_variables",
         "_self_tracked_trackables", "_non_trainable_variables", "_inputs",
         "_outputs", "_nodes_by_depth", "_losses", "_torch_params"}

#: Settings that do not affect what is computed.
BOOKKEEPING = {"built", "autocast", "supports_masking", "trainable", "training",
               "supports_jit", "stop_training", "jit_compile",
               "steps_per_execution", "run_eagerly", "compiled"}


def backend():
    """Keras' backend: tensorflow, torch or jax."""
    return keras.backend.backend()


def is_symbolic(value):
    """Whether a tensor has a shape and no values."""
    if isinstance(value, keras.KerasTensor):
        return True
    match backend():
        case "tensorflow":
            return ops.is_tensor(value) and not hasattr(value, "numpy")
        case "jax":
            from parity.tracing.jax import is_traced
            return is_traced(value)
    return ops.is_tensor(value) and value.device.type == "meta"


class Keras(Framework):
    """Keras, as parity.tracing.recorder.Framework describes it."""

    name = "keras"

    def device_of(self, value):
        """Where a tensor lies, as the backend calls it."""
        device = getattr(value, "device", "")
        return "" if callable(device) else str(device).rpartition("device:")[2]

    def is_array(self, value):
        """Whether a value is the backend's tensor, or NumPy's array."""
        return isinstance(value, (np.ndarray, keras.KerasTensor)) or (
            ops.is_tensor(value))

    def is_seen(self, value):
        """Whether a tensor has values."""
        return isinstance(value, np.ndarray) or not is_symbolic(value)

    def to_numpy(self, value):
        """A copy of the same dtype."""
        if isinstance(value, np.ndarray):
            return np.array(value)
        # keras: on TensorFlow a bfloat16 scalar fails, so it goes as a vector.
        shape = tuple(value.shape)
        if backend() == "torch":
            value = value.detach()
        return np.array(ops.convert_to_numpy(
            ops.reshape(value, (-1,)))).reshape(shape)

    def to_native(self, array):
        """The backend's tensor of the same dtype."""
        return ops.convert_to_tensor(array, array.dtype.name)

    def function(self, module):
        """The method whose parameters name the inputs."""
        return module.call

    def settings(self, module):
        """Plain attributes that affect what is computed."""
        settings = {name: value for name, value in settings_of(module).items()
                 if name not in BOOKKEEPING}
        activation = getattr(module, "activation", None)
        if callable(activation):
            settings["activation"] = getattr(activation, "__name__",
                                          type(activation).__name__)
        return settings


def versions():
    """The framework's versions, by name."""
    name = backend()
    return {"keras": keras.__version__,
            name: importlib.import_module(name).__version__}


def precision():
    """The present settings that decide how exact a product is."""
    settings = {"backend": backend(), "floatx": keras.backend.floatx(),
             "dtype_policy": keras.config.dtype_policy().name}
    match backend():
        case "tensorflow":
            import tensorflow as tf
            settings["tensor_float_32_execution"] = (
                tf.config.experimental.tensor_float_32_execution_enabled())
        case "torch":
            from parity.tracing.torch import precision as of_torch
            settings |= of_torch()
        case "jax":
            from parity.tracing.jax import precision as of_jax
            settings |= of_jax()
    return settings


def _given_name(layer):
    """A layer's name, or "" where it is Keras' default."""
    default = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_",
                  type(layer).__name__).lower()
    is_default = re.fullmatch(rf"{re.escape(default)}(_\d+)?", layer.name)
    return "" if is_default else layer.name


def children(owner):
    """Yield (name, layer) of a layer's direct children.

    By attribute, without a leading underscore; a child without an attribute,
    as in a Sequential or Functional model, by its own name, or as
    ``layers.N``.
    """
    # keras: on torch a layer is an nn.Module, keeping layers in _modules.
    attributes = {name: value for name, value in (
        vars(owner) | vars(owner).get("_modules", {})).items()
        if name not in INNER and not name.startswith("_self_")}
    seen = set()
    for name, value in attributes.items():
        plain = name.lstrip("_")
        if plain != name and (not plain or plain in attributes):
            plain = name
        for path, layer in classes.opened(plain, value, keras.layers.Layer):
            if isinstance(layer, keras.layers.Layer) and id(layer) not in seen:
                seen.add(id(layer))
                yield path, layer
    left = [layer for layer in getattr(owner, "_layers", ())
            if isinstance(layer, keras.layers.Layer)
            and not isinstance(layer, keras.layers.InputLayer)]
    for i, layer in enumerate(left):
        if id(layer) not in seen:
            seen.add(id(layer))
            yield _given_name(layer) or f"layers.{i}", layer


def modules(model):
    """Yield (path, layer) of a layer and all below it, each once."""
    return classes.below(model, children)


def _name_of(variable, layer):
    """A weight's name; the layer's attribute where it is Keras' default."""
    name = variable.name.rpartition("/")[2]
    if not re.fullmatch(r"variable(_\d+)?", name):
        return name
    held = (attribute.lstrip("_") for attribute, value in vars(layer).items()
            if value is variable)
    return next(filter(None, held), name)


def named_variables(model):
    """Every weight: {path: variable}, and {path of a layer: its own paths}.

    A path is that of the deepest layer with this weight, and its own name.
    """
    deepest, variables = {}, {}
    for path, layer in modules(model):
        for variable in layer.weights:
            deepest[id(variable)] = path, layer
            variables[id(variable)] = variable
    by_path = {}
    own: dict = {}
    for key, variable in variables.items():
        path, layer = deepest[key]
        name = _name_of(variable, layer)
        full = name if path == WHOLE else f"{path}.{name}"
        count = 2
        while full in by_path:
            full, count = f"{full.partition('@')[0]}@{count}", count + 1
        by_path[full] = variable
        own.setdefault(path, []).append(full)
    return by_path, own


def setters(model):
    """{path of a weight: what puts NumPy's array into it}."""
    return {path: variable.assign
            for path, variable in named_variables(model)[0].items()}


def calls_seen(model, recorder):
    """Pass every layer's call to a Recorder."""
    # keras: a layer without a build() is called once more to be built, and
    # NumPy's arrays have values then as well.
    built: list = []

    def seen(call, layer, /, *args, **keywords):
        if built:
            return call(*args, **keywords)
        return recorder.call(layer, call, args, keywords)

    def building(build, layer, /, *args):
        built.append(layer)
        try:
            return build(*args)
        finally:
            built.pop()
    kind = keras.layers.Layer
    return wrapped({(kind, "__call__"): seen,
                    (kind, "_maybe_build"): building})


@contextlib.contextmanager
def put_back(model):
    """Restore running averages, counters and random states afterwards."""
    values = [(variable, ops.convert_to_numpy(variable.value).copy())
              for variable in model.variables if not variable.trainable]
    with contextlib.ExitStack() as stack:
        if backend() == "torch":
            import torch
            stack.enter_context(torch.random.fork_rng(devices=[]))
        try:
            yield
        finally:
            for variable, value in values:
                if not np.array_equal(
                        ops.convert_to_numpy(variable.value), value):
                    variable.assign(value)


class Watching(Recorder):
    """A Recorder that also finds layers made while the model runs."""

    def __init__(self, model, framework, watch=None):
        super().__init__(framework, {}, {}, watch)
        self.model, self.strangers = model, {}
        self.look()

    def look(self):
        """Find the paths of all layers and weights."""
        self.paths.update(
            (id(layer), path) for path, layer in modules(self.model))
        self.own.update(named_variables(self.model)[1])

    def call(self, module, function, args, keywords):
        """Call a layer, known or new."""
        if self.active and id(module) not in self.paths and (
                id(module) not in self.strangers):
            self.look()
            if id(module) not in self.paths:
                self.strangers[id(module)] = module  # so its id stays its own
        return super().call(module, function, args, keywords)


def framework_for(model):
    """Keras, on its backend."""
    return Keras()


def capture(model, inputs, keywords, loss_of, run=None):
    """Trace a Keras layer or model; see parity.tracing.trace.trace."""
    framework = Keras()
    if not isinstance(model, keras.layers.Layer):
        raise InputError(
            f"a {type(model).__name__} is not a Keras layer; give one.")
    gradients_by = {"tensorflow": _by_tape, "torch": _by_autograd,
                    "jax": _by_trace}
    if loss_of and backend() not in gradients_by:
        raise InputError(
            f"gradients cannot be computed on the backend {backend()}; use "
            f"{', '.join(gradients_by)}.")
    variables, _ = named_variables(model)
    loss, gradients, by_step = None, {}, {}

    def recorded(watch=None, recorder=None):
        recorder = recorder or Watching(model, framework, watch)
        with calls_seen(model, recorder), recorder.tapping():
            output = recorder.whole(model, inputs, keywords, run)
        recorder.active = False
        return recorder, output

    parameters = {path: framework.to_numpy(variable.value)
                  for path, variable in variables.items()}
    with put_back(model):
        if loss_of:
            loss, gradients, by_step, recorder = gradients_by[backend()](
                model, recorded, loss_of)
        else:
            recorder, _ = recorded()
    recorder.look()
    late, _ = named_variables(model)
    parameters = {path: recorder.keep(parameters.get(path, variable.value))
                  for path, variable in late.items()}
    for step in recorder.steps:
        step.parameters = recorder.own.get(step.module, [])
        if step.source != "module":
            step.parameters = []
    recorder.put_gradients(by_step)
    gradients = {path: recorder.keep(value)
                 for path, value in gradients.items() if value is not None}

    def rerun(path, arrays):
        with put_back(model):
            return recorder.again(path, arrays)
    return finished(recorder, versions(), precision(), parameters, [
        path for path, variable in late.items() if variable.trainable], {},
        gradients, loss, rerun)


def _trainable(model):
    return {path: variable for path, variable
            in named_variables(model)[0].items() if variable.trainable}


def _checked(loss):
    check_scalar(loss, ops.is_tensor(loss))
    return ops.reshape(loss, ())


def _dense(gradient, tensor):
    """A gradient as a tensor; an embedding's comes as rows, and zeros do not
    come."""
    import tensorflow as tf
    return (tf.zeros_like(tensor) if gradient is None
            else tf.convert_to_tensor(gradient))


def _by_tape(model, run, loss_of):
    """Gradients on TensorFlow."""
    import tensorflow as tf
    watched = {}
    with tf.GradientTape() as tape:
        def watch(key, tensor):
            if not tf.is_tensor(tensor):
                return tensor
            # Another step's tensor has other uses; this one has its own.
            tensor = watched[key] = tf.identity(tensor)
            tape.watch(tensor)
            return tensor
        recorder, output = run(watch)
        loss = _checked(loss_of(output))
    weights = _trainable(model)
    values = [v.value for v in weights.values()], [*watched.values()]
    gradients = [[*map(_dense, *both)] for both in zip(
        tape.gradient(loss, values), values)]
    return (float(loss), dict(zip(weights, gradients[0])),
            dict(zip(watched, gradients[1])), recorder)


def _by_autograd(model, run, loss_of):
    """Gradients on torch."""
    import torch

    from parity.tracing.torch import Gradients
    collected = Gradients()
    with torch.enable_grad(), contextlib.ExitStack() as stack:
        stack.callback(collected.let_go)
        recorder, output = run(collected.watch)
        loss = _checked(loss_of(output))
        weights = _trainable(model)
        gradients = torch.autograd.grad(
            loss, [*(v.value for v in weights.values()), *collected.leaves],
            allow_unused=True)
        gradients = {
            path: torch.zeros_like(variable.value) if gradient is None
            else gradient
            for (path, variable), gradient in zip(weights.items(), gradients)}
        return float(loss.detach()), gradients, collected.found(), recorder


def _by_trace(model, run, loss_of):
    """Gradients on JAX: a second run, with a zero added to every output."""
    import jax

    from parity.tracing.jax import Adder, zeros_of
    with put_back(model):
        recorder, _ = run()
    weights = _trainable(model)

    def compute(values, zeros):
        adder = Adder(recorder.framework, recorder.paths, zeros)
        with keras.StatelessScope(
                state_mapping=list(zip(weights.values(), values))):
            _, output = run(recorder=adder)
            return _checked(loss_of(output))
    loss, (by_weight, by_step) = jax.value_and_grad(compute, argnums=(0, 1))(
        [v.value for v in weights.values()], zeros_of(recorder))
    return float(loss), dict(zip(weights, by_weight)), by_step, recorder
