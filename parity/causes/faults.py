"""The catalogue of faults: what goes wrong in ports, each as code.

A fault can be put into any port, and into the reference, while a block runs.
Put into a port it proves that the check notices; put into the reference it is
what a port with that fault would compute, by which a fault that is found in
the wild gets its name (``parity.causes.diagnosis``).

Most faults are one change that suits all four, for their files have the same
names. What has to be written as arithmetic is written once, on NumPy arrays,
and a port's own arrays are carried over and back.
"""

import contextlib
import dataclasses
import importlib
import math
import typing
from unittest import mock

import ml_dtypes  # teaches NumPy bfloat16
import numpy as np

from contract.trace import tap

#: Eps that systems have, besides a preset's own.
COMMON_EPS = (1e-3, 1e-5, 1e-6, 1e-7, 1e-8, 1e-12, 0.0)


@dataclasses.dataclass(frozen=True)
class Fault:
    """A thing that goes wrong.

    Attributes:
        name: what is said of a port that has it.
        topic: what it belongs to, for tables.
        put: port -> a context manager under which the port has it.
        preset: one in which it shows.
        case, step: where it shows first there.
        changes: fields of the preset's config that it needs otherwise.
        equivalent: why it computes the same numbers, to rounding, so that no
            check can or need find it; "" for a fault that is one.
    """

    name: str
    topic: str
    put: typing.Callable
    preset: str
    case: str
    step: str
    changes: dict = dataclasses.field(default_factory=dict)
    equivalent: str = ""


# How things are changed

def module_of(port, file):
    """A module of a port, or of the reference, by its file's name."""
    package = "reference_numpy" if port == "numpy" else f"impl_{port}"
    return importlib.import_module(f"{package}.{file}")


def replaced(file, name, make):
    """Replace FILE's NAME, or CLASS.NAME, by ``make(old, port)``."""
    def put(port):
        module = module_of(port, file)
        target, _, attribute = name.rpartition(".")
        owner = getattr(module, target) if target else module
        return mock.patch.object(
            owner, attribute, make(getattr(owner, attribute), port))
    return put


def worded(file, table, word, other):
    """Let a word of a table of variants mean another one."""
    def put(port):
        module = module_of(port, file)
        names = getattr(module, table)
        return mock.patch.dict(
            names, {word: names.get(other) or getattr(module, other)})
    return put


def all_of(*puts):
    """Several changes at once."""
    @contextlib.contextmanager
    def put(port):
        with contextlib.ExitStack() as stack:
            for one in puts:
                stack.enter_context(one(port))
            yield
    return put


def made_with(change):
    """Change config and weights on their way into the port."""
    def make(old, port):
        def build(component, config, weights, *args, **keywords):
            return old(component, *change(config, dict(weights)), *args,
                       **keywords)
        return build
    return replaced("engine", "build", make)


def weights_by(change):
    """Change each array by ``change(name, array, config)``; None keeps it."""
    def all_arrays(config, weights):
        found = {}
        for name, array in weights.items():
            new = change(name, array, config)
            found[name] = array if new is None else np.ascontiguousarray(new)
        return config, found
    return made_with(all_arrays)


def after_init(file, cls, change):
    """Run ``change(self)`` after a class's ``__init__``."""
    def make(old, port):
        def made(self, *args, **keywords):
            old(self, *args, **keywords)
            change(self)
        return made
    return replaced(file, f"{cls}.__init__", make)


def numpy_of(port, value):
    """A port's array as NumPy's, or as it is."""
    return value if port == "numpy" else module_of(
        port, "engine").to_numpy(value)


def native_of(port, array):
    """NumPy's array as a port's."""
    if port == "numpy":
        return array
    to_native = module_of(port, "engine").to_native
    if np.ndim(array) == 0:
        return to_native(np.reshape(array, 1), "cpu")[0]
    return to_native(array, "cpu")


def by_numpy(function):
    """What replaces a function of arrays by one that NumPy computes.

    ``function(old, *arrays)``; ``old`` computes what the port did, on NumPy's
    arrays as well.
    """
    def make(old, port):
        def made(*values):
            def same(*arrays):
                return numpy_of(port, old(
                    *(native_of(port, a) for a in arrays)))
            return native_of(port, np.asarray(
                function(same, *(numpy_of(port, v) for v in values))))
        return made
    return make


# Weights

def of_attention(which, leaf="kernel"):
    """Whether a name ends so, of an attention's projection."""
    return lambda name: name.endswith(f"{which}.{leaf}") and (
        "attention" in name or name.count(".") == 1)


