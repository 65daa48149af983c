"""The ways to run a model: as it is, and compiled."""

import shutil

import mlx.core as mx

from impl_mlx.engine import exported, on, to_native, to_numpy
from impl_mlx.gradients import standing_in, weights_of
from impl_mlx.loss import cross_entropy
from impl_mlx.parameters import home


def eager(function, inputs):
    """The function as it is."""
    return function


def compiled(function, inputs):
    """The function compiled by MLX: what is elementwise becomes C++."""
    return Compiled(function)


class Compiled:
    """A compiled function, and how often its Python ran."""

    def __init__(self, function):
        self.traced = 0

        def traced(*inputs):
            self.traced += 1
            return function(*inputs)

        self.function, self.calls = mx.compile(traced), 0

    def __call__(self, *inputs):
        self.calls += 1
        return self.function(*inputs)


#: Mode -> what makes a function of a function and its inputs.
MODES = {"eager": eager, "compile": compiled}


def ran(mode, run):
    """Whether a function has run in a mode: traced once, called more often."""
    if mode == "compile":
        return getattr(run, "calls", 0) >= run.traced == 1
    return mode == "eager"


def missing(mode, dtype):
    """What a mode needs and is not here, in words, or ""."""
    if mode == "compile" and not shutil.which("g++"):
        return "mx.compile needs g++ on a processor, and there is none"
    return ""


def missing_gradients(mode):
    """Why a mode has no gradients, in words, or ""."""
    return ""


def predictor(model, mode, inputs):
    """What computes a Transformer's output, () -> [B T V]; whether it ran so.
    """
    def outputs(weights, *inputs):
        with standing_in(model, weights):
            return model(*inputs)

    with on(home(model)):
        inputs = [to_native(value, home(model)) for value in inputs]
    run = MODES[mode](outputs, inputs)

    def predict():
        with on(home(model)):
            return to_numpy(run(weights_of(model), *inputs))

    return predict, lambda: ran(mode, run)


def differentiator(model, mode, inputs):
    """What computes a loss, () -> loss and {weight: gradient}; whether it ran.

    Args:
        inputs: source, target, both masks, and labels.
    """
    config = model.config

    def loss_of(weights, *inputs):
        *inputs, labels = inputs
        with standing_in(model, weights):
            output = model(*inputs)
        return cross_entropy(output, labels, config.pad_id,
                             config.label_smoothing, config.smoothing)

    with on(home(model)):
        inputs = [to_native(value, home(model)) for value in inputs]
    run = MODES[mode](mx.value_and_grad(loss_of), inputs)

    def differentiate():
        with on(home(model)):
            loss, gradients = run(weights_of(model), *inputs)
            return to_numpy(loss), exported(model, gradients)

    return differentiate, lambda: ran(mode, run)
