"""One implementation of a model, and what the reference says is true."""

import dataclasses
import zlib
from typing import Any

import numpy as np

from transformer_contract.fast_forms import FUSABLE
from parity import ports
from parity.check import calls, cases
from parity.numerics import (
    cancelling, rounding, tolerances, zero_gradients)
from parity.numerics.comparator import (
    DIVERGENCE, Difference, compare, relative_error)


#: The step that has every weight's gradient, as one vector.
ALL_WEIGHTS = "all weights"


class EngineRunner:
    """One implementation, in one dtype, on one device, with one model.

    A model is built once, and a component's case runs the part of it that
    stands at the case's path.
    """

    def __init__(self, engine, config, weights, dtype, device="cpu"):
        self.engine, self.config, self.weights = engine, config, weights
        self.dtype, self.device = dtype, device
        self._modules, self._parts = {}, {}
        self._sum = None if engine.NAME == "numpy" else checksum(weights)

    @property
    def model(self):
        """The whole model."""
        return self._build("transformer", self.config, self.weights)

    def module(self, case):
        """The module that a case runs: a part of the model, or one alone."""
        if case.alone:
            return self._build(case.component, case.config or self.config,
                               cases.weights_of(case, self.weights))
        if not self._parts:
            self._parts = dict(ports.module_of(
                self.engine.NAME, "parameters").modules(self.model))
        return self._parts[case.path]

    def _build(self, component, config, weights):
        key = component, config
        if key not in self._modules:
            self._modules[key] = self.engine.build(
                component, config, weights, self.dtype, self.device)
        return self._modules[key]

    def steps(self, case, inputs):
        """Every step of a case on inputs, by name.

        The engine is given copies of the inputs.

        Raises:
            InputsChanged: it wrote into one of them, or into the weights.
        """
        copies = [np.copy(x, subok=True) for x in inputs]
        steps = arrays_by_name(self._steps(case, copies))
        for place, (theirs, ours) in enumerate(zip(copies, inputs)):
            if theirs.tobytes() != ours.tobytes():
                raise InputsChanged(f"it wrote into its input {place}")
        if self._sum not in (None, checksum(self.weights)):
            raise InputsChanged("it wrote into the weights that it was given")
        return steps

    def _steps(self, case, inputs):
        if case.kind in calls.KINDS:
            return calls.KINDS[case.kind](self, case, inputs)
        if case.kind == "masks":
            return self.engine.masks(
                *inputs, self.config.pad_id, self.device,
                self.config.stacks == "both")
        if case.kind == "loss":
            return {"loss": self.engine.loss(
                *inputs, self.config.pad_id, *case.smoothing, self.device)}
        if case.kind == "gradients":
            return self._gradients(case, inputs)
        if case.kind == "optimizer":
            weights = inputs[:case.weights]
            return optimizer_steps(
                self.engine, case.training, self.config.d_model, weights,
                [inputs[i:i + case.weights] for i in range(
                    case.weights, len(inputs), case.weights)], self.device)
        if case.kind == "residual":
            return self.engine.run_residual(self.module(case), *inputs)
        returned, steps = self.engine.call(
            self.module(case), *inputs, **case.keywords)
        if not case.nested:
            steps = {name: value for name, value in steps.items()
                     if "." not in name}
        return steps | {"returned": returned} if case.returned else steps

    def fused(self, name):
        """Whether the engine's fast form need not show a step by itself."""
        fused = FUSABLE.intersection(getattr(self.engine, "FUSED", ()))
        step = name.removeprefix("grad ")
        if step in self.weights:
            return False
        return (step.rpartition(".")[2] in fused
                or step != name and "gradients" in fused)

    def _gradients(self, case, inputs):
        """The loss, each gradient, and those of all weights as one vector."""
        loss, gradients = self.engine.gradients(
            self.module(case), *inputs, calls.key(case))
        weights = [name for name in self.weights if name in gradients]
        return {"loss": loss,
                **{f"grad {name}": gradients[name]
                   for name in dict.fromkeys([*weights, *gradients])},
                ALL_WEIGHTS: np.concatenate(
                    [gradients[name].ravel() for name in weights])}


def checksum(arrays):
    """One number of the bytes of arrays by name; another for any change."""
    total = 0
    for array in arrays.values():
        total = zlib.crc32(
            np.ascontiguousarray(array).view(np.uint8).data, total)
    return total


class InputsChanged(Exception):
    """An engine wrote into an array that it was given to read."""