def transposed(which):
    """One square kernel of every attention, the other way round."""
    chosen = of_attention(which)
    return weights_by(lambda name, array, config: (
        array.T if chosen(name) else None))


def swapped(first, second):
    """Exchange two projections of every attention."""
    return made_with(lambda config, weights: (
        config, _moved(weights, {first: second, second: first})))


def interleaved(which):
    """Columns of a projection grouped by feature, not by head."""
    chosen = of_attention(which)
    biased = of_attention(which, "bias")

    def change(name, array, config):
        if chosen(name) or biased(name):
            shape = *array.shape[:-1], config.n_heads, config.d_k
            return array.reshape(shape).swapaxes(-1, -2).reshape(array.shape)
        return None
    return weights_by(change)


def output_interleaved(name, array, config):
    """Rows of W_O grouped by feature, not by head."""
    if of_attention("output")(name):
        return array.reshape(config.n_heads, config.d_k, -1).swapaxes(
            0, 1).reshape(array.shape)
    return None


def without(chosen, value=0.0):
    """Arrays whose name is chosen are left at a constant."""
    return weights_by(lambda name, array, config: (
        np.full_like(array, value) if chosen(name) else None))


def rounded_to(chosen, dtype):
    """Arrays that passed through a lower dtype on their way."""
    return weights_by(lambda name, array, config: (
        array.astype(dtype).astype(array.dtype) if chosen(name) else None))


def ends(*words):
    """Whether a name ends in one of these."""
    return lambda name: name.endswith(words)


def _moved(weights, moves):
    """Each projection's arrays taken from another: {projection: other}."""
    found = {}
    for name in weights:
        parts = name.split(".")
        if len(parts) > 1 and parts[-2] in moves:
            parts[-2] = moves[parts[-2]]
        found[name] = weights[".".join(parts)]
    return found


def cycled(config, weights):
    """Q, K and V unpacked from one array in the order K, V, Q."""
    return config, _moved(weights, {
        "query": "key", "key": "value", "value": "query"})


def shared_layers(config, weights):
    """Every layer of a stack given the first one's arrays."""
    found = {}
    for name in weights:
        parts = name.split(".")
        if "layers" in parts:
            parts[parts.index("layers") + 1] = "0"
        found[name] = weights[".".join(parts)]
    return config, found


def without_final_norm(config, weights):
    """The norm that ends each stack, left out."""
    final = ("encoder.norm.", "decoder.norm.")
    return config.replace(final_norm=False), {
        name: array for name, array in weights.items()
        if not name.startswith(final) and not (
            name.startswith("norm.") and any(
                other.startswith("layers.") for other in weights))}


# Norms

def norm_by(cls, function):
    """Replace a norm's call by steps that NumPy computes.

    ``function(x, scale, bias, eps)`` returns {step: array}, "output" last.
    """
    def put(port):
        module = module_of(port, "layer_norm")
        owner = getattr(module, cls)
        call = {"numpy": "forward", "torch": "forward", "keras": "call",
                "jax": "__call__"}.get(port, "__call__")

        def made(self, x):
            scale, bias = (numpy_of(port, _array(getattr(self, name)))
                           for name in ("scale", "bias"))
            steps = function(numpy_of(port, x), scale, bias, self.eps)
            if port == "numpy":
                return steps["output"], steps
            for name, value in steps.items():
                output = tap(self, name, native_of(port, value))
            return output
        return mock.patch.object(owner, call, made)
    return put


def _array(parameter):
    """A parameter's array, whatever it is wrapped in."""
    get = getattr(parameter, "get_value", None)
    return get() if get else parameter


def _norm_steps(x, scale, bias, divide, variance):
    mean = x.mean(-1, keepdims=True)
    centered = x - mean
    variance = variance(x, centered)
    normalized = divide(centered, variance)
    return {"mean": mean, "centered": centered, "variance": variance,
            "normalized": normalized, "output": normalized * scale + bias}


def _biased(x, centered):
    return np.vecdot(centered, centered)[..., None] / x.shape[-1]


def eps_outside(x, scale, bias, eps):
    """centered / (√variance + ε)."""
    return _norm_steps(x, scale, bias, lambda c, v: c / (np.sqrt(v) + eps),
                       _biased)


def unbiased_variance(x, scale, bias, eps):
    """Σ centered² / (D - 1)."""
    return _norm_steps(
        x, scale, bias, lambda c, v: c / np.sqrt(v + eps),
        lambda x, c: np.vecdot(c, c)[..., None] / (x.shape[-1] - 1))


