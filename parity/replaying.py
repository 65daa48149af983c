"""The common modules once more, by hand, in float64, with their variants.

A Family reads a module's parameters, says in which settings such modules
differ, and computes what a module with some settings would have computed.
Nothing here says what is wrong: parity.explaining searches for the settings
that give each model's own numbers.
"""

import dataclasses
import itertools
import math

import ml_dtypes
import numpy as np

from parity.aligning import words_of
from parity.capture import is_float

#: Epsilons that systems have.
EPSILONS = (1e-5, 1e-6, 1e-3, 1e-12, 1e-7, 1e-8, 1e-4, 0.0)

LOWER = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16,
         "float16": np.float16}


def exact(array):
    """An array in float64, if it is floating."""
    return array.astype(np.float64) if is_float(array) else array


def rounded(array, dtype):
    """An array that passed through a lower dtype."""
    if dtype == "TF32":  # 10 bits behind the point, ties to even
        bits = array.astype(np.float32).view(np.uint32)
        bits = bits + 0xFFF + ((bits >> 13) & 1) & ~np.uint32(0x1FFF)
        return bits.astype(np.uint32).view(np.float32).astype(np.float64)
    return array if dtype == "" else array.astype(LOWER[dtype]).astype(
        np.float64)


@dataclasses.dataclass
class Seen:
    """One application of a module, all in float64.

    Attributes:
        floats: name -> floating input that is no mask.
        others: name -> integers, booleans and masks.
        output: what came out.
        shape: the shape of the output of ``linear`` modules and the like.
    """

    floats: dict
    others: dict
    output: np.ndarray

    @property
    def x(self):
        """The first floating input."""
        return next(iter(self.floats.values()))


@dataclasses.dataclass
class Side:
    """A module of one of the two models.

    Attributes:
        framework: its framework.
        step: the capture.Step.
        parameters: path below the module -> array in float64.
        seen: a Seen each, the traced one first.
        limit: how near a replay must come.
        dtype: the output's.
    """

    framework: str
    step: object
    parameters: dict
    seen: list
    limit: float
    dtype: str

    def setting(self, *words):
        """The first of these settings that the module has, else None."""
        for word in words:
            if word in self.step.settings:
                return self.step.settings[word]
        return None


# Activations

def _erfc(x):
    return np.vectorize(math.erfc, otypes="d")(x)


def sigmoid(x):
    """1 / (1 + exp(-x))."""
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def softmax(x, axis=-1):
    """exp(x) / Σ exp(x)."""
    with np.errstate(invalid="ignore"):
        e = np.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)


