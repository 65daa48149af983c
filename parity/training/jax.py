"""Watching a training run of an nnx.Module, with Optax or by hand.

``jax.disable_jit`` lets every step run as it is written, so that a user's own
compiled step shows its gradients and updates as well.
"""

import contextlib
import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from parity_io.errors import InputError
from parity.tracing.jax import Jax, modules, named_variables, setters
from parity.tracing.trace import WHOLE
from parity.training import form
from parity.training.observer import Observer, number_of
from parity.training.optax_rules import accumulates, of_optax

#: What Optax calls its state -> what it is.
SLOTS = {"mu": "first moment", "nu": "second moment", "trace": "momentum",
         "sum_of_squares": "sum of squares"}


class FlaxWatcher:
    """Tells an Observer of a run of an nnx.Module; a context manager."""

    def __init__(self, observer, model):
        self.observer, self.model, self.depth = observer, model, 0
        self.optimizer = None
        variables = named_variables(model)[0]
        names = {id(variable): path for path, variable in variables.items()}
        self.paths = {path: names[id(value)] for path, value
                      in nnx.iter_graph(model) if id(value) in names}
        run = observer.run
        run.modules = {path: (type(module).__name__, Jax().settings(module))
                       for path, module in modules(model)}
        run.training = mode(model)
        self.counts = self.drawn()
        observer.buffers = frozenset(
            path for path, variable in variables.items()
            if not isinstance(variable, nnx.Param))
        observer.arrays, observer.state = self.arrays, self.state
        observer.put = lambda found: [setters(model)[path](array)
                                      for path, array in found.items()]
        observer.begin()

    def arrays(self):
        """{path: array} of every variable."""
        return {path: np.array(variable.get_raw_value()) for path, variable
                in named_variables(self.model)[0].items()}

    def drawn(self):
        """How often random numbers were drawn so far."""
        return [int(value.get_raw_value()) for _, value in nnx.iter_graph(
            self.model) if isinstance(value, nnx.RngCount)]

    def ended(self, told=None):
        """End a step."""
        jax.effects_barrier()
        if self.drawn() != self.counts and not self.observer.run.dropping:
            self.observer.run.dropping = [
                path for path, module in modules(self.model)
                if isinstance(module, nnx.Dropout) and module.rate
                and not module.deterministic] or [WHOLE]
        self.observer.end(told)

    def state(self):
        """The optimiser's state by slot."""
        if self.optimizer is None:
            return {}
        slots: dict = {}
        for path, value in nnx.to_flat_state(nnx.state(
                self.optimizer.opt_state)):
            for i, part in enumerate(path):
                name = self.paths.get(tuple(path[i + 1:]))
                if name:
                    slots.setdefault(SLOTS.get(part, str(part)), {})[
                        name] = np.array(raw(value))
                    break
        return slots

    @contextlib.contextmanager
    def __call__(self):
        before = (nnx.value_and_grad, nnx.grad, nnx.Optimizer.update)
        nnx.value_and_grad = functools.partial(
            self.differentiated, before[0], True)
        nnx.grad = functools.partial(self.differentiated, before[1], False)
        nnx.Optimizer.update = functools.partialmethod(
            lambda optimizer, *args, **keywords: self.update(
                before[2], optimizer, *args, **keywords))
        kind = type(self.model)
        call = kind.__call__
        kind.__call__ = lambda module, *args, **keywords: self.called(
            call, module, args, keywords)
        try:
            with jax.disable_jit():
                yield self
        finally:
            kind.__call__ = call
            (nnx.value_and_grad, nnx.grad, nnx.Optimizer.update) = before

    def called(self, call, module, args, keywords):
        """In the place of the model's own call."""
        made = call(module, *args, **keywords)
        if isinstance(made, jax.Array):
            jax.debug.callback(self.made, made)
        for value in args:
            if isinstance(value, (np.ndarray, jax.Array)):
                jax.debug.callback(self.taken, value)
        return made

    def made(self, array):
        """Keep an output of the model."""
        if self.observer.record is not None:
            self.observer.record.outputs.append((WHOLE, np.array(array)))

    def taken(self, array):
        """Keep an input of the model."""
        if self.observer.record is not None:
            self.observer.record.batch.append(np.array(array))

    def differentiated(self, transform, with_value, *args, **keywords):
        """In the place of nnx.value_and_grad and nnx.grad."""
        function = transform(*args, **keywords)
        if not (args and callable(args[0])):  # it is used as @nnx.grad(…)
            return lambda inner: self.differentiated(
                transform, with_value, inner, *args, **keywords)
        auxiliary = keywords.get("has_aux")

        @functools.wraps(args[0])
        def seen(*given, **more):
            if self.observer.lazy and not self.depth and (
                    self.observer.passed()):
                self.ended()
            self.depth += 1
            try:
                made = function(*given, **more)
            finally:
                self.depth -= 1
            value, gradients = made if with_value else (None, made)
            if not with_value and auxiliary:
                gradients = made[0]
            loss = value[0] if auxiliary and value is not None else value
            found = self.named(gradients)
            if not found or self.depth:
                return made
            instead = self.observer.backward(number_of(loss), found)
            fresh = self.exchanged(gradients, instead)
            if with_value:
                return value, fresh
            return (fresh, made[1]) if auxiliary else fresh
        return seen

    def named(self, gradients):
        """{path: gradient} of a State, {} of what is none."""
        try:
            flat = nnx.to_flat_state(gradients)
        except Exception:  # not of a whole module
            return {}
        return {self.paths[tuple(path)]: np.array(raw(value))
                for path, value in flat if tuple(path) in self.paths
                and not isinstance(raw(value), jax.core.Tracer)}

    def exchanged(self, gradients, instead):
        """The same State with other arrays where there are some."""
        if not instead:
            return gradients
        made = []
        for path, value in nnx.to_flat_state(gradients):
            name = self.paths.get(tuple(path))
            if name in instead:
                array = jnp.asarray(instead[name])
                value = (value.replace(array) if isinstance(
                    value, nnx.Variable) else array)
            made.append((path, value))
        return nnx.from_flat_state(made)

    def update(self, call, optimizer, model, gradients, **keywords):
        """In the place of nnx.Optimizer.update."""
        if model is not self.model or self.observer.record is None:
            return call(optimizer, model, gradients, **keywords)
        self.optimizer, run = optimizer, self.observer.run
        number = self.observer.updates
        params = nnx.state(model, optimizer.wrt)
        rules, rate, run.optimizer = of_optax(
            optimizer.tx, number, params, self.paths)
        run.inner, run.accumulates = True, accumulates(optimizer.tx)
        run.narrow = run.accumulates  # jax: MultiSteps averages in float32
        found = self.named(gradients)
        run.rules |= {path: rules.get(path) for path in found}
        rates = {} if rate is None else {path: rate for path in found}
        instead = self.observer.updating(found, rates)
        return call(optimizer, model, self.exchanged(gradients, instead),
                    **keywords)


