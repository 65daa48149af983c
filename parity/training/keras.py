"""Watching a training run of a compiled Keras model, or a step of one's own.

The optimiser's ``apply`` is watched, and a compiled model is run eagerly.
"""

import contextlib
import inspect

import keras
import numpy as np
from keras import ops

from parity_io.errors import InputError
from parity.tracing.keras import (
    Keras, is_symbolic, modules, named_variables)
from parity.tracing.trace import WHOLE
from parity.training import form
from parity.training.observer import Observer
from parity.training.reading import of_keras
from parity.training.records import Part

#: Lists of an optimiser's variables -> what they are.
SLOTS = {"_momentums": "first moment", "_velocities": "second moment",
         "momentums": "momentum of steps",
         "_accumulators": "sum of squares"}


class KerasWatcher:
    """Tells an Observer of a run in Keras; a context manager."""

    def __init__(self, observer, model, optimizer):
        self.observer, self.model, self.optimizer = observer, model, optimizer
        variables = named_variables(model)[0]
        self.names = {id(value): path for path, value in variables.items()}
        kept = {id(value) for _, layer in modules(model)
                for value in layer._non_trainable_variables}
        run = observer.run
        run.modules = {path: (type(layer).__name__, Keras().settings(layer))
                       for path, layer in modules(model)}
        run.inner = run.narrow = True
        run.optimizer = type(optimizer).__name__
        run.accumulates = bool(optimizer.gradient_accumulation_steps)
        self.seeds = self.drawn()
        observer.buffers = frozenset(
            path for path, value in variables.items() if id(value) in kept)
        observer.arrays, observer.state = self.arrays, self.state
        observer.put = lambda found: [variables[path].assign(array)
                                      for path, array in found.items()]
        observer.begin()

    def arrays(self):
        """{path: array} of every weight."""
        return {path: numpy(value) for path, value
                in named_variables(self.model)[0].items()}

    def drawn(self):
        """The states of what draws random numbers."""
        return [numpy(value).tolist() for _, layer in modules(self.model)
                for value in layer.variables
                if "seed" in value.path.rpartition("/")[2]]

    def ended(self, told=None):
        """End a step."""
        run = self.observer.run
        if self.drawn() != self.seeds and not run.dropping:
            run.dropping = [
                path for path, layer in modules(self.model)
                if isinstance(getattr(layer, "rate", None), float)
                and layer.rate] or [WHOLE]
        self.observer.end(told)

    def state(self):
        """The optimiser's state by slot."""
        trained = self.optimizer._trainable_variables
        slots: dict = {}
        for name, held in vars(self.optimizer).items():
            if held is trained or not isinstance(held, (list, tuple)) or (
                    len(held) != len(trained)):
                continue
            for variable, each in zip(trained, held):
                path = self.names.get(id(variable))
                if path and getattr(each, "shape", None) == variable.shape:
                    slots.setdefault(SLOTS.get(name, name), {})[path] = numpy(
                        each)
        return slots

    @contextlib.contextmanager
    def __call__(self):
        optimizer, call = self.optimizer, self.optimizer.apply
        outer, depth = self.model.call, []

        def apply(grads, trainable_variables=None):
            known = (optimizer._trainable_variables if (
                trainable_variables is None) else trainable_variables)
            known = list(known)
            return call(self.exchanged(list(grads), known), known)

        def called(*args, **keywords):
            depth.append(1)
            try:
                made = outer(*args, **keywords)
            finally:
                depth.pop()
            if not depth and self.observer.record is not None:
                for kept, value in ((self.observer.record.batch, args[:1]),
                                    (self.observer.record.outputs, [made])):
                    for each in value:
                        if ops.is_tensor(each) and not is_symbolic(each):
                            array = numpy(each)
                            kept.append((WHOLE, array) if value[0] is made
                                        else array)
            return made
        optimizer.apply = apply
        self.model.call = called
        try:
            yield self
        finally:
            del optimizer.apply
            del self.model.call

    def exchanged(self, gradients, variables):
        """The gradients that an update is to take; it is noted."""
        paths = [self.names.get(id(value)) for value in variables]
        found = {path: numpy(gradient) for path, gradient in zip(
            paths, gradients) if path and gradient is not None}
        if self.observer.record is None or not found:
            return gradients
        self.observer.record.parts.append(Part(None, found))
        self.observer.run.rules |= {
            path: of_keras(self.optimizer, self.optimizer._use_weight_decay(
                value) if self.optimizer.weight_decay else False)
            for path, value in zip(paths, variables) if path in found}
        rate = float(numpy(self.optimizer.learning_rate))
        instead = self.observer.updating(
            found, {path: rate for path in found})
        return [ops.convert_to_tensor(instead[path], gradient.dtype)
                if path in instead and gradient is not None else gradient
                for path, gradient in zip(paths, gradients)]




