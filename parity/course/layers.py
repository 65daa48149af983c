"""The exercises of lessons 6 and 7: norms, and a whole model."""

import functools
import math

import numpy as np

from transformer_contract.schema import schema
from parity.ports import module_of
from parity.causes.formulas import norm
from parity.check import cases
from parity.check.cases import values
from parity.course.exercise import Exercise

softmax = module_of("numpy", "attention").softmax
gelu = module_of("numpy", "dialects.feed_forward").gelu


def to_normalise():
    """(x [B T D], scale [D], bias [D], ε); some rows are small, some far off.
    """
    for number, (d, eps) in enumerate(((4, 1e-5), (6, 1e-3), (12, 1e-6))):
        x = values(f"exercise 6.1 {number}", 2, 3, d)
        x[0] *= 0.02
        x[1] += 5
        yield (x, 1 + values(f"exercise 6.1 scale {number}", d, scale=0.3),
               values(f"exercise 6.1 bias {number}", d), eps)


def normalised(settings=None, at_eps=None):
    """A layer norm with some settings changed."""
    def layer_norm(x, scale, bias, eps):
        return norm.steps(x, scale, bias, norm.LAYER | {
            "epsilon": eps if at_eps is None else at_eps}
            | (settings or {}))["output"]
    return layer_norm


#: What exercise 6.2 calls each norm, and its settings.
KINDS = {"layer": norm.LAYER, "std": norm.DEVIATION, "rms": norm.RMS}


def norms_at_work():
    """(x, y): inputs and outputs of norms of each kind, without a scale.

    Some inputs are as small as √ε, so that no norm's deviation is near 1, and
    some of these have almost no mean.
    """
    for number in range(14):
        kind = ("std", "rms", "layer")[number % 3]
        x = 0.3 + values(f"exercise 6.2 {number}", 4, 3 + number % 7,
                         scale=0.5)
        x *= 1e-3 if number > 6 else 1
        x -= 0.999 * x.mean(-1, keepdims=True) * (number > 10)
        yield x, norm.steps(x, 1.0, 0.0, KINDS[kind] | {
            "epsilon": 1e-6, "scale": "ignored", "bias": "ignored"})["output"]


def kind_of(x, y, kinds=tuple(KINDS)):
    """The name of the norm that made y of x."""
    return next((kind for kind in kinds if np.allclose(norm.steps(
        x, 1.0, 0.0, KINDS[kind] | {"epsilon": 1e-6, "scale": "ignored",
                                    "bias": "ignored"})["output"],
        y, rtol=1e-9, atol=1e-12)), "layer")


def with_some_epsilon():
    """(x, y): y is a layer norm of x with an unknown ε."""
    for number, eps in enumerate((1e-5, 1e-3, 1e-6, 0.0123)):
        x = values(f"exercise 6.3 {number}", 5, 8, scale=0.02)
        yield x, (x - x.mean(-1, keepdims=True)) / np.sqrt(
            x.var(-1, keepdims=True) + eps)


def epsilon_of(x, y, less=0):
    """The ε of a layer norm, from what it made of x."""
    before, after = x.var(-1, ddof=less), y.var(-1, ddof=less)
    return float(np.mean(before / after - before))


def outside(x, y):
    """ε as if it stood outside the root."""
    return float(np.mean(x.std(-1) / y.std(-1) - x.std(-1)))


#: (D, heads, F) of the calls of exercises 7.1 and 7.3.
SIZES = (6, 2, 10), (12, 3, 7)


def layer_weights(number, decoder=False):
    """The weights of a layer, by name."""
    d, _, f = SIZES[number]
    kernels = {"inner": (d, f), "outer": (f, d)} | {
        f"{name}_{part}": (d, d) for name in ("self", "cross")[:1 + decoder]
        for part in ("query", "key", "value", "output")}
    made = {}
    for name, shape in kernels.items():
        made[f"{name}.kernel"] = 0.5 * values(
            f"exercise 7 {number} {name}", *shape)
        made[f"{name}.bias"] = 0.3 * values(
            f"exercise 7 {number} {name} b", shape[1])
    for name in ("norm_1", "norm_2", "norm_3")[:2 + decoder]:
        made[f"{name}.scale"] = 1 + 0.5 * values(
            f"exercise 7 {number} {name}", d)
        made[f"{name}.bias"] = 0.3 * values(
            f"exercise 7 {number} {name} b", d)
    return made


def to_encode():
    """(x [B T D], mask [B 1 1 T], weights, heads)."""
    for number, length in enumerate((3, 5)):
        mask = np.ones((2, 1, 1, length), bool)
        mask[1, ..., -1] = False
        d, heads, _ = SIZES[number]
        yield (values(f"exercise 7.1 {number}", 2, length, d), mask,
               layer_weights(number), heads)


def linear(x, w, name):
    """x W + b."""
    return x @ w[f"{name}.kernel"] + w[f"{name}.bias"]


def normal(x, w, name):
    """A layer norm, ε 1e-5."""
    return normalised()(x, w[f"{name}.scale"], w[f"{name}.bias"], 1e-5)


def attend(x, memory, mask, w, name, heads, width=None):
    """Multi-head attention."""
    def split(y):
        return y.reshape(*y.shape[:2], heads, -1).swapaxes(1, 2)
    query, key, value = (split(linear(of, w, f"{name}_{part}")) for of, part
                         in ((x, "query"), (memory, "key"), (memory, "value")))
    scores = query @ key.mT / math.sqrt(width or query.shape[-1])
    weights = softmax(np.where(mask, scores, -1e30))
    context = (weights @ value).swapaxes(1, 2).reshape(*x.shape)
    return linear(context, w, f"{name}_output")


