"""The common modules once more, by hand, in float64, with their variants.

A Family reads a module's parameters, says in which settings such modules
differ, and computes what a module with some settings would have computed.
Nothing here says what is wrong: parity.causes.explaining searches for the
settings that give each model's own numbers.
"""

import dataclasses
import itertools
import math
import re

import ml_dtypes
import numpy as np

from parity.matching.steps import words_of
from parity.tracing.trace import is_float

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

    def is_own(self, name):
        """Whether a field tells how this module's own arrays are meant."""
        return name in self.own

    def also(self, first, second, sides):
        """Yield further differences of two Fits, as explaining.differences."""
        return ()


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


# Tables

class Embedding(Family):
    """A row of a table for every number."""

    name = "embedding"

    def readings(self, side):
        """The one table."""
        tables = [a for a in side.parameters.values() if is_float(a)]
        ids = _ids(side.seen[0])
        if (len(tables) == 1 and tables[0].ndim == 2 and ids is not None
                and not side.seen[0].floats
                and side.seen[0].output.shape == (
                    *ids.shape, tables[0].shape[1])):
            yield {"table": tables[0]}

    def fields(self, side, parameters):
        """The scale, which row is taken, and padding's row."""
        table = parameters["table"]
        size = table.shape[1]
        found = {"factor": [1.0, size**0.5, size**-0.5, float(size)],
                 "row": ["the number's own", "the next", "the one after next",
                         "the one before"]}
        given = _ids(side.seen[0])
        empty = given[~side.seen[0].output.any(-1)]
        if empty.size and (empty == empty.flat[0]).all() and (
                table[empty.flat[0]].any()):
            found["padding"] = ["a row as any", f"zero, id {empty.flat[0]}"]
        return found

    def compute(self, seen, parameters, settings):
        """factor · table[id]."""
        ids, table = _ids(seen), parameters["table"]
        step = {"the number's own": 0, "the next": 1, "the one after next": 2,
                "the one before": -1}[settings["row"]]
        if (ids + step).min() < 0:
            raise IndexError
        y = settings["factor"] * table[ids + step]
        padding = settings.get("padding", "").partition("id ")[2]
        return y * (ids != int(padding))[..., None] if padding else y


def _ids(seen):
    """The first input of integers, or None."""
    return next((a for a in seen.others.values() if a.dtype.kind in "iu"),
                None)