def arrays_by_name(steps):
    """What an engine returned as steps, if that is what it is.

    Raises:
        TypeError: it is not a dict of arrays; it names what it is.
    """
    if not isinstance(steps, dict):
        raise TypeError(
            f"it returned {type(steps).__name__}, not arrays by name")
    for name, value in steps.items():
        if not isinstance(name, str) or not isinstance(value, np.ndarray):
            raise TypeError(f"it returned {type(value).__name__} as {name!r}, "
                            "not an array")
    return steps


def optimizer_steps(engine, training, d_model, weights, gradients, device):
    """Optimise a few arrays by themselves, with what an engine optimises by.

    Args:
        engine: an engine.
        training: a TrainingConfig.
        d_model: what the schedule is scaled by.
        weights: arrays of any shapes.
        gradients: for each step, their gradients.
        device: where.

    Returns:
        Every array after every step: norm, learning rate, m, v and weight.
    """
    optimizer = ports.module_of(engine.NAME, "parts").optimizer(
        training, d_model)
    clip = ports.module_of(engine.NAME, "optimizer").clip_by_global_norm
    weights = [engine.to_native(weight, device) for weight in weights]
    moments, steps = [(weight * 0, weight * 0) for weight in weights], {}
    for step, arrays in enumerate(gradients, start=1):
        clipped, norm = clip(
            [engine.to_native(g, device) for g in arrays], training.clip_norm)
        settings = optimizer.settings(step)
        steps[f"norm, step {step}"] = engine.to_numpy(norm)
        steps[f"rate, step {step}"] = np.asarray(settings[0], arrays[0].dtype)
        for i, gradient in enumerate(clipped):
            weights[i], *moments[i] = optimizer.update(
                weights[i], gradient, *moments[i], *settings)
            for what, array in zip(
                    ("m", "v", "weight"), (*moments[i], weights[i])):
                steps[f"{what} {i}, step {step}"] = engine.to_numpy(array)
    return {name: np.asarray(array) for name, array in steps.items()}


@dataclasses.dataclass
class Oracle:
    """The reference's steps in float64, and its own error in a lower dtype.

    In float64 the own error of a gradient is what it moves by where each weight
    moves by a unit in its last place: how much rounding the model multiplies.

    ``positions`` is the config's word for them, and ``values`` are the forward
    pass's steps where limits follow from them, if gradients are among these.
    """

    steps: dict
    own_errors: dict
    positions: str = ""
    values: dict = dataclasses.field(default_factory=dict)

    def limit(self, name, dtype):
        """The limit of a step."""
        own = self.own_errors.get(name, 0.0)
        if name == ALL_WEIGHTS:
            return tolerances.gradient_limit(dtype, own)
        if name.startswith("grad "):
            return tolerances.gradient_limit(dtype, own, of_one=True)
        return tolerances.limit(dtype, own, inner="." in name)

    def outline(self, dtype):
        """(shape, limit) of every step, by name; 0 for what must be equal."""
        return {name: (value.shape, 0.0 if value.dtype.kind in "biu"
                       else self.limit(name, dtype))
                for name, value in self.steps.items()}

    def zero_scale(self, name):
        """The scale that a tensor is zero beside, if mathematics says so.

        A key's bias adds the same number to all scores of a query, which a
        softmax does not see: its gradient is zero, and what is computed is
        rounding. It is held against the gradient of the query's bias.
        """
        return (zero_gradients.scale(name, self.steps, self.positions)
                if name.startswith("grad ") else None)

    def least(self, name):
        """How large what a step adds up is, if that may cancel; else 0."""
        return (cancelling.least(name, self.steps, self.values)
                if name.startswith("grad ")
                else cancelling.least_mean(name, self.steps))