def numpy(value):
    """A variable, tensor or IndexedSlices as NumPy's array."""
    value = getattr(value, "value", value)
    if callable(value):
        value = value()
    if hasattr(value, "indices") and hasattr(value, "dense_shape"):
        import tensorflow as tf
        value = tf.convert_to_tensor(value)
    if hasattr(value, "detach"):
        value = value.detach()
    return np.array(ops.convert_to_numpy(value))


def watched(training, steps, lock=None):
    """The WatchedRun of a Training."""
    model = training.model
    optimizer = training.optimizer or getattr(model, "optimizer", None)
    if optimizer is None:
        raise InputError(
            "the Keras model has no optimizer; compile it with one, or give "
            "it in the Training.")
    if not (training.step or training.loop or form.is_compiled(model)):
        loss = training.loss
        if loss is None:
            raise InputError(
                "the Keras model is not compiled; call model.compile("
                "optimizer, loss) before.")
        model.compile(optimizer=optimizer, loss=loss)
    if training.accumulate > 1 and not (training.step or training.loop) and (
            optimizer.gradient_accumulation_steps != training.accumulate):
        raise InputError(
            "Keras accumulates in its optimiser; give it gradient_"
            f"accumulation_steps={training.accumulate}.")
    if training.loop and not inspect.isgeneratorfunction(training.loop):
        raise InputError(
            "a loop in Keras has to be a generator; yield the loss after each "
            "step.")
    if not model.built:
        model(form.arguments(training.batches[0])[0][0])
    observer = Observer("keras", steps, lock)
    watcher = KerasWatcher(observer, model, optimizer)
    with watcher():
        observer.drive(training, watcher.ended,
                       lambda: _declared(watcher, training))
    return observer.run


def _declared(watcher, training):
    """train_on_batch on each batch."""
    model, size = training.model, training.accumulate
    model.run_eagerly = True
    model.train_function = None
    for start in range(0, len(training.batches) - size + 1, size):
        told = []
        for batch in training.batches[start:start + size]:
            args, keywords = form.arguments(batch)
            model.reset_metrics()
            made = model.train_on_batch(*args, **keywords)
            told.append(float(made[0] if isinstance(made, list) else made))
        watcher.ended(float(np.mean(told)))


def widen(training):
    """Batches in float64; the model is made so."""
    def cast(value):
        return np.asarray(value, np.float64) if hasattr(
            value, "__array__") and np.asarray(value).dtype.kind == "f" else (
                value)
    training.batches = [
        {name: cast(each) for name, each in batch.items()}
        if isinstance(batch, dict) else tuple(map(cast, batch))
        if isinstance(batch, (tuple, list)) else cast(batch)
        for batch in training.batches]


def undropped(training):
    """Let a model drop nothing."""
    for _, layer in modules(training.model):
        if isinstance(layer, keras.layers.Layer) and isinstance(
                getattr(layer, "rate", None), float):
            layer.rate = 0.0


def switched(training, on):
    """Keras' mode is that of each call; nothing is to be switched."""