def sinusoids(first, length, size, layout, exponent, base):
    """Sines and cosines of position / base^exponent, [length, size]."""
    pair = np.arange((size + 1) // 2)
    step = {"2i/d": 2 * pair / size, "4i/d": 4 * pair / size,
            "i/(d/2 - 1)": pair / max(size // 2 - 1, 1)}.get(exponent)
    position = first + np.arange(length)[:, None]
    if step is None:  # every feature by its own number
        angle = position / base**(np.arange(size) / size)
        sine, cosine = np.sin(angle[:, ::2]), np.cos(angle[:, 1::2])
    else:
        angle = position / base**step
        sine, cosine = np.sin(angle), np.cos(angle)[:, :size // 2]
    if "cosine first" in layout:
        sine, cosine = cosine, sine
    if "in halves" in layout:
        return np.concatenate([sine, cosine], -1)
    made = np.empty((length, size))
    made[:, ::2], made[:, 1::2] = sine, cosine
    return made


#: What sinusoids differ in, beside the first position.
SINUSOID = "positions' layout", "positions' exponent", "positions' base"


#: Their values, and what table and first position there are.
SINUSOIDS = {
    "positions' layout": ["interleaved", "in halves",
                          "interleaved, cosine first",
                          "in halves, cosine first"],
    "positions' exponent": ["2i/d", "i/(d/2 - 1)", "j/d", "4i/d"],
    "positions' base": [10000.0, 1000.0, 100000.0],
    "table": ["exact", "rounded to float32", "rounded to bfloat16"],
    "first position": [0, 1, 2, -1],
}


def table_of(settings, length, size):
    """The rows of sinusoids with these settings, [length, size]."""
    rows = sinusoids(settings["first position"], length, size,
                     *(settings[name] for name in SINUSOID))
    return rounded(rows, settings["table"].removeprefix("exact")
                   .removeprefix("rounded to "))


def sinusoid_settings(rows, limit):
    """The settings that give these rows, [length, size]; None if unsure."""
    found = []
    if rows.ndim != 2 or min(rows.shape) < 2:
        return None
    for values in itertools.product(*SINUSOIDS.values()):
        settings = dict(zip(SINUSOIDS, values))
        made = table_of(settings, *rows.shape)
        if np.abs(made - rows).max() <= limit:
            found.append(settings)
    return found[0] if len(found) == 1 else None


class Positions(Family):
    """Sinusoids or a learned table, alone or added to an input."""

    name = "position encoding"
    own = ("time",)

    def readings(self, side):
        """No table, or the one that is held."""
        seen = side.seen[0]
        tables = [a for a in side.parameters.values() if is_float(a)]
        if (len(tables) > 1 or len(seen.floats) > 1 or seen.output.ndim < 2
                or seen.floats and seen.x.ndim < 2):
            return
        size = seen.output.shape[-1]
        if size > 1:
            yield {}
        if tables and tables[0].shape[-1] == size and tables[0].ndim < 4:
            table = tables[0].reshape(-1, size)
            yield {"table": table}

    def fields(self, side, parameters):
        """Layout, exponent, base, first position and the input's factor."""
        size = side.seen[0].output.shape[-1]
        found = {"first position": SINUSOIDS["first position"],
                 "time": ["second", "first"]}
        if side.seen[0].floats:
            found["input's factor"] = [1.0, 0.0, size**0.5, size**-0.5]
        if "table" not in parameters:
            found |= SINUSOIDS | {"positions": ["added", "left out"]}
        return found

    def compute(self, seen, parameters, settings):
        """factor · x + table[first + t]."""
        y = seen.output
        # Nothing but the shape of the output is used.
        shape, size = y.shape, y.shape[-1]
        axis = 0 if settings["time"] == "first" or len(shape) == 2 else 1
        length, first = shape[axis], settings["first position"]
        if "table" in parameters:
            table = parameters["table"]
            if first < 0 or first + length > len(table):
                raise IndexError
            rows = table[first:first + length]
        else:
            rows = table_of(settings, length, size)
            rows = rows * (settings["positions"] == "added")
        rows = rows.reshape(*(1,) * axis, length,
                            *(1,) * (len(shape) - 2 - axis), size)
        x = (settings["input's factor"] * seen.x
             if seen.floats and seen.x.shape == shape else 0)
        return np.broadcast_to(x + rows, shape)


# Attention

NAMED = ("query", "key", "value", "output")


def scale_of(word, size, model):
    """By how much scores are multiplied."""
    return {"1/√d_k": size**-0.5, "1": 1.0, "1/√d_model": model**-0.5,
            "1/d_k": 1 / size, "√d_k": size**0.5, "1/d_model": 1 / model,
            "1/√heads": (model / size)**-0.5}[word]


def attend(q, k, v, keep, add, settings):
    """softmax(q kᵀ · scale) v on [..., time, d_k], hidden where not kept."""
    size = q.shape[-1]
    scores = q @ k.swapaxes(-1, -2) * scale_of(
        settings["scale"], size, size * settings["heads"])
    if add is not None:
        scores = scores + add
    hiding = settings.get("hidden scores", "never count")
    if hiding == "never count":
        hidden = np.where(keep, scores, -np.inf)
    elif hiding == "less 10":
        hidden = np.where(keep, scores, scores - 10)
    else:
        hidden = np.where(keep, scores, {
            "are 1e-9": 1e-9, "are 0": 0.0}.get(hiding, scores))
    axis = {"keys": -1, "queries": -2, "heads": 1}[settings["softmax over"]]
    weights = softmax(hidden, axis)
    if hiding == "are hidden after the softmax":
        weights = np.where(keep, weights, 0)
    empty = settings.get("a query that sees nothing", "gives NaN")
    if empty != "gives NaN":
        nothing = ~np.broadcast_to(keep, scores.shape).any(-1, keepdims=True)
        other = {"gives 0": 0.0, "gives the values' mean": 1 / k.shape[-2],
                 "sees everything": softmax(scores),
                 "sees everything, less 1e9": softmax(scores - 1e9)}[empty]
        weights = np.where(nothing, other, weights)
    return weights @ v


class Attention(Family):
    """Multi-head attention with its projections."""

    name = "attention"
    own = ("batch", "future")

    def readings(self, side):
        """Kernels as [in, out], biases as [out], by query, key, value, output.

        Square kernels are read each way, packed ones in each order.
        """
        found, heads = self.by_role(side)
        if found is None:
            return
        yield found | {"heads": heads}
        for names in itertools.permutations(NAMED[:3]):
            if names != NAMED[:3]:
                moved = {f"{new}{leaf}": found[f"{old}{leaf}"]
                         for new, old in zip(NAMED, names)
                         for leaf in ("", " bias")}
                if all(a is None or b is None or a.shape == b.shape
                       for a, b in ((moved[n], found[n]) for n in moved)):
                    yield found | moved | {"heads": heads}
        square = [name for name in NAMED if found[name] is not None
                  and found[name].shape[0] == found[name].shape[1]]
        for names in ([name] for name in square):
            yield found | {name: found[name].T for name in names} | {
                "heads": heads}
        if len(square) > 2:
            for names in (square, square[:3], square[:2]):
                yield found | {name: found[name].T for name in names} | {
                    "heads": heads}

    def by_role(self, side):
        """The parameters by role, and the number of heads."""
        found = {f"{name}{leaf}": None for name in NAMED
                 for leaf in ("", " bias")}
        heads = side.setting(
            "num_heads", "nhead", "n_heads", "n_head", "heads", "h",
            "num_attention_heads", "_num_heads")
        turn = side.framework == "torch"
        arrays = {path: array for path, array in side.parameters.items()
                  if is_float(array)}
        for path, array in arrays.items():
            words, numbers = words_of(path)
            leaf = " bias" if words[-1:] == ["bias"] else ""
            if array.ndim > 3 or leaf and array.ndim > 2 or (
                    not leaf and array.ndim < 2):
                return None, None
            packed = re.search("in_proj|qkv|c_attn|query_key_value", path)
            if packed:
                array = array.T if turn and not leaf and (
                    "c_attn" not in path) else array
                if array.shape[-1] % 3:
                    return None, None
                for name, part in zip(NAMED, np.split(array, 3, -1)):
                    found[name + leaf] = part
                continue
            name = next((word for word in words if word in NAMED[:3]), None)
            if name is None and len(arrays) == 8 and len(numbers) == 1 and (
                    numbers[0] < 4) and "output" not in words:
                name = NAMED[numbers[0]]  # a list of four layers
            name = name or "output"
            if found[name + leaf] is not None:
                return None, None
            if array.ndim == 3:
                heads = array.shape[0 if name == "output" else 1]
                array = (array.reshape(-1, array.shape[-1])
                         if name == "output"
                         else array.reshape(len(array), -1))
            elif leaf:
                array = array.reshape(-1)
            elif turn:
                array = array.T
            found[name + leaf] = array
        if any(found[name] is None for name in NAMED[:3]):
            return None, None
        width = found["query"].shape[1]
        if (found["key"].shape[1] != width or found["value"].shape[1] != width
                or not isinstance(heads, (int, type(None)))):
            return None, None
        return found, heads

    def fields(self, side, parameters):
        """What attentions differ in."""
        width = self.width(side, parameters)
        counts = [n for n in range(1, min(width, 32) + 1) if not width % n]
        heads = parameters["heads"] or counts[0]
        scales = {}
        for word in ("1/√d_k", "1", "1/√d_model", "1/d_k", "√d_k",
                     "1/d_model", "1/√heads"):
            scales.setdefault(scale_of(word, width // heads, width), word)
        found = {
            "heads": _first(heads, counts),
            "scale": list(scales.values()),
            "grouping": ["head by head", "feature by feature",
                         "cut out of time and features"],
            "merging": ["moved back", "not moved back"],
            "softmax over": ["keys", "queries", "heads"],
            "batch": ["first", "second"],
            "future": ["seen", "hidden", "hidden with the place itself",
                       "hidden but for the next"],
        }
        if any(side.step.others.get(f"inputs.{name}") == "True" for name in (
                "is_causal", "use_causal_mask", "causal")) or side.setting(
                "is_causal", "causal"):
            found["future"] = _first("hidden", found["future"])
        if side.setting("batch_first") is False:
            found["batch"].reverse()
        for name, array in _masks(side.seen[0]).items():
            drops = side.framework == "torch" and (
                "MultiheadAttention" in side.step.kind)
            usual = ("added" if is_float(array) else "True hides" if drops
                     else "True keeps")
            found[f"mask {name}"] = _first(usual, [
                "True keeps", "True hides", "added", "ignored"])
        for name in NAMED:
            if parameters[f"{name} bias"] is not None:
                found[f"{name} bias"] = ["used", "ignored"]
        if self.hides(side, found):
            found["hidden scores"] = [
                "never count", "are 1e-9", "are 0", "less 10",
                "are hidden after the softmax"]
            found["a query that sees nothing"] = [
                "gives NaN", "gives 0", "gives the values' mean",
                "sees everything", "sees everything, less 1e9"]
        return found

    @staticmethod
    def width(side, parameters):
        """The width of all heads together."""
        return parameters["query"].shape[1]

    @staticmethod
    def hides(side, fields):
        """Whether there is anything that may hide."""
        return bool(_masks(side.seen[0])) or fields["future"][0] != "seen"

    def is_own(self, name):
        """Whether a field tells how this module's own arrays are meant."""
        return name in self.own or name.startswith("mask ")

    def mask(self, seen, settings, shape):
        """What is kept, [batch, 1, query, key], and what is added or None."""
        batch, queries, keys = shape
        keep, add = np.ones((1, 1, queries, keys), bool), None
        for name, array in _masks(seen).items():
            how = settings.get(f"mask {name}", "ignored")
            if how == "ignored":
                continue
            array = placed(array, name, batch, queries, keys)
            if how == "added":
                low = np.where(np.isneginf(array), 0, array)
                keep = keep & ~np.isneginf(array)
                if low.any():
                    add = low if add is None else add + low
            else:
                keep = keep & ((array != 0) == (how == "True keeps"))
        offset = {"hidden": 0, "hidden with the place itself": -1,
                  "hidden but for the next": 1}.get(settings["future"])
        if offset is not None:
            keep = keep & np.tril(np.ones((queries, keys), bool), offset)
        return keep, add

    def also(self, first, second, sides):
        """What is hidden in one and not in the other."""
        found = []
        for fit, side in zip((first, second), sides):
            seen = side.seen[0]
            x, y, _ = self.inputs(seen, fit.settings)
            keep, add = self.mask(seen, fit.settings, (
                len(x), x.shape[1], y.shape[1]))
            seem = keep if add is None else keep & (add > -1e4)
            found.append((keep, add, np.broadcast_to(seem, (
                len(x), max(len(seem[0]), 1), *seem.shape[2:]))))
        (keep, add, mine), (_, _, other) = found
        if mine.shape[2:] != other.shape[2:] or len(mine) != len(other):
            return
        mine, other = np.broadcast_arrays(mine, other)
        if not np.array_equal(mine, other):
            yield ("mask", "", mask_words(mine, other), (
                second.settings | {"kept": (keep, add)}, second.parameters))

    def inputs(self, seen, settings):
        """The inputs of query, key and value, the batch first."""
        named = {}
        for name, array in seen.floats.items():
            which = set(words_of(name)[0]) & set(NAMED[:3])
            if len(which) == 1:
                named[which.pop()] = array
        given = list(seen.floats.values())
        if len(given) > 3 or any(x.ndim != 3 for x in given):
            raise ValueError
        x = named.get("query", given[0])
        other = [array for array in given if array is not x] or [x]
        value = named.get("value", named.get("key", other[-1]))
        found = x, named.get("key", value if "value" in named else other[0]
                             ), value
        return [each.swapaxes(0, 1) if settings["batch"] == "second" else each
                for each in found]

    def compute(self, seen, parameters, settings):
        """Project, attend head by head, merge, project."""
        made = []
        given = self.inputs(seen, settings)
        for x, name in zip(given, NAMED):
            y = x if parameters[name] is None else x @ parameters[name]
            if settings.get(f"{name} bias") == "used":
                y = y + parameters[f"{name} bias"]
            made.append(y)
        keep, add = settings.get("kept") or self.mask(
            seen, settings, (len(given[0]), given[0].shape[1],
                             given[1].shape[1]))
        y = merged(*made, keep, add, settings)
        if parameters["output"] is not None:
            y = y @ parameters["output"]
            if settings.get("output bias") == "used":
                y = y + parameters["output bias"]
        y = y.swapaxes(0, 1) if settings["batch"] == "second" else y
        return y.reshape(seen.output.shape)


class Core(Attention):
    """Attention of what was projected elsewhere."""

    name = "attention without projections"

    def readings(self, side):
        """None are needed but the number of heads."""
        found = {f"{name}{leaf}": None for name in NAMED
                 for leaf in ("", " bias")}
        yield found | {"heads": self.by_role(side)}

    def by_role(self, side):
        """The number of heads, where the module says it."""
        heads = side.setting("num_heads", "nhead", "n_heads", "n_head",
                             "heads", "h", "num_attention_heads")
        return heads if isinstance(heads, int) else None

    @staticmethod
    def width(side, parameters):
        """The width of all heads together."""
        return side.seen[0].x.shape[-1]


def mask_words(mine, other):
    """What b's mask does, in words, where it is another than a's."""
    future = ~np.tril(np.ones(mine.shape[-2:], bool))
    if other.all() and not np.array_equal(mine | future, other):
        return "ignored in b"
    following = np.eye(*mine.shape[-2:], 1, dtype=bool)
    itself = np.eye(*mine.shape[-2:], dtype=bool)
    for words, same in (
            ("the future is seen in b", (mine | future) == other),
            ("the future is hidden in b", (mine & ~future) == other),
            ("off by one, the next place is seen in b",
             (mine | following) == other),
            ("off by one, the place itself is hidden in b",
             (mine & ~itself) == other)):
        if same.all():
            return words
    if mine.all():
        return "something is hidden in b, and nothing in a"
    if (mine == ~other).all():
        return "turned round in b"
    return f"another at {(mine != other).sum()} of {mine.size} places"


def merged(q, k, v, keep, add, settings):
    """Attention on [batch, time, width], in heads."""
    heads = settings["heads"]

    def split(x):
        batch, time, width = x.shape
        if settings["grouping"] == "cut out of time and features":
            return x.reshape(batch, heads, time, -1)
        if settings["grouping"] == "feature by feature":
            return x.reshape(batch, time, -1, heads).transpose(0, 3, 1, 2)
        return x.reshape(batch, time, heads, -1).swapaxes(1, 2)
    y = attend(split(q), split(k), split(v), keep, add, settings)
    batch, _, time, size = y.shape
    if settings["merging"] == "not moved back":
        return y.reshape(batch, time, -1)
    if settings["grouping"] == "feature by feature":
        return y.transpose(0, 2, 3, 1).reshape(batch, time, -1)
    return y.swapaxes(1, 2).reshape(batch, time, -1)


def _masks(seen):
    """The masks among a module's inputs."""
    return {name: array for name, array in seen.others.items()
            if array.ndim > 1 and ("mask" in name or array.dtype.kind in "bf")}


def placed(array, name, batch, queries, keys):
    """A mask as [batch, 1 or heads, query, key]."""
    shape = array.shape
    if array.ndim == 2:
        rows = "padding" in name or shape != (queries, keys)
        if rows and shape == (batch, keys):
            return array[:, None, None]
        if shape == (queries, keys):
            return array[None, None]
    if array.ndim == 3 and shape[0] in (1, batch):
        return array[:, None]
    if array.ndim == 3 and not shape[0] % batch:
        return array.reshape(batch, -1, *shape[1:])
    if array.ndim == 4:
        return array
    raise ValueError


LINEAR, ATTENTION = Linear(), Attention()

#: Every family, in the order in which they are tried.
FAMILIES = [Norm(), LINEAR, Embedding(), ATTENTION, Activation(),
            Positions()]