def log_softmax(x, axis=-1):
    """x - log Σ exp(x)."""
    x = x - x.max(axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def softplus(x):
    """log(1 + exp(x))."""
    return np.logaddexp(x, 0)


def gelu_tanh(x):
    """GELU's approximation by tanh."""
    with np.errstate(over="ignore"):
        return x / 2 * (1 + np.tanh(
            math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * _erfc(-x / math.sqrt(2)) / 2,
    "gelu by tanh": gelu_tanh,
    "gelu by sigmoid": lambda x: x * sigmoid(1.702 * x),
    "silu": lambda x: x * sigmoid(x),
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "softplus": softplus,
    "mish": lambda x: x * np.tanh(softplus(x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "leaky relu, 0.01": lambda x: np.where(x > 0, x, 0.01 * x),
    "leaky relu, 0.2": lambda x: np.where(x > 0, x, 0.2 * x),
    "leaky relu, 0.3": lambda x: np.where(x > 0, x, 0.3 * x),
    "relu6": lambda x: np.clip(x, 0, 6),
    "relu squared": lambda x: np.maximum(x, 0)**2,
    "softmax": softmax,
    "log-softmax": log_softmax,
    "softmax along another axis": lambda x: softmax(x, -2),
    "log-softmax along another axis": lambda x: log_softmax(x, -2),
}


class Family:
    """How modules of one sort are read and replayed.

    Attributes:
        name: what the sort is called.
        own: fields in which two sound modules may differ, for each was given
            its own arrays: how a mask is meant, which axis is the batch.
    """

    name = ""
    own = ()

    def readings(self, side):
        """Yield the parameters by role, each way that they can be read."""
        raise NotImplementedError

    def fields(self, side, parameters):
        """Field -> its values; first what the module says, or what is usual.
        """
        raise NotImplementedError

    def compute(self, seen, parameters, settings):
        """What a module with these settings gives."""
        raise NotImplementedError


def _first(value, values):
    """Values with one of them first."""
    return [value, *(v for v in values if v != value)]


def role(path, roles):
    """Which of {role: words} a parameter has, by its last words."""
    word = path.rpartition(".")[2].lower()
    return next((name for name, words in roles.items() if word in words), None)


SCALES = {"scale": ("weight", "scale", "gamma", "a_2", "alpha", "g", "w",
                    "weight_g"),
          "bias": ("bias", "beta", "b_2", "b")}


class Norm(Family):
    """LayerNorm and RMSNorm."""

    name = "norm"

    def readings(self, side):
        """A scale and a bias, both of the length of a row or of one number."""
        found = {}
        for path, array in side.parameters.items():
            which = role(path, SCALES)
            if which is None or which in found:
                return
            found[which] = array
        x = side.seen[0].x
        if x.shape != side.seen[0].output.shape or x.ndim < 2 or any(
                a.shape not in ((x.shape[-1],), (1,), ())
                for a in found.values()):
            return
        yield {"scale": found.get("scale"), "bias": found.get("bias")}

    def fields(self, side, parameters):
        """What norms differ in."""
        eps = side.setting("eps", "epsilon", "variance_epsilon",
                           "layer_norm_eps", "layer_norm_epsilon")
        eps = eps if isinstance(eps, (int, float)) else EPSILONS[0]
        rms = "rms" in side.step.kind.lower()
        found = {
            "mean": _first("ignored" if rms else "subtracted",
                           ["subtracted", "ignored"]),
            "epsilon": _first(float(eps), EPSILONS),
            "epsilon's place": ["inside the root", "outside the root"],
            "variance": ["over D", "over D - 1"],
            "axes": ["last", "last two", "second"],
        }
        if parameters["scale"] is not None:
            found["scale"] = ["used", "1 is added", "ignored"]
        if parameters["bias"] is not None:
            found["bias"] = ["used", "ignored"]
        for value in self.estimated(side, parameters):
            if value not in found["epsilon"]:
                found["epsilon"].append(value)
        return found

    def estimated(self, side, parameters):
        """Epsilons of few digits that the numbers themselves suggest."""
        found = []
        scale, bias = (parameters[n] for n in ("scale", "bias"))
        for seen in side.seen:
            x, y = seen.x, seen.output
            y = y if bias is None else y - bias
            for mean in (x.mean(-1, keepdims=True), 0.0):
                c = x - mean
                row = c if scale is None else c * scale
                v = (c * c).mean(-1)
                with np.errstate(all="ignore"):
                    root = np.sqrt((row * row).sum(-1) / (y * y).sum(-1))
                    for guess in (root * root - v, root - np.sqrt(v)):
                        guess = guess[np.isfinite(guess)]
                        if guess.size and np.median(guess) > 0:
                            found.append(float(f"{np.median(guess):.1e}"))
        return dict.fromkeys(found)

    def compute(self, seen, parameters, settings):
        """scale (x - mean) / √(variance + ε) + bias."""
        x = seen.x
        axes = {"last": -1, "last two": (-2, -1), "second": 1}[
            settings["axes"]]
        mean = x.mean(axes, keepdims=True)
        size = x.size / mean.size
        less = settings["variance"] == "over D - 1"
        c = x - mean if settings["mean"] == "subtracted" else x
        variance = (c * c).sum(axes, keepdims=True) / max(size - less, 1)
        eps = settings["epsilon"]
        with np.errstate(all="ignore"):
            y = c / (np.sqrt(variance + eps)
                     if settings["epsilon's place"] == "inside the root"
                     else np.sqrt(variance) + eps)
        if settings.get("scale", "ignored") != "ignored":
            y = y * (parameters["scale"] + (settings["scale"] != "used"))
        if settings.get("bias") == "used":
            y = y + parameters["bias"]
        return y


KERNELS = {"kernel": ("weight", "kernel", "w", "weights", "table"),
           "bias": ("bias", "b", "beta")}


class Linear(Family):
    """Linear, Dense, LinearGeneral, EinsumDense: x W + b, and what is fused.
    """

    name = "linear"

    def readings(self, side):
        """A kernel as [in, out] and a bias as [out]; square ones both ways."""
        found = {}
        for path, array in side.parameters.items():
            which = role(path, KERNELS)
            if which is None or which in found:
                return
            found[which] = array
        kernel, bias = found.get("kernel"), found.get("bias")
        seen = side.seen[0]
        if kernel is None or kernel.ndim < 2 or not seen.floats:
            return
        x, y = seen.x.shape, seen.output.shape
        if bias is not None:
            if bias.size not in _tails(y):
                return
            bias = bias.reshape(-1)
        ways = []
        for n in range(1, kernel.ndim):
            first, second = kernel.shape[:n], kernel.shape[n:]
            flat = kernel.reshape(math.prod(first), -1)
            if x[-len(first):] == first and y[-len(second):] == second:
                ways.append(flat)
            if (kernel.ndim == 2 and x[-1:] == second
                    and y[-1:] == first):
                ways.append(flat.T)
        if (side.framework == "torch" and "weight" in "".join(side.parameters)
                and "conv1d" not in side.step.kind.lower()):
            ways.reverse()
        for kernel in ways:
            yield {"kernel": kernel, "bias": bias}

    def fields(self, side, parameters):
        """What linear layers differ in."""
        said = str(side.setting("activation") or "none")
        said = {"linear": "none", "identity": "none"}.get(said, said)
        size = len(parameters["kernel"])
        found = {
            "activation": _first(said if said in ACTIVATIONS else "none",
                                 ACTIVATIONS),
            "factor": [1.0, size**-0.5, size**0.5, 1 / size],
            "product": ["exact", "TF32", "bfloat16"],
        }
        if parameters["bias"] is not None:
            found["bias"] = ["used", "ignored"]
        return found

    def compute(self, seen, parameters, settings):
        """factor · activation(x W + b)."""
        x, kernel = seen.x, parameters["kernel"]
        if settings["product"] != "exact":
            x, kernel = (rounded(v, settings["product"]) for v in (x, kernel))
        y = x.reshape(-1, len(kernel)) @ kernel
        if settings.get("bias") == "used":
            y = y + parameters["bias"]
        y = y.reshape(seen.output.shape)
        return settings["factor"] * ACTIVATIONS[settings["activation"]](y)


def _tails(shape):
    """The sizes of a shape's ends."""
    return set(itertools.accumulate(reversed(shape), lambda p, n: p * n))


class Activation(Family):
    """A module without parameters, of one array."""

    name = "activation"

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
        said = str(side.setting("activation", "activation_function") or "")
        usual = next((name for name in ACTIVATIONS
                      if name in (kind, said)), "none")
        if kind == "gelu" and side.setting("approximate") in ("tanh", True):
            usual = "gelu by tanh"
        return {"activation": _first(usual, ACTIVATIONS),
                "factor": [1.0, size**0.5, size**-0.5, float(size)]}

    def compute(self, seen, parameters, settings):
        """factor · f(x)."""
        with np.errstate(all="ignore"):
            x = seen.x
            if (settings["activation"].endswith("another axis")
                    and x.ndim < 2):
                return np.full_like(x, np.nan)
            return settings["factor"] * ACTIVATIONS[settings["activation"]](x)


#: Every family, in the order in which they are tried.
FAMILIES = [Norm(), Linear(), Activation()]