def fast_variance(x, scale, bias, eps):
    """mean(x²) - mean(x)², as nnx.LayerNorm has it by default."""
    return _norm_steps(
        x, scale, bias, lambda c, v: c / np.sqrt(v + eps),
        lambda x, c: np.maximum((x * x).mean(-1, keepdims=True)
                                - x.mean(-1, keepdims=True)**2, 0))


def root_mean_square(x, scale, bias, eps):
    """RMSNorm: the mean is not subtracted."""
    variance = (x * x).mean(-1, keepdims=True)
    normalized = x / np.sqrt(variance + eps)
    return {"mean": x.mean(-1, keepdims=True), "centered": x,
            "variance": variance, "normalized": normalized,
            "output": normalized * scale + bias}


def scale_plus_one(x, scale, bias, eps):
    """normalized · (1 + scale), for weights that are stored so."""
    return _norm_steps(x, 1 + scale, bias,
                       lambda c, v: c / np.sqrt(v + eps), _biased)


def std_eps_inside(x, scale, bias, eps):
    """centered / √(std² + ε), of the unbiased deviation."""
    return _std_steps(x, scale, bias,
                      lambda c, std: c / np.sqrt(std * std + eps), 1)


def std_biased(x, scale, bias, eps):
    """The biased deviation, Σ centered² / D, and ε outside."""
    return _std_steps(x, scale, bias, lambda c, std: c / (std + eps), 0)


def _std_steps(x, scale, bias, divide, missing):
    mean = x.mean(-1, keepdims=True)
    centered = x - mean
    std = np.sqrt(np.vecdot(centered, centered)[..., None]
                  / (x.shape[-1] - missing))
    normalized = divide(centered, std)
    return {"mean": mean, "centered": centered, "std": std,
            "normalized": normalized, "output": normalized * scale + bias}


def eps_is(cls, eps):
    """Another ε in a norm."""
    def change(self):
        self.eps = eps
    return after_init("layer_norm", cls, change)


# Attention

class Math:
    """``math`` with another root."""

    pi = math.pi

    def __init__(self, sqrt):
        self.sqrt = sqrt


def root_is(file, root):
    """Another root wherever a file takes one."""
    return replaced(file, "math", lambda old, port: Math(root))


def softmaxed(scores):
    """The softmax of scores over the last axis."""
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def masked(scores, mask):
    """The softmax over what a mask allows, 0 elsewhere."""
    lowest = np.finfo(scores.dtype).min
    return np.where(mask, softmaxed(np.where(mask, scores, lowest)), 0)


def weighed_by(function):
    """Replace the masked softmax by ``function(scores, mask)``."""
    def put(port):
        if port != "keras":
            return replaced("attention", "masked_softmax", by_numpy(
                lambda same, scores, mask: function(scores, mask)))(port)

        def made(self, scores, mask):
            scores = tap(self, "scores", scores)
            weights = function(numpy_of(port, scores), np.broadcast_to(
                numpy_of(port, mask), scores.shape))
            return self.weights_dropout(tap(
                self, "weights", native_of(port, weights)))
        return mock.patch.object(
            module_of(port, "attention").MultiHeadAttention,
            "_masked_softmax", made)
    return put


def evenly_where_hidden(scores, mask):
    """A query that may see nothing spreads its weight evenly (-1e9)."""
    return softmaxed(np.where(mask, scores, -1e9))


def added_where_hidden(scores, mask):
    """-1e9 is added, so that hidden scores keep their order."""
    return softmaxed(np.where(mask, scores, scores - 1e9))


def too_small_a_constant(scores, mask):
    """-10 is added: what is hidden still counts a little."""
    return softmaxed(np.where(mask, scores, scores - 10.0))


def masked_after(scores, mask):
    """Weights are hidden after the softmax, and do not add up to 1."""
    return np.where(mask, softmaxed(scores), 0)


def infinitely_low(scores, mask):
    """-∞ where hidden; rows that come out as NaN are set to 0."""
    with np.errstate(invalid="ignore"):
        weights = softmaxed(np.where(mask, scores, -np.inf))
    return np.nan_to_num(weights, nan=0.0)