class Reference:
    """The definition, on numbers that were first rounded to a dtype.

    Attributes:
        stored: the rounded weights, which the ports are given.
        exact: computes with them in float64.
        same: computes with them in the dtype itself; None for float64.
    """

    def __init__(self, config, weights, dtype):
        engine, self.dtype = ports.engine("numpy"), dtype
        self.arrays = {name: rounding.rounded(array, dtype)
                       for name, array in weights.items()}
        self.exact: Any = EngineRunner(engine, config, {
            name: array.astype(np.float64, copy=False)
            for name, array in self.arrays.items()}, "float64")
        self.same = None
        if dtype != "float64":
            self.same = EngineRunner(engine, config, {
                name: rounding.emulated(array, dtype)
                for name, array in self.arrays.items()}, "float32")

    def runner(self, form):
        """The EngineRunner in the dtype held against the truth itself."""
        same = self.same or self.exact
        if form not in ports.FORMS or form == "readable":
            return same
        return EngineRunner(ports.engine("numpy", form), same.config,
                            same.weights, same.dtype)

    def truth(self, case):
        """The Oracle of a case."""
        inputs = [rounding.rounded(x, self.dtype) for x in case.inputs]
        steps = self.exact.steps(case, [
            x.astype(np.float64) if x.dtype.kind not in "biu" else x
            for x in inputs])
        config = self.exact.config
        own: dict = {}
        exact = Oracle(steps, own, config.positions, self.exact.engine.forward(
            self.exact.model, *inputs[:calls.INPUTS], key=calls.key(case))
            if case.kind == "gradients" and config.norm == "rms" else {})
        if self.same:
            low = self.same.steps(
                case, [rounding.emulated(x, self.dtype) for x in inputs])
            for name, value in low.items():
                own[name] = own_error(np.asarray(value), steps[name],
                                      exact.least(name))
        elif ALL_WEIGHTS in steps:
            for name, value in self.moved().steps(case, inputs).items():
                own[name] = compare(
                    value, steps[name], np.inf, zero_scale=exact.zero_scale(
                        name), least=exact.least(name)).error or 0.0
        return exact

    def moved(self):
        """The exact model, each weight by one unit in its last place."""
        exact = self.exact
        return EngineRunner(exact.engine, exact.config, {
            name: array * (1 + signs(array.shape) * tolerances.EPS["float64"])
            for name, array in exact.weights.items()}, "float64")

    def forget(self):
        """Drop the models, which are not needed once the truth is known."""
        self.exact = self.same = None

    def near_a_kink(self, case):
        """Whether a ReLU's input is so small that rounding decides its sign.

        Then a gradient in low precision may be another function's, in any
        port, and says nothing; other weights have to be found.
        """
        if case.kind != "gradients" or not self.same:
            return False
        steps = self.exact.engine.run(
            self.exact.module(case), *case.inputs[:-1])
        guard = 256 * tolerances.EPS[self.dtype]
        return any(
            np.abs(value).min() <= guard * np.sqrt(np.mean(value**2))
            for name, value in steps.items()
            if name.endswith(("feed_forward.inner", "feed_forward.gate")))


def signs(shape):
    """1 and -1 in turn, as an array of a shape."""
    return (1.0 - 2 * (np.arange(np.prod(shape, dtype=int)) % 2)).reshape(
        shape)


def own_error(value, truth, least=0.0):
    """The reference's own error in a lower dtype; 0 where it has none.

    Args:
        least: as comparator.compare takes it.
    """
    if truth.dtype.kind in "biu" or not (truth.any() or least):
        return 0.0
    if not np.isfinite(value).all():
        return float("inf")
    return relative_error(value, truth, least)[0]


def compare_steps(steps, truth, dtype, fused=lambda name: False):
    """Compare a port's steps with the truth: {name: Difference}.

    A step that either side lacks is a divergence.

    Args:
        fused: whether a step of this name may be missing, since the form
            computes it together with others.
    """
    differences = {}
    for name in [*steps, *(n for n in truth.steps if n not in steps
                           and not fused(n))]:
        limit = truth.limit(name, dtype)
        if name not in truth.steps:
            differences[name] = Difference(
                None, limit, DIVERGENCE, "the reference has no such step")
        elif name not in steps:
            differences[name] = Difference(
                None, limit, DIVERGENCE, "the port has no such step")
        else:
            expected = truth.steps[name]
            exact = expected.dtype.kind in "biu"
            differences[name] = compare(
                steps[name], expected, 0.0 if exact else limit,
                expected.dtype.name if exact else dtype,
                truth.zero_scale(name), truth.least(name))
    return differences


def failed_steps(outline, words):
    """Every step as a divergence, for a port that could not run at all."""
    return {name: Difference(None, limit, DIVERGENCE, words)
            for name, (_, limit) in outline.items()}


def merge(by_port, outline):
    """Yield (name, shape, limit, {port: Difference}) of every step.

    The order is that in which the first port recorded them, which is the order
    of computation.

    Args:
        outline: (shape, limit) by name, of every step that the truth has.
    """
    order = list(dict.fromkeys(
        name for differences in by_port.values() for name in differences))
    for name in order:
        theirs = {port: differences[name]
                  for port, differences in by_port.items()
                  if name in differences}
        shape, limit = outline.get(
            name, ((), next(iter(theirs.values())).limit))
        yield name, shape, limit, theirs
