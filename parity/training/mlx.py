"""Watching a training run of an mlx.nn.Module."""

import contextlib
import functools
import inspect
from typing import cast

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx import optimizers
from mlx.utils import tree_flatten, tree_map, tree_unflatten

from parity_io.errors import InputError
from parity.tracing.mlx import Mlx, array_of, modules, places, setters
from parity.tracing.trace import WHOLE
from parity.training import form
from parity.training.observer import Observer, number_of
from parity.training.reading import of_mlx
from parity.training.records import Part

#: What MLX calls an optimiser's state -> what it is.
SLOTS = {"m": "first moment", "v": "second moment"}


class MlxWatcher:
    """Tells an Observer of a run of an mlx.nn.Module; a context manager."""

    def __init__(self, observer, model):
        self.observer, self.model, self.optimizer = observer, model, None
        run = observer.run
        run.modules = {path: (type(module).__name__, Mlx().settings(module))
                       for path, module in modules(model)}
        run.training, run.inner = bool(model.training), True
        run.narrow = True
        self.trained = {path for path, _ in tree_flatten(
            model.trainable_parameters())}
        whole = {path for path, _ in tree_flatten(model.parameters())}
        self.key = self.drawn()
        observer.buffers = frozenset(
            path for path in places(model)[0]
            if path not in whole or "running" in path)
        observer.arrays, observer.state = self.arrays, self.state
        observer.put = lambda found: [setters(model)[path](array)
                                      for path, array in found.items()]
        observer.begin()

    def arrays(self):
        """{path: array} of every array."""
        return {path: Mlx().to_numpy(array_of(place))
                for path, place in places(self.model)[0].items()}

    def drawn(self):
        """The state of what draws random numbers."""
        return np.array(cast(list, mx.random.state)[0]).tolist()

    def ended(self, told=None):
        """End a step."""
        mx.eval(self.model.parameters())
        run = self.observer.run
        if self.drawn() != self.key and not run.dropping:
            run.dropping = [
                path for path, module in modules(self.model)
                if isinstance(module, nn.Dropout)] or [WHOLE]
        self.observer.end(told)

    def state(self):
        """The optimiser's state by slot."""
        slots: dict = {}
        for name, value in tree_flatten(
                self.optimizer.state if self.optimizer else {}):
            path, _, slot = name.rpartition(".")
            if path in self.trained and isinstance(value, mx.array):
                kind = "momentum" if isinstance(
                    self.optimizer, optimizers.SGD) else SLOTS.get(slot, slot)
                slots.setdefault(kind, {})[path] = Mlx().to_numpy(value)
        return slots

    @contextlib.contextmanager
    def __call__(self):
        before = optimizers.Optimizer.update
        kind = type(self.model)
        call = kind.__call__
        optimizers.Optimizer.update = functools.partialmethod(
            lambda optimizer, model, gradients: self.update(
                before, optimizer, model, gradients))
        kind.__call__ = lambda module, *args, **keywords: self.called(
            call, module, args, keywords)
        try:
            yield self
        finally:
            optimizers.Optimizer.update, kind.__call__ = before, call

    def called(self, call, module, args, keywords):
        """In the place of the model's own call."""
        made = call(module, *args, **keywords)
        record = self.observer.record
        if isinstance(made, mx.array) and record is not None:
            with contextlib.suppress(ValueError):  # inside a transformation
                record.outputs.append((WHOLE, Mlx().to_numpy(
                    mx.stop_gradient(made))))
        return made

    def update(self, call, optimizer, model, gradients):
        """In the place of Optimizer.update."""
        if model is not self.model or self.observer.record is None:
            return call(optimizer, model, gradients)
        self.optimizer, run = optimizer, self.observer.run
        run.optimizer = type(optimizer).__name__
        flat = tree_flatten(gradients)
        found = {path: Mlx().to_numpy(array) for path, array in flat}
        self.observer.record.parts.append(Part(None, found))
        run.rules |= {path: of_mlx(optimizer) for path in found}
        if not optimizer._initialized:
            optimizer.init(model.trainable_parameters())
        scheduler = optimizer._schedulers.get("learning_rate")
        rate = float(np.asarray(
            scheduler(mx.array(self.observer.updates)) if scheduler
            else optimizer.learning_rate))
        instead = self.observer.updating(found, {path: rate for path in found})
        return call(optimizer, model, tree_unflatten([
            (path, Mlx().to_native(instead[path]) if path in instead
             else array) for path, array in flat]))


def watched(training, steps, lock=None):
    """The WatchedRun of a Training."""
    if training.loop and not inspect.isgeneratorfunction(training.loop):
        raise InputError(
            "a loop in MLX has to be a generator; yield the loss after each "
            "step.")
    if training.schedule is not None or training.clip is not None:
        raise InputError(
            "schedule and clip are for PyTorch; give MLX's optimiser the "
            "schedule, and clip in a step of your own.")
    observer = Observer("mlx", steps, lock)
    watcher = MlxWatcher(observer, training.model)
    with watcher():
        observer.drive(training, watcher.ended,
                       lambda: _declared(watcher, training))
    return observer.run


def _declared(watcher, training):
    """The loop of a Training with a loss."""
    size, model = training.accumulate, training.model

    def loss_of(model, batch):
        return form.loss_on(training, batch) / size
    both = nn.value_and_grad(model, loss_of)
    for start in range(0, len(training.batches) - size + 1, size):
        total, told = None, 0.0
        for batch in training.batches[start:start + size]:
            loss, gradients = both(model, batch)
            told += number_of(loss)
            total = gradients if total is None else tree_map(
                lambda one, two: one + two, total, gradients)
        if training.optimizer is not None:
            training.optimizer.update(model, total)
        watcher.ended(told)


def widen(training):
    """Make a training float64, arrays and batches; on the CPU."""
    def cast(value):
        return value.astype(mx.float64) if isinstance(
            value, mx.array) and mx.issubdtype(
                value.dtype, mx.floating) else value
    mx.set_default_device(mx.cpu)
    training.model.update(tree_map(cast, training.model.parameters()))
    training.batches = [tree_map(cast, batch) for batch in training.batches]


def undropped(training):
    """Let a model drop nothing."""
    for _, module in modules(training.model):
        if isinstance(module, nn.Dropout):
            module._p_1 = 1.0


def switched(training, on):
    """Put a model into training mode, or out of it."""
    training.model.train(on)