def in_two_halves(scores, mask):
    """Softmax as fused kernels have it: half the keys, then the others."""
    lowest = np.finfo(scores.dtype).min
    scores = np.where(mask, scores, lowest)
    half = max(1, scores.shape[-1] // 2)
    highest = scores[..., :half].max(-1, keepdims=True)
    sums = np.exp(scores[..., :half] - highest).sum(-1, keepdims=True)
    new = np.maximum(highest, scores.max(-1, keepdims=True))
    rest = np.exp(scores[..., half:] - new).sum(-1, keepdims=True)
    sums = sums * np.exp(highest - new) + rest
    return np.where(mask, np.exp(scores - new) / sums, 0)


def turned_round(scores, mask):
    """True hides."""
    return masked(scores, ~np.broadcast_to(mask, scores.shape))


def unmasked(scores, mask):
    """No mask at all."""
    return softmaxed(scores)


def over_queries(scores, mask):
    """The softmax over queries, not over keys."""
    return masked(scores.swapaxes(-1, -2), np.broadcast_to(
        mask, scores.shape).swapaxes(-1, -2)).swapaxes(-1, -2)


def single_precision(scores, mask):
    """The softmax in float32."""
    return masked(scores.astype(np.float32), mask).astype(scores.dtype)


def half_precision(scores, mask):
    """The softmax in bfloat16."""
    return masked(scores.astype(ml_dtypes.bfloat16).astype(np.float32),
                  mask).astype(ml_dtypes.bfloat16).astype(scores.dtype)


def some_dropped(scores, mask):
    """Dropout left on: a tenth of the weights is 0, the rest is larger."""
    weights = masked(scores, mask)
    keep = (np.arange(weights.size) * 7919 % 10 != 0).reshape(weights.shape)
    return weights * keep / 0.9


# Masks, positions, embeddings, the network, the output

def seen_from(shift):
    """A causal mask that is off by some positions."""
    def make(old, port):
        def made(length):
            array = np.tril(np.ones((length, length), bool), shift)
            return native_of(port, array[None, None])
        return made
    return replaced("engine", "causal_mask", make)


def padding_by(function):
    """Another padding mask, from tokens."""
    return replaced("engine", "padding_mask", lambda old, port: (
        lambda tokens, pad_id: native_of(port, np.ascontiguousarray(
            function(numpy_of(port, tokens), pad_id)[:, None, None, :]))))


def positions_by(function):
    """Another table of positions: ``function(position, d_model)``."""
    def put(port):
        module = module_of(port, "positional")

        def table(max_length, d_model):
            array = function(
                np.arange(max_length, dtype=np.float64)[:, None], d_model)
            return array if port in ("numpy", "keras", "jax") else (
                native_of(port, array))
        return mock.patch.dict(module.TABLES, {"interleaved": table})
    return put


def _table(angle, first=np.sin, second=np.cos):
    both = np.stack([first(angle), second(angle)], axis=-1)
    return both.reshape(len(angle), -1)


def _pairs(d_model):
    return np.arange(0, d_model, 2, dtype=np.float64)


def all_paired(position, d_model):
    """The exponent by the feature's own number, not its pair's."""
    feature = np.arange(d_model, dtype=np.float64)
    angle = position / 10000.0**(feature / d_model)
    return np.where(np.arange(d_model) % 2 == 0, np.sin(angle), np.cos(angle))


def twice_the_exponent(position, d_model):
    """10000^(2 · 2i / d), from taking i for the feature's number."""
    return _table(position / 10000.0**(2 * _pairs(d_model) / d_model))


def in_tensor2tensor(position, d_model):
    """Exponents i / (d/2 - 1), all sines first."""
    half = d_model // 2
    angle = position / 10000.0**(np.arange(half) / (half - 1))
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)


def in_float32(position, d_model):
    """Angles in float32."""
    exponent = (-np.log(10000.0) * _pairs(d_model) / d_model)
    divisor = np.exp(exponent.astype(np.float32))
    return _table(position.astype(np.float32) * divisor).astype(np.float64)


def activated_by(function, word="relu"):
    """Another activation for a word of ACTIVATIONS."""
    def put(port):
        table = module_of(port, "feed_forward").ACTIVATIONS
        return mock.patch.dict(table, {
            word: by_numpy(lambda same, x: function(x))(table[word], port)})
    return put