def raw(value):
    """The array of a variable, or an array itself."""
    return value.get_raw_value() if hasattr(value, "get_raw_value") else (
        getattr(value, "value", value))


def mode(model):
    """Whether a model trains; None where nothing in it cares."""
    found = [not getattr(module, name) for _, module in modules(model)
             for name in ("deterministic", "use_running_average")
             if isinstance(getattr(module, name, None), bool)]
    return any(found) if found else None


def watched(training, steps, lock=None):
    """The WatchedRun of a Training."""
    if training.optimizer is not None and not isinstance(
            training.optimizer, nnx.Optimizer):
        training.optimizer = nnx.Optimizer(
            training.model, training.optimizer, wrt=nnx.Param)
    lazy = training.loop and not inspect.isgeneratorfunction(training.loop)
    observer = Observer("jax", steps, lock, lazy)
    watcher = FlaxWatcher(observer, training.model)
    with watcher():
        observer.drive(training, watcher.ended,
                       lambda: _declared(watcher, training))
    return observer.run


def _declared(watcher, training):
    """The loop of a Training with a loss."""
    size, batches = training.accumulate, training.batches
    optimizer = training.optimizer
    if training.schedule is not None or training.clip is not None:
        raise InputError(
            "schedule and clip are for PyTorch; give Optax both, as in "
            "optax.chain(optax.clip_by_global_norm(1.0), optax.adam("
            "schedule)).")

    own = optimizer is not None and accumulates(optimizer.tx)

    def loss_of(model, batch):
        made = form.loss_on(form.Training(
            model, training.loss, batches=[batch]), batch)
        return jnp.reshape(made, ()) / (1 if own else size)
    for start in range(0, len(batches) - size + 1, size):
        total = None
        for batch in batches[start:start + size]:
            _, gradients = nnx.value_and_grad(loss_of)(training.model, batch)
            if own:
                optimizer.update(training.model, gradients)
            total = gradients if total is None else jax.tree.map(
                jnp.add, total, gradients)
        if optimizer is not None and not own:
            optimizer.update(training.model, total)
        watcher.ended()


def widen(training):
    """Make a training float64, variables, optimiser and batches."""
    def cast(value):
        return jnp.asarray(value, jnp.float64) if isinstance(
            value, (np.ndarray, jax.Array)) and jnp.issubdtype(
                value.dtype, jnp.floating) else value
    for owner in (training.model, training.optimizer):
        if isinstance(owner, (nnx.Module, nnx.Optimizer)):
            for _, value in nnx.iter_graph(owner):
                if isinstance(value, nnx.Variable):
                    value.set_raw_value(cast(value.get_raw_value()))
    for _, module in modules(training.model):
        if getattr(module, "dtype", None) in (jnp.float32, jnp.bfloat16):
            module.dtype = jnp.float64
    training.batches = [jax.tree.map(cast, batch)
                        for batch in training.batches]


def undropped(training):
    """Let a model drop nothing."""
    for _, module in modules(training.model):
        if isinstance(module, nnx.Dropout):
            module.rate = 0.0
        elif isinstance(getattr(module, "dropout_rate", None), float):
            module.dropout_rate = 0.0


def switched(training, on):
    """Put a model into training mode, or out of it."""
    training.model.train() if on else training.model.eval()


