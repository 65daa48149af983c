"""Functions of one array: activations."""

import math

import numpy as np

from parity.causes.formulas.family import Family, Sized


def erfc(x):
    """math.erfc of each number."""
    return np.vectorize(math.erfc, otypes="d")(x)


def sigmoid(x):
    """1 / (1 + exp(-x))."""
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def softplus(x):
    """log(1 + exp(x))."""
    return np.logaddexp(x, 0)


def gelu(x):
    """x Φ(x)."""
    return x * erfc(-x / math.sqrt(2)) / 2


def gelu_tanh(x, factor=0.044715):
    """GELU's approximation by tanh."""
    with np.errstate(over="ignore"):
        return x / 2 * (1 + np.tanh(
            math.sqrt(2 / math.pi) * (x + factor * x**3)))


def gelu_sigmoid(x):
    """GELU's approximation by σ."""
    return x * sigmoid(1.702 * x)


def silu(x):
    """x σ(x)."""
    return x * sigmoid(x)


def leaky(slope):
    """A ReLU that keeps a part of what is below 0."""
    return lambda x: np.where(x > 0, x, slope * x)


def along_another_axis(function):
    """A softmax over the last axis but one; NaN where there is none."""
    return lambda x: (function(x, -2) if x.ndim > 1
                      else np.full_like(x, np.nan))


#: What a port may be meant to have; the catalogue adds what else it may.
SOUND = {"none": lambda x: x, "relu": lambda x: np.maximum(x, 0)}

#: The same with a constant in float32, as TensorFlow has them.
ROUNDED = {
    "gelu": lambda x: x * erfc(-x * float(np.float32(math.sqrt(0.5)))) / 2,
    "gelu by tanh": lambda x: gelu_tanh(x, float(np.float32(0.044715)))}

#: What of an activation that is.
CONSTANT = "a constant"

#: How a model calls what is known by another name.
ALIASES = {"linear": "none", "identity": "none", "swish": "silu"}


class Activation(Family):
    """A module without parameters, of one array.

    Args:
        functions: () -> {name: function}, of sound ones and causes.
    """

    name = "activation"
    narrow = (CONSTANT,)

    def __init__(self, functions):
        self.functions = functions

    def readings(self, side):
        """None are needed."""
        seen = side.seen[0]
        if (not side.parameters and len(seen.floats) == 1
                and seen.x.shape == seen.output.shape and seen.x.ndim):
            yield {}

    def fields(self, side, parameters):
        """Which function, and by how much it is scaled."""
        size = side.seen[0].x.shape[-1]
        kind = side.step.kind.lower()
        setting = str(side.setting("activation", "activation_function") or "")
        usual = next((name for name in self.functions()
                      if name in (kind, setting)), "none")
        if kind == "gelu" and side.setting("approximate") in ("tanh", True):
            usual = "gelu by tanh"
        return {"activation": [usual, *SOUND],
                "factor": [Sized(word, size) for word in (
                    "1", "√d", "1/√d", "d")]}

    def compute(self, seen, parameters, settings):
        """factor · f(x)."""
        with np.errstate(all="ignore"):
            return settings["factor"] * self.functions()[
                settings["activation"]](seen.x)

    def narrowed(self, seen, parameters, settings, exact):
        """The same with its constant in float32."""
        function = ROUNDED.get(settings["activation"])
        return exact if function is None else settings["factor"] * function(
            seen.x)