def relu(x):
    """max(0, x)."""
    return np.maximum(x, 0)


def encoder_layer(x, mask, w, heads, activation=relu, width=None,
                  residual=True, pre=False):
    """An encoder layer, or one with a mistake."""
    def around(x, f, name):
        if pre:
            return x + f(normal(x, w, name))
        return normal(residual * x + f(x), w, name)
    x = around(x, lambda y: attend(y, y, mask, w, "self", heads, width),
               "norm_1")
    return around(x, lambda y: linear(activation(linear(
        y, w, "inner")), w, "outer"), "norm_2")


def models():
    """(vocabulary, d_model, d_ff, layers in each stack)."""
    return [(50, 8, 32, 1), (1000, 128, 512, 2), (37000, 512, 2048, 6)]


def parameters(vocab, d_model, d_ff, layers):
    """How many weights the paper's model has, each embedding by itself."""
    config = cases.test_size("vaswani2017_base").replace(
        source_vocab=vocab, target_vocab=vocab, d_model=d_model, n_heads=2,
        d_ff=d_ff, n_encoder_layers=layers, n_decoder_layers=layers,
        tied="none", output_bias=True)
    return sum(math.prod(shape) for shape in schema(config).values())


def without_biases(vocab, d, f, layers):
    """Only kernels, tables and norms are counted."""
    return 3 * vocab * d + layers * (12 * d * d + 4 * d * f + 10 * d)


def to_decode():
    """(x [B T D], memory [B S D], source mask, target mask, w, heads)."""
    for number, (t, s) in enumerate(((3, 4), (5, 2))):
        source = np.ones((2, 1, 1, s), bool)
        source[1, ..., -1] = False
        d, heads, _ = SIZES[number]
        yield (values(f"exercise 7.3 x {number}", 2, t, d),
               values(f"exercise 7.3 m {number}", 2, s, d), source,
               np.tri(t, dtype=bool)[None, None], layer_weights(number, True),
               heads)


def decoder_layer(x, memory, source_mask, target_mask, w, heads, mistakes=()):
    """A decoder layer, or one with the mistakes of exercise 7.3."""
    own = x if "residual" not in mistakes else 0 * x
    x = normal(own + attend(x, x, target_mask, w, "self", heads), w, "norm_1")
    names = ("norm_3", "norm_2") if "norms" in mistakes else (
        "norm_2", "norm_3")
    asked = normal(memory, w, names[0]) if "memory" in mistakes else memory
    x = normal(x + attend(x, asked, source_mask, w, "cross", heads), w,
               names[0])
    inner = linear(x, w, "inner")
    return normal(x + linear(relu(inner), w, "outer"), w, names[1])


def mistaken(*mistakes):
    """The decoder layer with some mistakes."""
    return functools.partial(decoder_layer, mistakes=mistakes)


EXERCISES = (
    Exercise(
        "6.1", "layer_norm", lambda: list(to_normalise()), normalised(),
        {"layer norm's ε outside the root": normalised(
            {"epsilon's place": "outside the root"}),
         "layer norm's variance unbiased": normalised(
             {"variance": "over D - 1"}),
         "deviation norm, not layer norm": normalised(norm.DEVIATION),
         "RMS norm, not layer norm": normalised({"mean": "ignored"}),
         "a norm over positions too": normalised({"axes": "last two"}),
         "norms' scale left at 1": normalised({"scale": "ignored"}),
         "norms' bias left at 0": normalised({"bias": "ignored"}),
         "layer norm's ε is 0": normalised(at_eps=0.0)}, limit=1e-11),
    Exercise(
        "6.2", "norm_of", lambda: list(norms_at_work()), kind_of,
        {"every norm is taken for a layer norm": lambda x, y: "layer",
         "a deviation norm is never recognised": lambda x, y: kind_of(
             x, y, ("layer", "rms"))}),
    Exercise(
        "6.3", "epsilon", lambda: list(with_some_epsilon()), epsilon_of,
        {"layer norm's variance unbiased": functools.partial(
            epsilon_of, less=1),
         "layer norm's ε outside the root": outside}, limit=1e-6),
    Exercise(
        "7.1", "encoder_layer", lambda: list(to_encode()), encoder_layer,
        {"pre-norm, not post-norm": functools.partial(
            encoder_layer, pre=True),
         "no residual connection": functools.partial(
             encoder_layer, residual=False),
         "scores over √d_model": lambda x, mask, w, heads: encoder_layer(
             x, mask, w, heads, width=x.shape[-1]),
         "scores not divided": functools.partial(encoder_layer, width=1),
         "no activation": functools.partial(
             encoder_layer, activation=lambda x: x),
         "gelu, not relu": functools.partial(encoder_layer, activation=gelu),
         "attention without its mask": lambda x, mask, w, heads: (
             encoder_layer(x, np.ones_like(mask), w, heads))}, limit=1e-11),
    Exercise(
        "7.2", "parameters", models, parameters,
        {"biases are not counted": without_biases,
         "a decoder layer has one attention, where it should have two":
             lambda v, d, f, n: parameters(v, d, f, n) - n * (
                 4 * d * d + 4 * d),
         "the norms are not counted": lambda v, d, f, n: parameters(
             v, d, f, n) - n * 10 * d,
         "a single table of embeddings is counted": lambda v, d, f, n: (
             parameters(v, d, f, n) - v * d)}),
    Exercise(
        "7.3", "decoder_layer", lambda: list(to_decode()), decoder_layer,
        {"nothing is repaired yet": mistaken("residual", "norms", "memory"),
         "the residual around self-attention is missing still":
             mistaken("residual"),
         "two norms are exchanged still": mistaken("norms"),
         "the memory is normalised before it is attended to still":
             mistaken("memory")}, limit=1e-11),
)