def gelu_by_tanh(x):
    """The approximation, which is jax.nn.gelu's default."""
    return 0.5 * x * (1 + np.tanh(
        math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu_exactly(x):
    """x Φ(x)."""
    z = np.vectorize(math.erfc, otypes="d")(-x / math.sqrt(2))
    return x * z / 2


def leaky(x):
    """0.01 x below 0."""
    return np.where(x > 0, x, 0.01 * x)


def silu(x):
    """x σ(x)."""
    return x / (1 + np.exp(-x))


def loss_by(function):
    """Another loss: ``function(old, logits, labels, pad_id, ε, word)``."""
    def make(old, port):
        def made(logits, labels, pad_id, epsilon, word):
            found = function(
                lambda *given: numpy_of(port, old(
                    native_of(port, given[0]), native_of(port, given[1]),
                    *given[2:])),
                numpy_of(port, logits), numpy_of(port, labels), pad_id,
                epsilon, word)
            return native_of(port, np.asarray(found, np.float64))
        return made
    return replaced("engine", "cross_entropy", make)


def over_padding(old, logits, labels, pad_id, epsilon, word):
    """Labels that are padding count as any other."""
    return old(logits, labels, -1, epsilon, word if word != "kl"
               else "uniform")


def over_all_places(old, logits, labels, pad_id, epsilon, word):
    """Summed over what is kept, divided by all places."""
    kept = (labels != pad_id).mean()
    return old(logits, labels, pad_id, epsilon, word) * kept


def summed(old, logits, labels, pad_id, epsilon, word):
    """The sum, not the mean."""
    return (old(logits, labels, pad_id, epsilon, word)
            * (labels != pad_id).sum())


def by_row(old, logits, labels, pad_id, epsilon, word):
    """The mean of each row's mean."""
    return np.mean([old(logits[i:i + 1], labels[i:i + 1], pad_id, epsilon,
                        word) for i in range(len(labels))])


def smoothed_as(other):
    """The convention of another system."""
    return lambda old, logits, labels, pad_id, epsilon, word: old(
        logits, labels, pad_id, epsilon, other)


def bases_of_two(old, logits, labels, pad_id, epsilon, word):
    """Bits, not nats."""
    return old(logits, labels, pad_id, epsilon, word) / math.log(2)


def _eps_faults():
    for eps in COMMON_EPS:
        for cls, preset in (("LayerNorm", "vaswani2017_base"),
                            ("StdLayerNorm", "complete")):
            kind = {"LayerNorm": "layer norm",
                    "StdLayerNorm": "deviation norm"}[cls]
            if eps != 1e-6:
                yield Fault(f"{kind}'s ε is {eps:g}", "norm",
                            eps_is(cls, eps), preset, "norm", "normalized")


def _attention_faults():
    complete = {"preset": "complete", "topic": "attention"}
    alone = "single_head_attention"
    for which in ("query", "key", "value"):
        yield Fault(f"{which} kernel transposed", put=transposed(which),
                    case=alone, step=which, **complete)
    yield Fault("output kernel transposed", put=transposed("output"),
                case="self_attention", step="output", **complete)
    for first, second in (("query", "key"), ("query", "value"),
                          ("key", "value")):
        yield Fault(f"{first} and {second} swapped",
                    put=swapped(first, second), case=alone,
                    step=first, **complete)
    yield Fault("query, key and value packed in another order",
                put=made_with(cycled), case=alone, step="query", **complete)
    for which in ("query", "key", "value"):
        yield Fault(f"{which}'s heads grouped by feature",
                    put=interleaved(which), case=alone, step=which,
                    **complete)
    yield Fault("output's heads grouped by feature",
                put=weights_by(output_interleaved), case="self_attention",
                step="output", **complete)
    for which in ("query", "value", "output"):
        yield Fault(f"{which}'s bias missing",
                    put=without(of_attention(which, "bias")),
                    case="self_attention", step=which, **complete)
    yield Fault("key's bias missing", put=without(of_attention("key", "bias")),
                case="self_attention", step="key", **complete)
    yield Fault("scores over √d_model", put=root_is(
        "attention", lambda x: math.sqrt(x * 6) if x < 48 else math.sqrt(x)),
        case="self_attention", step="scores", **complete)
    yield Fault("scores not divided", put=root_is("attention", lambda x: 1.0),
                case=alone, step="scores", **complete)
    yield Fault("scores over d_k", put=root_is("attention", float),
                case=alone, step="scores", **complete)
    for name, function, case in (
            ("softmax over queries", over_queries, "self_attention"),
            ("softmax in float32", single_precision, "self_attention"),
            ("softmax in bfloat16", half_precision, "self_attention"),
            ("mask's polarity turned round in attention", turned_round,
             "self_attention"),
            ("attention without its mask", unmasked, "self_attention"),
            ("weights masked after the softmax", masked_after,
             "self_attention"),
            ("a hidden score is only 10 lower", too_small_a_constant,
             "self_attention"),
            ("a query that sees nothing spreads its weight evenly",
             evenly_where_hidden, "self_attention"),
            ("a query that sees nothing keeps its scores' order",
             added_where_hidden, "self_attention"),
            ("dropout of the weights left on", some_dropped,
             "self_attention")):
        yield Fault(name, put=weighed_by(function), case=case,
                    step="weights", **complete)


def _norm_faults():
    base = {"preset": "vaswani2017_base", "topic": "norm", "case": "norm"}
    std = {"preset": "complete", "topic": "norm", "case": "norm"}
    yield Fault("layer norm's ε outside the root", put=norm_by(
        "LayerNorm", eps_outside), step="normalized", **base)
    yield Fault("layer norm's variance unbiased", put=norm_by(
        "LayerNorm", unbiased_variance), step="variance", **base)
    yield Fault("layer norm's variance as mean(x²) - mean(x)²", put=norm_by(
        "LayerNorm", fast_variance), step="variance",
        **base | {"case": "norm, mean 100 deviations"})
    yield Fault("RMS norm, not layer norm", put=norm_by(
        "LayerNorm", root_mean_square), step="centered", **base)
    yield Fault("a norm's scale is stored less 1", put=norm_by(
        "LayerNorm", scale_plus_one), step="output", **base)
    yield Fault("deviation norm's ε inside the root", put=norm_by(
        "StdLayerNorm", std_eps_inside), step="normalized", **std)
    yield Fault("deviation norm's deviation biased", put=norm_by(
        "StdLayerNorm", std_biased), step="std", **std)
    yield Fault("layer norm, not deviation norm", put=worded(
        "layer_norm", "NORMS", "std", "layer"), step="variance", **std)
    yield Fault("norms' scale left at 1", put=without(
        ends("norm.scale"), 1.0), step="output", **base)
    yield Fault("norms' bias left at 0", put=without(
        ends("norm.bias")), step="output", **base)
    yield Fault("no final norm", "norm", made_with(without_final_norm),
                "lesson", "encoder", "output")
    yield Fault("final norm's ε is d_model", "norm", all_of(*(
        after_init(file, cls, lambda stack: _final_eps(stack, 48.0))
        for file, cls in (("encoder", "Encoder"), ("decoder", "Decoder")))),
        "lesson", "encoder", "output")


def _final_eps(stack, eps):
    stack.norm.eps = eps


def _other_faults():
    complete = {"preset": "complete"}
    yield Fault("causal mask off by one, to the future", "masks",
                seen_from(1), case="masks", step="target_mask", **complete)
    yield Fault("causal mask off by one, to the past", "masks",
                seen_from(-1), case="masks", step="target_mask", **complete)
    yield Fault("no causal mask", "masks", seen_from(10**6), case="masks",
                step="target_mask", **complete)
    yield Fault("padding mask's polarity turned round", "masks", padding_by(
        lambda tokens, pad: tokens == pad), case="masks",
        step="source_mask", **complete)
    yield Fault("no padding mask", "masks", padding_by(
        lambda tokens, pad: np.ones(tokens.shape, bool)), case="masks",
        step="source_mask", **complete)
    yield Fault("padding mask for another id", "masks", padding_by(
        lambda tokens, pad: tokens != pad + 1), case="masks",
        step="source_mask", **complete)
    yield Fault("embedding not scaled", "embedding",
                root_is("embedding", lambda x: 1.0), case="token_embedding",
                step="embedded", **complete)
    yield Fault("embedding scaled by d_model", "embedding",
                root_is("embedding", float), case="token_embedding",
                step="embedded", **complete)
    yield Fault("padding's embedding is zero", "embedding", weights_by(
        lambda name, array, config: _padding_zeroed(name, array, config)),
        case="token_embedding", step="embedded", **complete)
    for name, function in (
            ("positions begin at 1",
             lambda p, d: _table((p + 1) / 10000.0**(_pairs(d) / d))),
            ("cosine before sine", lambda p, d: _table(
                p / 10000.0**(_pairs(d) / d), np.cos, np.sin)),
            ("positions divided by 1000^…",
             lambda p, d: _table(p / 1000.0**(_pairs(d) / d))),
            ("each feature has a frequency of its own", all_paired),
            ("positions' exponent doubled", twice_the_exponent),
            ("positions as in Tensor2Tensor", in_tensor2tensor),
            ("positions computed in float32", in_float32)):
        yield Fault(name, "positions", positions_by(function),
                    case="positional_encoding", step="positions", **complete)
    yield Fault("positions in halves", "positions", worded(
        "positional", "TABLES", "interleaved", "halves"),
        case="positional_encoding", step="positions", **complete)
    yield Fault("no positions", "positions", positions_by(
        lambda p, d: np.zeros((len(p), d))), case="positional_encoding",
        step="positions", **complete)
    for name, function in (("gelu, not relu", gelu_exactly),
                           ("gelu by tanh, not relu", gelu_by_tanh),
                           ("silu, not relu", silu),
                           ("leaky relu, not relu", leaky),
                           ("no activation", lambda x: x)):
        yield Fault(name, "feed-forward", activated_by(function),
                    case="feed_forward", step="activated", **complete)
    yield Fault("gelu by tanh, not exact", "feed-forward",
                activated_by(gelu_by_tanh, "gelu"), case="feed_forward",
                step="activated", changes={"activation": "gelu"}, **complete)
    for which, step in (("inner", "inner"), ("outer", "output")):
        yield Fault(f"{which} bias of the network missing", "feed-forward",
                    without(ends(f"{which}.bias")), case="feed_forward",
                    step=step, **complete)
    yield Fault("pre-norm, not post-norm", "residual", worded(
        "residual", "RESIDUALS", "post", "pre"), case="residual",
        step="norm.mean", **complete)
    yield Fault("post-norm, not pre-norm", "residual", worded(
        "residual", "RESIDUALS", "pre", "post"), "lesson", "residual",
        "summed")
    yield Fault("every layer has the first one's weights", "layers",
                made_with(shared_layers), case="encoder", step="output",
                **complete)
    yield Fault("logits, not log-probabilities", "output", worded(
        "projection", "OUTPUTS", "log_probs", "logits"), "lesson", "project",
        "output")
    yield Fault("log-probabilities, not logits", "output", worded(
        "projection", "OUTPUTS", "logits", "log_softmax"), case="project",
        step="output", **complete)
    yield Fault("projection's bias missing", "output", without(
        lambda name: name in ("projection.bias", "bias")), case="projection",
        step="logits", **complete)
    for dtype in (np.float32, ml_dtypes.bfloat16):
        title = np.dtype(dtype).name
        yield Fault(f"weights that passed through {title}", "dtype",
                    rounded_to(lambda name: True, dtype),
                    case="token_embedding", step="embedded", **complete)
        yield Fault(f"value's kernel passed through {title}", "dtype",
                    rounded_to(of_attention("value"), dtype),
                    case="single_head_attention", step="value", **complete)


def _padding_zeroed(name, array, config):
    if name.endswith("table") and array.ndim == 2:
        array = array.copy()
        array[config.pad_id] = 0
        return array
    return None


def _loss_faults():
    where = {"preset": "complete", "topic": "loss", "case": "loss",
             "step": "loss"}
    for name, function in (("loss over padding", over_padding),
                           ("loss divided by all places", over_all_places),
                           ("loss summed, not averaged", summed),
                           ("loss averaged row by row", by_row),
                           ("loss in bits", bases_of_two)):
        yield Fault(name, put=loss_by(function), **where)
    smoothed = where | {"case": "loss, label smoothing 0.1, uniform"}
    for other in ("others", "kl"):
        yield Fault(f"label smoothing by {other}, not uniform",
                    put=loss_by(smoothed_as(other)), **smoothed)


def updated_by(function, cls="Adam"):
    """Another update: ``function(self, w, g, m, v, rate, c1, c2)``."""
    return replaced("optimizer", f"{cls}.update", lambda old, port: function)


def _moments(self, g, m, v):
    return (self.beta1 * m + (1 - self.beta1) * g,
            self.beta2 * v + (1 - self.beta2) * (g * g))


def adam_of_keras(self, w, g, m, v, rate, c1, c2):
    """ε beside √v, before the bias correction."""
    m, v = _moments(self, g, m, v)
    return w - rate * (c2**0.5 / c1) * m / (v**0.5 + self.eps), m, v


def adam_eps_inside(self, w, g, m, v, rate, c1, c2):
    """ε under the root."""
    m, v = _moments(self, g, m, v)
    return w - rate * (m / c1) / (v / c2 + self.eps)**0.5, m, v


def adam_uncorrected(self, w, g, m, v, rate, c1, c2):
    """No bias correction."""
    m, v = _moments(self, g, m, v)
    return w - rate * m / (v**0.5 + self.eps), m, v


def adam(self, w, g, m, v, rate, c1, c2):
    """As it should be, for what is changed before it."""
    m, v = _moments(self, g, m, v)
    return w - rate * (m / c1) / ((v / c2)**0.5 + self.eps), m, v


def decay_in_gradient(self, w, g, m, v, rate, c1, c2):
    """λ w added to the gradient, as torch.optim.Adam's weight_decay."""
    return adam(self, w, g + self.training.weight_decay * w, m, v, rate, c1,
                c2)


def decay_without_rate(self, w, g, m, v, rate, c1, c2):
    """w (1 - λ), whatever the rate."""
    return adam(self, w * (1 - self.training.weight_decay), g, m, v, rate,
                c1, c2)


def decay_after(self, w, g, m, v, rate, c1, c2):
    """The new weight shrunk, not the old one."""
    w, m, v = adam(self, w, g, m, v, rate, c1, c2)
    return w * (1 - rate * self.training.weight_decay), m, v


def _betas_swapped(self):
    self.beta1, self.beta2 = self.beta2, self.beta1


def clipped_by(function):
    """Another clipping: ``function(gradients, norms, limit)`` on arrays."""
    def make(old, port):
        def made(gradients, limit):
            same, norm = old(gradients, 0.0)
            arrays = [numpy_of(port, g) for g in gradients]
            found = function(arrays, float(numpy_of(port, norm)), limit)
            return [native_of(port, g) for g in found], norm
        return made
    return replaced("engine", "clip_by_global_norm", make)


def _scaled(arrays, norm, limit, added=0.0):
    if limit and norm > limit:
        return [g * (limit / (norm + added)) for g in arrays]
    return arrays


def _each_alone(arrays, norm, limit):
    return [_scaled([g], np.sqrt((g * g).sum()), limit)[0] for g in arrays]


def schedule_from(shift):
    """A schedule that counts steps from elsewhere."""
    def put(port):
        table = module_of(port, "optimizer").SCHEDULES
        old = table["inverse_sqrt"]
        return mock.patch.dict(table, {
            "inverse_sqrt": lambda training, d_model, step: old(
                training, d_model, step + shift)})
    return put


def _optimizer_faults():
    adam = {"preset": "complete", "topic": "optimiser", "case": "Adam"}
    clipped = adam | {"case": "Adam, warming up, clipped"}
    decayed = adam | {"case": "AdamW"}
    for name, function in (
            ("Adam's ε before the correction, as Keras has it",
             adam_of_keras),
            ("Adam's ε inside the root", adam_eps_inside),
            ("Adam without bias correction", adam_uncorrected)):
        yield Fault(name, put=updated_by(function), step="weight 0, step 1",
                    **adam)
    yield Fault("Adam's ε is 1e-8", put=after_init(
        "optimizer", "Adam", lambda self: setattr(self, "eps", 1e-8)),
        step="weight 0, step 1", **adam)
    yield Fault("Adam's β₂ is 0.999", put=after_init(
        "optimizer", "Adam", lambda self: setattr(self, "beta2", 0.999)),
        step="v 0, step 1", **adam)
    yield Fault("Adam's β₁ and β₂ swapped", put=after_init(
        "optimizer", "Adam", _betas_swapped), step="m 0, step 1", **adam)
    for name, function, step in (
            ("weight decay added to the gradient", decay_in_gradient,
             "m 0, step 1"),
            ("weight decay not times the rate", decay_without_rate,
             "weight 0, step 1"),
            ("weight decay after the step", decay_after,
             "weight 0, step 1")):
        yield Fault(name, put=updated_by(function, "AdamW"), step=step,
                    **decayed)
    yield Fault("schedule one step ahead", put=schedule_from(1),
                step="rate, step 1", **clipped)
    yield Fault("clipping adds 1e-6 to the norm, as torch does",
                put=clipped_by(lambda g, norm, limit: _scaled(
                    g, norm, limit, 1e-6)), step="m 0, step 1", **clipped)
    yield Fault("each weight clipped by its own norm",
                put=clipped_by(_each_alone), step="m 0, step 1", **clipped)
    yield Fault("no clipping", put=clipped_by(
        lambda g, norm, limit: g), step="m 0, step 1", **clipped)


def _equivalents():
    attention = {"preset": "complete", "topic": "attention",
                 "case": "self_attention", "step": "weights"}
    yield Fault("a hidden score is -∞, and rows of NaN are set to 0",
                put=weighed_by(infinitely_low), equivalent="exp(-∞) and the "
                "exponential of the lowest number less anything are both 0, "
                "and a query that sees nothing has weights 0 either way",
                **attention)
    yield Fault("softmax over half of the keys, then the others",
                put=weighed_by(in_two_halves), equivalent="sums of "
                "exponentials are shifted to the new maximum and added, which "
                "is the same sum", **attention)
    yield Fault("the loss normalises log-probabilities once more", "loss",
                loss_by(lambda old, logits, *more: old(
                    logits - np.log(np.exp(logits - logits.max()).sum(
                        -1, keepdims=True)) - logits.max(), *more)),
                "complete", "loss", "loss", equivalent="log-softmax of a "
                "log-softmax is itself: the probabilities add up to 1, whose "
                "log is 0")


#: What looks like a fault and is none.
EQUIVALENTS = tuple(_equivalents())

#: Every fault, in the order in which they are tried.
FAULTS = (*_eps_faults(), *_norm_faults(), *_attention_faults(),
          *_other_faults(), *_loss_faults(), *_optimizer_faults())
