"""What frameworks do differently by default, each shown by running them.

A row of the registry asks one question of several answerers, such as which
epsilon a layer norm adds. An answer is a word or a number that was found by
running the framework, never copied from its manual; what is recorded beside it
is what the versions in ``constraints.txt`` answer. So a release that changes a
default shows as a changed row.

Some rows also measure how far outputs part. Some of those gaps are far above
what float32 rounds to; others stay below HIDDEN there, and a comparison in
float32 alone would pass over them.

A framework is imported inside an answer and nowhere else. One that is not
installed leaves its answers unchecked, and the others stand.
"""

import ast
import dataclasses
import functools
import importlib
import importlib.metadata
import importlib.util
import math
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping

import numpy as np

from contract.errors import InputError, one_of
from parity import ports

RECORDED, CHANGED, UNCHECKED = "as recorded", "changed", "not checked"

#: A relative gap that a comparison in float32 may take for rounding.
HIDDEN = 1e-5

#: The first word of an answerer -> the modules that it needs.
NEEDS = {
    "numpy": (),
    "reference": (),
    "torch": ("torch",),
    "keras": ("keras", "tensorflow"),
    "tensorflow": ("tensorflow",),
    "jax": ("jax",),
    "flax": ("jax", "flax"),
    "optax": ("jax", "optax"),
    "onnx": ("onnx",),
    "tokenizers": ("tokenizers",),
}

#: Those that need nothing beside NumPy, and so say nothing of a framework.
OURS = ("numpy", "reference")

TOPICS = ("normalisation", "activation", "attention", "layout", "embedding",
          "initialisation", "dropout", "loss", "optimiser", "precision",
          "decoding")

#: What the registry leaves out, and why.
LEFT_OUT = {
    "TF32 products and convolutions": "a GPU has to compute them; the row "
    "process_precision reads the switches",
    "bfloat16 passes of a float32 product": "only a TPU has them",
    "dropout and random streams of a GPU": "a GPU has to draw them",
    "fused LayerNorm and attention kernels": "which kernel runs, and how it "
    "rounds, depends on the processor",
    "results that depend on the batch size": "they depend on the processor "
    "and its BLAS",
    "flash-attn's causal mask": "flash-attn runs on GPUs only",
    "tables, smoothing and padding of Tensor2Tensor, Marian, fairseq and "
    "OpenNMT": "they are not among this project's dependencies; the rows "
    "position_divisor, position_layout and label_smoothing show their "
    "arithmetic",
    "keras_hub's layers and samplers": "it is not among this project's "
    "dependencies",
    "Hugging Face's length penalty, early stopping and caches":
    "it is not among this project's dependencies",
    "when a beam search stops": "none of these libraries searches with beams",
    "the cache that follows its beam": "it is a fault of one search, not a "
    "default of a library",
    "ONNX's optimisers": "its reference evaluator runs them, and no port of "
    "this project trains by ONNX",
}


@dataclasses.dataclass(frozen=True)
class Effect:
    """How far outputs part.

    Attributes:
        about: what is measured, in a few words.
        measure: () -> {label: number}.
        hidden: the labels whose number stays below HIDDEN; every other one is
            above it.
        needs: the frameworks that it runs.
    """

    about: str
    measure: Callable
    hidden: tuple = ()
    needs: tuple = ()


@dataclasses.dataclass(frozen=True)
class Known:
    """One known difference.

    Attributes:
        name: a short name.
        topic: one of TOPICS.
        about: what differs and what it does to a port.
        answers: answerer -> () -> its answer: a word, a number, or a tuple of
            them. An exception's name is an answer too. The answerer's first
            word says whom it needs.
        expected: answerer -> the answer recorded.
        tolerance: the relative error that a number may have.
        effect: an Effect, or None.
    """

    name: str
    topic: str
    about: str
    answers: Mapping
    expected: Mapping
    tolerance: float = 1e-3
    effect: Effect | None = None

    def probe(self):
        """{answerer: its answer now, or a NotChecked}."""
        return {who: answer(who, ask) for who, ask in self.answers.items()}


@dataclasses.dataclass(frozen=True)
class Found:
    """What demonstrate found.

    Attributes:
        known: the Known.
        answers: answerer -> its answer, or a NotChecked.
        effect: {label: number}, None where there is none, or a NotChecked.
        changed: the answerers whose answer is not the one recorded.
        missing: the answerers that could not be asked.
        status: RECORDED, CHANGED, or UNCHECKED if anything was not asked and
            nothing changed.
    """

    known: Known
    answers: Mapping
    effect: object
    changed: tuple
    missing: tuple

    @property
    def status(self):
        if self.changed:
            return CHANGED
        return UNCHECKED if self.missing else RECORDED

    @property
    def checked(self):
        """How many answers of frameworks were compared."""
        return sum(framework(who) not in OURS
                   for who in set(self.answers) - set(self.missing))

    def reason(self):
        """What changed, or what was not checked and why; else ""."""
        if self.changed:
            return "; ".join(
                f"{who} from {shown(self.known.expected[who])} to "
                f"{shown(self.answers[who])}" for who in self.changed)
        reasons = {}
        for who in self.missing:
            reasons.setdefault(self.answers[who].reason, []).append(who)
        return "; ".join(f"{', '.join(names)}: {reason}"
                         for reason, names in reasons.items())

    def as_json(self):
        """Plain data; NaN and infinity as words."""
        return {
            "name": self.known.name, "topic": self.known.topic,
            "about": self.known.about, "status": self.status,
            "reason": self.reason(),
            "answers": {
                who: {"expected": plain(self.known.expected[who]),
                      "found": None if who in self.missing
                      else plain(self.answers[who]),
                      "status": CHANGED if who in self.changed else
                      UNCHECKED if who in self.missing else RECORDED}
                for who in self.answers},
            "effect": None if not isinstance(self.effect, dict) else {
                "about": self.known.effect.about,
                "values": plain(self.effect),
                "hidden": list(self.known.effect.hidden)},
        }


def framework(answerer):
    """The first word of an answerer: whom it needs."""
    return answerer.split()[0]


@functools.cache
def absent(name):
    """Why a framework cannot be asked, or None."""
    for need in NEEDS[name]:
        if importlib.util.find_spec(need) is None:
            return f"{need} is not installed"
    try:
        if name in ("keras", "tensorflow"):
            os.environ.setdefault("KERAS_BACKEND", "tensorflow")
            os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        for need in NEEDS[name]:
            importlib.import_module(need)
    except ImportError as error:
        return f"it cannot be imported: {error}"
    if name == "keras":
        import keras
        if keras.backend.backend() != "tensorflow":
            return (f"Keras runs on {keras.backend.backend()} here, and what "
                    "is recorded is TensorFlow's")
    return None


def answer(answerer, ask):
    """An answer, the name of the exception raised, or a NotChecked.

    JAX answers in its own default precision, whatever the process has set.
    """
    name = framework(answerer)
    if reason := absent(name):
        return ports.NotChecked(answerer, reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if "jax" in NEEDS[name]:
                with _x64(False):
                    return ask()
            return ask()
        except Exception as error:
            return type(error).__name__


def same(found, recorded, tolerance):
    """Whether an answer is the recorded one: words and integers exactly."""
    if isinstance(recorded, tuple):
        return (isinstance(found, tuple) and len(found) == len(recorded)
                and all(same(a, b, tolerance)
                        for a, b in zip(found, recorded)))
    if isinstance(recorded, float):
        if type(found) not in (int, float):
            return False
        if math.isnan(recorded):
            return math.isnan(found)
        return math.isclose(found, recorded, rel_tol=tolerance, abs_tol=1e-15)
    return type(found) is type(recorded) and found == recorded


def demonstrate(known):
    """Ask all answerers of a Known, measure its effect; a Found."""
    answers = known.probe()
    missing = tuple(who for who, found in answers.items()
                    if isinstance(found, ports.NotChecked))
    changed = tuple(
        who for who, found in answers.items() if who not in missing
        and not same(found, known.expected[who], known.tolerance))
    return Found(known, answers, measured(known.effect), changed, missing)


def measured(effect):
    """An effect's numbers; None without one; a NotChecked where it cannot."""
    if effect is None:
        return None
    for name in effect.needs:
        if reason := absent(name):
            return ports.NotChecked(name, reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if any("jax" in NEEDS[name] for name in effect.needs):
            with _x64(False):
                return effect.measure()
        return effect.measure()


def select(names=(), topic=None):
    """The rows of these names and this topic; every one by default.

    Raises:
        InputError: there is none of that name or topic.
    """
    chosen = [REGISTRY[one_of(name, REGISTRY, "difference")]
              for name in dict.fromkeys(names)] or list(REGISTRY.values())
    if topic is not None:
        one_of(topic, TOPICS, "topic")
        chosen = [known for known in chosen if known.topic == topic]
        if not chosen:
            raise InputError(
                f"none of {', '.join(names)} is of the topic {topic}; leave "
                "out the topic or the names.")
    return chosen


def versions(names):
    """{distribution: version} of what these frameworks need and is here."""
    found = {"numpy": np.__version__}
    for name in names:
        for need in NEEDS[name]:
            for distribution in (need, f"{need}-cpu"):
                try:
                    found[need] = importlib.metadata.version(distribution)
                    break
                except importlib.metadata.PackageNotFoundError:
                    continue
    return found


def frameworks(found):
    """The frameworks asked, in the order of NEEDS."""
    asked = {framework(who) for one in found for who in one.answers}
    return [name for name in NEEDS if name in asked]


def shown(value):
    """An answer as people read it."""
    if isinstance(value, ports.NotChecked):
        return UNCHECKED
    if isinstance(value, tuple):
        return "(" + ", ".join(map(shown, value)) + ")"
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else f"{value:.4g}"
    return str(value)


def plain(value):
    """An answer as JSON holds it."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else str(value)
    return value


#: name -> Known, by topic and in the order in which they are written.
REGISTRY = {}


def _add(name, topic, about, answers, tolerance=1e-3, effect=None):
    """Register a row; ``answers`` is answerer -> (recorded, function)."""
    assert name not in REGISTRY and topic in TOPICS, name
    REGISTRY[name] = Known(
        name, topic, about,
        {who: ask for who, (_, ask) in answers.items()},
        {who: recorded for who, (recorded, _) in answers.items()},
        tolerance, effect)


# What answers are made of


def _x64(on):
    """JAX with or without 64-bit numbers, for a while."""
    import jax
    try:
        return jax.enable_x64(on)
    except AttributeError:
        from jax.experimental import enable_x64
        return enable_x64(on)


def _np(value):
    """Any framework's tensor as a float64 array."""
    if hasattr(value, "detach"):
        value = value.detach().double().numpy()
    return np.asarray(value).astype(np.float64)


def _values(*shape):
    """The same standard normal numbers every time."""
    return np.random.default_rng(0).standard_normal(shape)


def _gap(found, truth):
    """The relative L2 distance of two arrays."""
    found, truth = np.asarray(found, float), np.asarray(truth, float)
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def _tensor(array):
    import torch
    return torch.from_numpy(np.array(array))


def _jnp(array):
    import jax.numpy as jnp
    return jnp.asarray(array)


def _onnx(operator, inputs, **attributes):
    """What ONNX's reference evaluator answers for one operator."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator
    node = helper.make_node(operator, list(inputs), ["y"], **attributes)
    return ReferenceEvaluator(node).run(None, inputs)[0]


def _yes(truth, yes, no):
    return yes if truth else no


def _dtype_name(value):
    """A dtype's name, whichever framework's."""
    return str(getattr(value.dtype, "name", value.dtype)).removeprefix(
        "torch.")


@functools.cache
def _fresh(code):
    """What an expression is in a new process, where nothing has been set."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True,
        check=True, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
    return ast.literal_eval(done.stdout.splitlines()[-1])


# Normalisation


def _torch_norm(x, **more):
    import torch
    x = _tensor(x)
    return _np(torch.nn.LayerNorm(x.shape[-1], dtype=x.dtype, **more)(x))


def _torch_f_norm(x):
    import torch
    return _np(torch.nn.functional.layer_norm(_tensor(x), x.shape[-1:]))


def _keras_norm(x, **more):
    import keras
    return _np(keras.layers.LayerNormalization(dtype=x.dtype.name, **more)(x))


def _keras_ops_norm(x):
    from keras import ops
    ones = np.ones(x.shape[-1], x.dtype)
    return _np(ops.layer_normalization(ops.convert_to_tensor(x), ones,
                                       0 * ones))


def _nnx_norm(x, **more):
    from flax import nnx
    return _np(nnx.LayerNorm(x.shape[-1], rngs=nnx.Rngs(0), **more)(_jnp(x)))


def _linen_norm(x):
    import jax
    from flax import linen
    return _np(linen.LayerNorm().init_with_output(
        jax.random.key(0), _jnp(x))[0])


def _onnx_norm(x):
    ones = np.ones(x.shape[-1], x.dtype)
    return _np(_onnx("LayerNormalization", {"x": x, "s": ones, "b": 0 * ones}))


NORMS = {"torch nn.LayerNorm": _torch_norm,
         "torch F.layer_norm": _torch_f_norm,
         "keras LayerNormalization": _keras_norm,
         "keras ops.layer_normalization": _keras_ops_norm,
         "flax nnx.LayerNorm": _nnx_norm,
         "flax linen.LayerNorm": _linen_norm,
         "onnx LayerNormalization": _onnx_norm}


def _normalised(x, eps, outside=False, unbiased=False):
    """A layer norm written out, in float64."""
    centred = x - x.mean(-1, keepdims=True)
    count = x.shape[-1] - unbiased
    variance = (centred**2).sum(-1, keepdims=True) / count
    return centred / (np.sqrt(variance) + eps if outside
                      else np.sqrt(variance + eps))


def _epsilon_of(norm):
    """The ε of a norm: of ±s it makes ±s / √(s² + ε)."""
    s = 1e-3
    y = norm(np.array([[-s, s]], np.float32))[0, 1]
    return float(s**2 / y**2 - s**2)


def _norms(recorded, ask, norms=NORMS):
    return {who: (value, functools.partial(ask, norms[who]))
            for who, value in zip(norms, recorded, strict=True)}


def _epsilon_effect():
    """ε 1e-5 against 1e-6 on rows of several deviations."""
    x = _values(64, 512)
    x /= x.std(-1, keepdims=True)
    return {f"std {std:g}": _gap(_normalised(std * x, 1e-5),
                                 _normalised(std * x, 1e-6))
            for std in (1, 0.1, 0.02, 0.01)}


_add("layer_norm_epsilon", "normalisation",
     "Each layer norm adds another ε to the variance. On rows of deviation 1 "
     "nobody sees it; on narrow rows, as embeddings are at first, the output "
     "shrinks by a hundredth or by half.",
     _norms((1e-5, 1e-5, 1e-3, 1e-7, 1e-6, 1e-6, 1e-5), _epsilon_of),
     tolerance=1e-2,
     effect=Effect("output with ε 1e-5 against 1e-6", _epsilon_effect,
                   hidden=("std 1",)))


def _spread(norm):
    """The deviation of the output on rows of deviation 0.02."""
    x = _values(4, 512)
    x *= 0.02 / x.std(-1, keepdims=True)
    return float(norm(x.astype(np.float32)).std())


_add("layer_norm_on_narrow_rows", "normalisation",
     "What the default ε makes of rows whose deviation is 0.02: a norm that "
     "should give deviation 1 gives half of it in Keras.",
     _norms((0.98773, 0.98773, 0.53452, 0.99987, 0.99875, 0.99875, 0.98773),
            _spread))


def _variance_of(norm):
    """Which variance: of ±1 the unbiased one is 2, the biased one 1."""
    y = norm(np.array([[-1, 1]], np.float32))[0, 1]
    return _yes(y > 0.9, "biased", "unbiased")


def _unbiased_effect():
    """A norm by the unbiased deviation against a standard one."""
    found = {}
    for width in (4, 64, 512):
        x = _values(64, width)
        found[f"width {width}"] = _gap(
            _normalised(x, 0, unbiased=True), _normalised(x, 0))
    return found


_add("layer_norm_variance", "normalisation",
     "Built-in layer norms divide the squares by the width D. A norm written "
     "with torch's std divides by D - 1, which multiplies every output by "
     "√((D - 1) / D).",
     _norms(("biased",) * 7, _variance_of),
     effect=Effect("unbiased against biased", _unbiased_effect))

_FOUR = np.array([1, 2, 3, 4], np.float32)


def _torch_std():
    return _tensor(_FOUR).std().item()


def _keras_std():
    from keras import ops
    return float(ops.std(_FOUR))


def _tf_std():
    import tensorflow as tf
    return float(tf.math.reduce_std(_FOUR))


_add("std_of_four", "normalisation",
     "The deviation of 1, 2, 3, 4: torch's std is the unbiased one, every "
     "other is the biased one.",
     {"numpy": (1.118, lambda: float(_FOUR.std())),
      "torch": (1.291, _torch_std),
      "keras": (1.118, _keras_std),
      "tensorflow": (1.118, _tf_std),
      "jax": (1.118, lambda: float(_jnp(_FOUR).std()))})


def _far_from_zero(norm, offset):
    """A norm's error in float32 on rows of deviation 1 about an offset."""
    x = (_values(64, 512) + offset).astype(np.float32)
    truth = _normalised(x.astype(np.float64), 1e-6)
    return _gap(norm(x), truth)


def _cancels(norm):
    """Whether digits are lost as the mean of the squares would lose them."""
    return _yes(_far_from_zero(norm, 1000) > 5e-3, "E[x²] − E[x]²",
                "E[(x − E[x])²]")


def _slow_nnx_norm(x):
    return _nnx_norm(x, use_fast_variance=False)


def _fast_effect():
    """Flax's two forms of the variance, far from zero."""
    found = {}
    for offset in (10, 100, 1000):
        found[f"fast, mean {offset}"] = _far_from_zero(_nnx_norm, offset)
    for offset in (10, 100, 1000):
        found[f"slow, mean {offset}"] = _far_from_zero(_slow_nnx_norm, offset)
    return found


_add("fast_variance", "normalisation",
     "Flax takes the variance as the mean of the squares less the square of "
     "the mean, unless told not to. Where the mean is large that loses the "
     "digits; others centre first.",
     _norms(("E[(x − E[x])²]", "E[(x − E[x])²]", "E[(x − E[x])²]",
             "E[(x − E[x])²]", "E[x²] − E[x]²", "E[x²] − E[x]²",
             "E[(x − E[x])²]"), _cancels),
     effect=Effect("float32 output against float64", _fast_effect,
                   hidden=("fast, mean 10", "slow, mean 10", "slow, mean 100"),
                   needs=("flax",)))


def _epsilon_place(norm):
    """Inside the root s² and ε add up, outside s and ε do."""
    eps = _epsilon_of(norm)
    s = 10 * math.sqrt(eps)
    y = norm(np.array([[-s, s]], np.float32))[0, 1]
    inside, outside = s / math.sqrt(s**2 + eps), s / (s + eps)
    return _yes(abs(y - inside) < abs(y - outside), "inside the root",
                "outside the root")


def _place_effect():
    """ε 1e-6 outside the root against inside."""
    x = _values(64, 512)
    x /= x.std(-1, keepdims=True)
    return {f"std {std:g}": _gap(_normalised(std * x, 1e-6, outside=True),
                                 _normalised(std * x, 1e-6))
            for std in (1, 0.02, 1e-3)}


_add("epsilon_place", "normalisation",
     "Built-in norms divide by √(variance + ε). Lessons that divide by "
     "deviation + ε compute another function, which parts from it on narrow "
     "rows.",
     _norms(("inside the root",) * 7, _epsilon_place),
     effect=Effect("ε 1e-6 outside the root against inside", _place_effect,
                   hidden=("std 1",)))


def _final_norms():
    import torch
    made = torch.nn.Transformer(4, 1, 1, 1, 8)
    return _yes(made.encoder.norm is not None
                and made.decoder.norm is not None
                and not made.encoder.layers[0].norm_first,
                "a final norm after a post-norm stack", "none")


def _final_norm_effect():
    """A second norm after a post-norm layer, with its first weights or not."""
    x = _normalised(_values(64, 512), 1e-5)
    scale = np.random.default_rng(1).uniform(0.5, 1.5, 512)
    return {"first weights": _gap(_normalised(x, 1e-5), x),
            "γ from 0.5 to 1.5": _gap(_normalised(x * scale, 1e-5) * scale,
                                      x * scale)}


_add("final_norm", "normalisation",
     "nn.Transformer ends both stacks in a norm, also where its layers are "
     "post-norm and the paper has none. With its first weights that is almost "
     "invisible; trained ones show it.",
     {"torch": ("a final norm after a post-norm stack", _final_norms)},
     effect=Effect("with the final norm against without", _final_norm_effect,
                   hidden=("first weights",)))


def _axes_of(norm):
    """What a norm told to take the last two axes makes one deviation of."""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) ** 2
    y = norm(x)
    return _yes(np.abs(y.mean(-1)).max() < 1e-3, "features",
                "positions and features")


def _torch_two_axes(x):
    import torch
    return _np(torch.nn.LayerNorm(x.shape[1:])(_tensor(x)))


_add("norm_over_positions", "normalisation",
     "A norm told to take axes 1 and 2 of [batch, position, feature] mixes "
     "positions, later ones and padding too. Told nothing it takes features "
     "alone.",
     {"torch nn.LayerNorm(D)": (
         "features", lambda: _axes_of(_torch_norm)),
      "torch nn.LayerNorm((T, D))": (
          "positions and features", lambda: _axes_of(_torch_two_axes)),
      "keras LayerNormalization()": (
          "features", lambda: _axes_of(_keras_norm)),
      "keras LayerNormalization(axis=[1, 2])": (
          "positions and features",
          lambda: _axes_of(functools.partial(_keras_norm, axis=[1, 2]))),
      "flax nnx.LayerNorm": ("features", lambda: _axes_of(_nnx_norm))})


# Activation


def _torch_gelu(x):
    import torch
    return _np(torch.nn.functional.gelu(_tensor(x)))


def _keras_gelu(x):
    import keras
    return _np(keras.activations.gelu(keras.ops.convert_to_tensor(x)))


def _tf_gelu(x):
    import tensorflow as tf
    return _np(tf.nn.gelu(x))


def _jax_gelu(x):
    import jax
    return _np(jax.nn.gelu(_jnp(x)))


def _nnx_gelu(x):
    from flax import nnx
    return _np(nnx.gelu(_jnp(x)))


def _linen_gelu(x):
    from flax import linen
    return _np(linen.gelu(_jnp(x)))


GELUS = {"torch": _torch_gelu, "keras": _keras_gelu, "tensorflow": _tf_gelu,
         "jax": _jax_gelu, "flax nnx": _nnx_gelu, "flax linen": _linen_gelu}

_GRID = np.linspace(-6, 6, 2401)


def _exact_gelu(x):
    """x Φ(x)."""
    return x * np.array([math.erfc(-v / math.sqrt(2)) / 2 for v in x])


def _tanh_gelu(x):
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi)
                                * (x + 0.044715 * x**3)))


def _gelu_form(gelu):
    x = _GRID.astype(np.float32)
    y, x = gelu(x), x.astype(np.float64)
    return _yes(np.abs(y - _exact_gelu(x)).max()
                < np.abs(y - _tanh_gelu(x)).max(), "x Φ(x)", "by tanh")


_add("gelu_form", "activation",
     "GELU is x Φ(x); JAX and Flax compute an approximation by tanh unless "
     "told not to, and GPT-2 was trained with it.",
     _norms(("x Φ(x)", "x Φ(x)", "x Φ(x)", "by tanh", "by tanh", "by tanh"),
            _gelu_form, GELUS),
     effect=Effect("largest distance of the two forms", lambda: {
         "from -6 to 6": float(np.abs(
             _exact_gelu(_GRID) - _tanh_gelu(_GRID)).max())}))


def _gelu_error(gelu):
    """The largest error of an exact GELU in float64, as a word."""
    error = np.abs(gelu(_GRID) - _exact_gelu(_GRID)).max()
    return _yes(error < 1e-14, "float64", "worse than float64")


def _jax_exact_gelu(x):
    import jax
    with _x64(True):
        return _np(jax.nn.gelu(_jnp(x), approximate=False))


_add("gelu_in_float64", "activation",
     "Given float64, TensorFlow's GELU still multiplies by a √½ that was "
     "rounded to float32, so that a comparison in float64 finds it.",
     {"torch": ("float64", lambda: _gelu_error(_torch_gelu)),
      "keras": ("worse than float64", lambda: _gelu_error(_keras_gelu)),
      "tensorflow": ("worse than float64", lambda: _gelu_error(_tf_gelu)),
      "jax": ("float64", lambda: _gelu_error(_jax_exact_gelu))},
     effect=Effect("TensorFlow in float64 against x Φ(x)", lambda: {
         "from -6 to 6": _gap(_tf_gelu(_GRID), _exact_gelu(_GRID))},
         hidden=("from -6 to 6",), needs=("tensorflow",)))


def _torch_slope(function):
    import torch
    x = torch.zeros((), requires_grad=True)
    function(x).backward()
    return x.grad.item()


def _tf_slope(function):
    import tensorflow as tf
    x = tf.Variable(0.0)
    with tf.GradientTape() as tape:
        y = function(x)
    return float(tape.gradient(y, x))


def _jax_slope(function):
    import jax
    return float(jax.grad(function)(0.0))


def _torch_slopes(name):
    import torch
    functions = {
        "relu": torch.relu,
        "clamp": lambda x: x.clamp(min=0),
        "maximum": lambda x: torch.maximum(x, torch.zeros(()))}
    return _torch_slope(functions[name])


def _tf_slopes(name):
    import tensorflow as tf
    functions = {"relu": tf.nn.relu,
                 "maximum": lambda x: tf.maximum(x, 0.0),
                 "clip": lambda x: tf.clip_by_value(x, 0.0, 9.0)}
    return _tf_slope(functions[name])


def _keras_slopes(name):
    from keras import ops
    functions = {"relu": ops.relu,
                 "maximum": lambda x: ops.maximum(x, 0.0)}
    return _tf_slope(functions[name])


def _jax_slopes(name):
    import jax
    import jax.numpy as jnp
    functions = {"relu": jax.nn.relu,
                 "maximum": lambda x: jnp.maximum(x, 0.0),
                 "clip": lambda x: jnp.clip(x, 0.0)}
    return _jax_slope(functions[name])


_add("slope_at_zero", "activation",
     "A ReLU's gradient at exactly 0 is 0 everywhere, but the same function "
     "written as a maximum or a clamp has 0, ½ or 1 there. Zeros in test data "
     "make gradients part.",
     {"torch relu": (0.0, lambda: _torch_slopes("relu")),
      "torch clamp": (1.0, lambda: _torch_slopes("clamp")),
      "torch maximum": (0.5, lambda: _torch_slopes("maximum")),
      "keras relu": (0.0, lambda: _keras_slopes("relu")),
      "keras maximum": (1.0, lambda: _keras_slopes("maximum")),
      "tensorflow relu": (0.0, lambda: _tf_slopes("relu")),
      "tensorflow maximum": (1.0, lambda: _tf_slopes("maximum")),
      "tensorflow clip_by_value": (1.0, lambda: _tf_slopes("clip")),
      "jax relu": (0.0, lambda: _jax_slopes("relu")),
      "jax maximum": (0.5, lambda: _jax_slopes("maximum")),
      "jax clip": (0.5, lambda: _jax_slopes("clip"))})


# Attention


def _torch_mha(width, heads, dtype=None, **more):
    """nn.MultiheadAttention whose projections change nothing."""
    import torch
    made = torch.nn.MultiheadAttention(
        width, heads, dtype=dtype, batch_first=True, **more)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.eye(width).repeat(3, 1))
        made.out_proj.weight.copy_(torch.eye(width))
        made.in_proj_bias.zero_()
        made.out_proj.bias.zero_()
    return made


def _keras_mha(width, heads, dtype="float32", **more):
    """Keras' MultiHeadAttention whose projections change nothing."""
    import keras
    made = keras.layers.MultiHeadAttention(
        heads, width // heads, use_bias=False, dtype=dtype, **more)
    made.build((1, 2, width), (1, 2, width))
    eye = np.eye(width)
    made.set_weights([*[eye.reshape(width, heads, -1)] * 3,
                      eye.reshape(heads, -1, width)])
    return made


def _sdpa(q, k, v, **more):
    """torch's attention of arrays [batch, position, head, feature]."""
    import torch
    q, k, v = (_tensor(x).transpose(1, 2) for x in (q, k, v))
    return _np(torch.nn.functional.scaled_dot_product_attention(
        q, k, v, **more).transpose(1, 2))


def _keras_dpa(q, k, v, **more):
    from keras import ops
    return _np(ops.dot_product_attention(
        *map(ops.convert_to_tensor, (q, k, v)), **more))


def _jax_dpa(q, k, v, **more):
    import jax
    return _np(jax.nn.dot_product_attention(
        *map(_jnp, (q, k, v)), **more).astype("float32"))


def _nnx_dpa(q, k, v, **more):
    from flax import nnx
    return _np(nnx.dot_product_attention(
        *map(_jnp, (q, k, v)), **more).astype("float32"))


def _linen_dpa(q, k, v, **more):
    from flax import linen
    return _np(linen.dot_product_attention(
        *map(_jnp, (q, k, v)), **more).astype("float32"))


def _keys(count, queries=1):
    """Queries and keys of zeros, values that show which key was read."""
    zeros = np.zeros((1, count, 1, count), np.float32)
    return zeros[:, :queries], zeros, np.eye(count, dtype=np.float32).reshape(
        1, count, 1, count)


def _meaning(output):
    """What True said of the first of two keys."""
    return _yes(output.reshape(-1)[0] > 0.5, "may attend", "is hidden")


_MASK = np.array([[[[True, False]]]])


def _torch_mha_polarity():
    import torch
    made, x = _torch_mha(2, 1), torch.zeros(1, 2, 2)
    return _meaning(_np(made(
        x, x, x, key_padding_mask=torch.tensor([[True, False]]))[1]))


def _keras_mha_polarity():
    made, x = _keras_mha(2, 1), np.zeros((1, 2, 2), np.float32)
    return _meaning(_np(made(
        x, x, attention_mask=np.array([[[True, False]] * 2]),
        return_attention_scores=True)[1]))


def _polarity_effect():
    """A causal mask read the wrong way round."""
    q, k, v = _values(3, 1, 6, 1, 8)
    mask = np.tril(np.ones((6, 6), bool))
    truth, other = (_sdpa(q, k, v, attn_mask=_tensor(m)) for m in (
        mask, ~mask | np.eye(6, dtype=bool)))
    return {"6 positions": _gap(other, truth)}


_add("mask_polarity", "attention",
     "True in a boolean mask lets a key be read everywhere but in torch's "
     "nn.MultiheadAttention and nn.Transformer, where it hides it. A mask read "
     "the wrong way round shows the decoder its future.",
     {"torch nn.MultiheadAttention": ("is hidden", _torch_mha_polarity),
      "torch scaled_dot_product_attention": ("may attend", lambda: _meaning(
          _sdpa(*_keys(2), attn_mask=_tensor(_MASK)))),
      "keras MultiHeadAttention": ("may attend", _keras_mha_polarity),
      "keras ops.dot_product_attention": ("may attend", lambda: _meaning(
          _keras_dpa(*_keys(2), mask=_MASK))),
      "jax nn.dot_product_attention": ("may attend", lambda: _meaning(
          _jax_dpa(*_keys(2), mask=_jnp(_MASK)))),
      "flax nnx": ("may attend", lambda: _meaning(
          _nnx_dpa(*_keys(2), mask=_jnp(_MASK)))),
      "flax linen": ("may attend", lambda: _meaning(
          _linen_dpa(*_keys(2), mask=_jnp(_MASK)))),
      "onnx Attention": ("may attend", lambda: _meaning(_onnx(
          "Attention", dict(zip("qkvm", (*(x.swapaxes(1, 2) for x in _keys(2)),
                                         _MASK[0, 0]))))))},
     effect=Effect("a causal mask inverted", _polarity_effect,
                   needs=("torch",)))


def _float_mask(attend):
    """What a mask of 1 and 0 as floats does to uniform scores."""
    weights = attend(np.array([[[[1, 0]]]], np.float32)).reshape(-1)[:2]
    if abs(weights[0] - weights[1]) < 1e-6:
        return "both may attend"
    return _yes(weights[1] < 1e-6, "1 may attend, 0 is hidden",
                "added to the scores")


def _keras_mha_with(mask, **more):
    made, x = _keras_mha(2, 1), np.zeros((1, 2, 2), np.float32)
    x[0] = np.eye(2)
    return _np(made(0 * x, x, attention_mask=np.repeat(mask[0], 2, axis=1),
                    **more))


_add("float_mask", "attention",
     "Zeros and ones as floats are added to the scores by torch, are taken as "
     "booleans by Keras and as truth values by Flax, and refused by JAX.",
     {"torch": ("added to the scores", lambda: _float_mask(lambda m: _sdpa(
         *_keys(2), attn_mask=_tensor(m)))),
      "keras MultiHeadAttention": (
          "1 may attend, 0 is hidden", lambda: _float_mask(_keras_mha_with)),
      "jax nn.dot_product_attention": ("ValueError", lambda: _float_mask(
          lambda m: _jax_dpa(*_keys(2), mask=_jnp(m)))),
      "flax nnx": ("1 may attend, 0 is hidden", lambda: _float_mask(
          lambda m: _nnx_dpa(*_keys(2), mask=_jnp(m)))),
      "flax linen": ("1 may attend, 0 is hidden", lambda: _float_mask(
          lambda m: _linen_dpa(*_keys(2), mask=_jnp(m)))),
      "onnx Attention": (
          "added to the scores", lambda: _float_mask(lambda m: _onnx(
          "Attention", dict(zip("qkvm", (*(x.swapaxes(1, 2) for x in _keys(2)),
                                         m[0, 0]))))))})


def _reads(weights):
    """Which of two keys is read, the kept one or the hidden one."""
    kept, hidden = np.asarray(weights, float).reshape(-1)[:2]
    if hidden > 0.5:
        return "the hidden key"
    return _yes(kept > 0.5, "the kept key", "neither")


def _overtaken(attend, score):
    """Which key is read where the kept one's score is lower by that much."""
    q = np.full((1, 1, 1, 2), -score * math.sqrt(2), np.float32)
    k = np.zeros((1, 2, 1, 2), np.float32)
    k[0, 0, 0, 0] = 1
    v = np.eye(2, dtype=np.float32).reshape(1, 2, 1, 2)
    return _reads(attend(q, k, v))


def _keras_softmax(score, dtype):
    import keras
    return _reads(_np(keras.layers.Softmax(dtype=dtype)(
        np.array([[-score, 0]], dtype), mask=np.array([[True, False]]))))


def _added_constant():
    scores = np.array([-2e9, 0]) + [0, -1e9]
    weights = np.exp(scores - scores.max())
    return _reads(weights / weights.sum())


def _constant_effect():
    """The weight of a key hidden by a constant of -1e4."""
    scores = np.array([0, 9995.0]) + [0, -1e4]
    other = np.array([0, 2e4]) + [0, -1e4]
    return {"score 9995": float(1 / (1 + np.exp(-scores[1]))),
            "score 20000": float(1 / (1 + np.exp(-other[1])))}


_add("mask_constant", "attention",
     "A hidden score becomes a number, which a kept one can lie below: here "
     "at -2e9, in float16 at -4e4. Keras' softmax puts -1e9, in float16 -3e4, "
     "and leaves the row without weights; the others put the dtype's lowest "
     "number or -∞. An added constant of -1e4 is too small even for common "
     "scores.",
     {"numpy -1e9 added": ("the hidden key", _added_constant),
      "torch": ("the kept key", lambda: _overtaken(lambda q, k, v: _sdpa(
         q, k, v, attn_mask=_tensor(_MASK)), 2e9)),
      "keras Softmax float32": (
          "neither", lambda: _keras_softmax(2e9, "float32")),
      "keras Softmax float16": (
          "neither", lambda: _keras_softmax(4e4, "float16")),
      "keras ops.dot_product_attention": ("the kept key", lambda: _overtaken(
          lambda q, k, v: _keras_dpa(q, k, v, mask=_MASK), 2e9)),
      "jax nn.dot_product_attention": ("the kept key", lambda: _overtaken(
          lambda q, k, v: _jax_dpa(q, k, v, mask=_jnp(_MASK)), 2e9)),
      "flax nnx": ("the kept key", lambda: _overtaken(
          lambda q, k, v: _nnx_dpa(q, k, v, mask=_jnp(_MASK)), 2e9))},
     effect=Effect("weight of a key hidden by -1e4", _constant_effect))


def _numpy_inf():
    with np.errstate(invalid="ignore"):
        return float((np.array([1]) == 0)[0] * -np.inf)


def _torch_inf():
    import torch
    return ((torch.tensor([1]) == 0) * -math.inf).item()


def _tf_inf():
    import tensorflow as tf
    return float(tf.cast(tf.constant([1]) == 0, tf.float32)[0] * -math.inf)


def _jax_inf(compiled):
    import jax
    import jax.numpy as jnp

    def product(mask):
        return (mask == 0) * -jnp.inf

    return float((jax.jit(product) if compiled else product)(
        jnp.array([1]))[0])


_add("mask_times_infinity", "attention",
     "A mask of 0 and 1 turned into an addend by (mask == 0) · -∞ puts 0 · -∞, "
     "which is NaN, where a key should be kept. In JAX a boolean False times "
     "-∞ is 0.",
     {"numpy": (math.nan, _numpy_inf), "torch": (math.nan, _torch_inf),
      "tensorflow": (math.nan, _tf_inf),
      "jax eager": (0.0, lambda: _jax_inf(False)),
      "jax jit": (0.0, lambda: _jax_inf(True))})


def _small_mask(attend):
    """Whether 0.4 in a mask of floats hides a key."""
    weights = attend(np.array([[[[1, 0.4]]]], np.float32)).reshape(-1)[:2]
    return _yes(weights[1] > 0.1, "may attend", "is hidden")


def _keras_scores_with(mask):
    made, x = _keras_mha(2, 1), np.zeros((1, 2, 2), np.float32)
    return _np(made(x, x, attention_mask=np.repeat(mask[0], 2, axis=1),
                    return_attention_scores=True)[1])


def _keras_softmax_with(mask):
    import keras
    return _np(keras.layers.Softmax()(0 * mask, mask=mask))


_add("mask_of_four_tenths", "attention",
     "What 0.4 in a mask of floats says: Keras' softmax takes what is above "
     "one half as true, its attention and Flax take any number but 0.",
     {"keras MultiHeadAttention": (
          "may attend", lambda: _small_mask(_keras_mha_with)),
      "keras with scores": (
          "may attend", lambda: _small_mask(_keras_scores_with)),
      "keras Softmax": ("is hidden", lambda: _small_mask(_keras_softmax_with)),
      "flax nnx": ("may attend", lambda: _small_mask(
          lambda m: _nnx_dpa(*_keys(2), mask=_jnp(m))))})


_LOST = np.zeros((1, 1, 2, 3), bool)
_LOST_V = np.array([[1, 5], [2, -1], [6, 2]], np.float32)


def _lost(attend):
    """What a query without keys is answered: 0, NaN or the mean of V."""
    output = attend()
    output = np.asarray(output, float).reshape(-1, 2)[0]
    if np.isnan(output).all():
        return "NaN"
    if not output.any():
        return "0"
    return _yes(np.allclose(output, _LOST_V.mean(0), atol=1e-5),
                "mean of V", f"{output.tolist()}")


def _lost_inputs():
    rng = np.random.default_rng(0)
    return (rng.standard_normal((1, 2, 1, 2)).astype(np.float32),
            rng.standard_normal((1, 3, 1, 2)).astype(np.float32),
            _LOST_V.reshape(1, 3, 1, 2))


def _numpy_lost():
    q, k, v = (x[0, :, 0] for x in _lost_inputs())
    with np.errstate(invalid="ignore"):
        scores = np.where(_LOST[0, 0], q @ k.T, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ v


def _reference_lost():
    attention = importlib.import_module(
        ports.engine("numpy").__name__.replace("engine", "attention"))
    q, k, v = (x.swapaxes(1, 2) for x in _lost_inputs())
    return attention.masked_softmax(q @ k.mT, _LOST) @ v


def _torch_lost(weights, quick):
    import torch
    made = _torch_mha(2, 2)
    made.train(not quick)
    q, k, v = (_tensor(x[:, :, 0]) for x in _lost_inputs())
    if quick:  # the fast path is for self-attention, whose values are V
        q = k = v
    with torch.set_grad_enabled(not quick):
        return _np(made(
            q, k, v, need_weights=weights,
            key_padding_mask=torch.ones(1, 3, dtype=torch.bool))[0])


def _keras_lost(dropout=0.0, **more):
    made = _keras_mha(2, 1, dropout=dropout)
    q, k, v = (x[:, :, 0] for x in _lost_inputs())
    found = made(q, v, key=k, attention_mask=_LOST[0], **more)
    return _np(found[0] if more else found)


_add("query_without_keys", "attention",
     "Where a mask hides every key the softmax has nothing to share out: NaN, "
     "the mean of all values and 0 are all in use, two of them within torch "
     "and within Keras. ONNX and the reference answer 0.",
     {"numpy with -∞": ("NaN", lambda: _lost(_numpy_lost)),
      "reference": ("0", lambda: _lost(_reference_lost)),
      "torch MHA with weights": ("NaN", lambda: _lost(
          lambda: _torch_lost(True, False))),
      "torch MHA without": ("0", lambda: _lost(
          lambda: _torch_lost(False, False))),
      "torch MHA fast path with weights": ("NaN", lambda: _lost(
          lambda: _torch_lost(True, True))),
      "torch MHA fast path without": ("NaN", lambda: _lost(
          lambda: _torch_lost(False, True))),
      "torch scaled_dot_product_attention": ("0", lambda: _lost(
          lambda: _sdpa(*_lost_inputs(), attn_mask=_tensor(_LOST)))),
      "keras MHA": ("mean of V", lambda: _lost(_keras_lost)),
      "keras MHA with scores": ("0", lambda: _lost(
          lambda: _keras_lost(return_attention_scores=True))),
      "keras MHA with dropout": ("0", lambda: _lost(
          lambda: _keras_lost(dropout=0.5))),
      "jax nn.dot_product_attention": ("mean of V", lambda: _lost(
          lambda: _jax_dpa(*_lost_inputs(), mask=_jnp(_LOST)))),
      "flax nnx": ("mean of V", lambda: _lost(
          lambda: _nnx_dpa(*_lost_inputs(), mask=_jnp(_LOST)))),
      "flax linen": ("mean of V", lambda: _lost(
          lambda: _linen_dpa(*_lost_inputs(), mask=_jnp(_LOST)))),
      "onnx Attention": ("0", lambda: _lost(lambda: _onnx(
          "Attention", dict(zip("qkvm", (
              *(x.swapaxes(1, 2) for x in _lost_inputs()),
              _LOST[0, 0]))))))},
     effect=Effect("Keras' two paths, largest distance", lambda: {
         "a query without keys": float(np.abs(
             _keras_lost() - _keras_lost(return_attention_scores=True)).max())
     }, needs=("keras",)))


def _corner(output):
    """How many of four keys the first of two queries reads."""
    read = int((np.asarray(output, float).reshape(2, 4)[0] > 1e-3).sum())
    return {1: "top left", 3: "bottom right", 4: "nowhere"}.get(
        read, f"{read} keys")


def _keras_corner():
    made = _keras_mha(4, 1)
    zeros, eye = np.zeros((1, 4, 4), np.float32), np.eye(4, dtype=np.float32)
    return _np(made(zeros[:, :2], eye[None], key=zeros, use_causal_mask=True))


def _causal_effect():
    """Two queries of four keys: the diagonal from one corner or the other."""
    q, k, v = _values(3, 1, 4, 1, 8)
    masks = (np.tril(np.ones((2, 4), bool), shift) for shift in (0, 2))
    first, last = (_sdpa(q[:, :2], k, v, attn_mask=_tensor(m))
                   for m in masks)
    return {"2 queries, 4 keys": _gap(first, last)}


_add("causal_corner", "attention",
     "With two queries and four keys a causal mask can start from the top "
     "left or end at the bottom right. All of these start at the top left, "
     "which is wrong for a cache that holds earlier keys.",
     {"torch": (
          "top left", lambda: _corner(_sdpa(*_keys(4, 2), is_causal=True))),
      "keras MultiHeadAttention": (
          "top left", lambda: _corner(_keras_corner())),
      "keras ops.dot_product_attention": ("top left", lambda: _corner(
          _keras_dpa(*_keys(4, 2), is_causal=True))),
      "jax": (
          "top left", lambda: _corner(_jax_dpa(*_keys(4, 2), is_causal=True))),
      "flax nnx": ("top left", lambda: _corner(
          _nnx_dpa(*_keys(4, 2), is_causal=True))),
      "onnx Attention": ("top left", lambda: _corner(_onnx(
          "Attention", dict(zip("qkv", (
              x.swapaxes(1, 2) for x in _keys(4, 2)))), is_causal=1)))},
     effect=Effect("one corner against the other", _causal_effect,
                   needs=("torch",)))


def _keras_causal(dropout=0.0, **more):
    made = _keras_mha(4, 1, dropout=dropout)
    zeros, eye = np.zeros((1, 4, 4), np.float32), np.eye(4, dtype=np.float32)
    found = made(zeros, eye[None], key=zeros, use_causal_mask=True, **more)
    output = _np(found[0] if "return_attention_scores" in more else found)
    return _yes(output[0, 0, 1:].max() < 1e-3, "hides the future",
                "shows the future")


_add("causal_mask_on_every_path", "attention",
     "Keras' attention has a fused path and one written out. In one series of "
     "its releases the causal mask was lost on the latter, whenever dropout "
     "or the scores were asked for.",
     {"keras MHA": ("hides the future", _keras_causal),
      "keras MHA with scores": ("hides the future", lambda: _keras_causal(
          return_attention_scores=True)),
      "keras MHA with dropout": (
          "hides the future", lambda: _keras_causal(dropout=0.5)),
      "keras MHA with a mask": ("hides the future", lambda: _keras_causal(
          attention_mask=np.ones((1, 4, 4), bool)))})


def _torch_causal_mask():
    import torch
    return tuple(torch.nn.Transformer.generate_square_subsequent_mask(
        2)[0].tolist())


def _flax_causal_mask():
    from flax import nnx
    return tuple(_np(nnx.make_causal_mask(_jnp(np.ones((1, 2)))))[0, 0, 0])


_add("causal_mask_values", "attention",
     "The first row of a causal mask of two as each library makes it: torch's "
     "is to be added to the scores, Flax's is 1 where a key may be read.",
     {"torch": ((0.0, -math.inf), _torch_causal_mask),
      "flax": ((1.0, 0.0), lambda: tuple(map(float, _flax_causal_mask())))})


def _torch_weights_shape(**more):
    import torch
    x = torch.zeros(2, 3, 6)
    return tuple(torch.nn.MultiheadAttention(6, 2, batch_first=True)(
        x, x, x, **more)[1].shape)


def _keras_weights_shape():
    x = np.zeros((2, 3, 6), np.float32)
    return tuple(_keras_mha(6, 2)(x, x, return_attention_scores=True)[1].shape)


def _nnx_mha(width, heads, **more):
    from flax import nnx
    return nnx.MultiHeadAttention(
        num_heads=heads, in_features=width, decode=False, rngs=nnx.Rngs(0),
        **more)


def _flax_weights_shape():
    import jax
    from flax import nnx
    made, x = _nnx_mha(6, 2), _jnp(np.zeros((2, 3, 6), np.float32))
    made(x, sow_weights=True)
    weights, = jax.tree.leaves(nnx.state(made, nnx.Intermediate))
    return tuple(weights.shape)


_add("attention_weights_shape", "attention",
     "The weights that nn.MultiheadAttention hands back are averaged over its "
     "heads unless it is told not to; others keep the heads. Here 2 pairs, 2 "
     "heads, 3 positions.",
     {"torch": ((2, 3, 3), _torch_weights_shape),
      "torch average_attn_weights=False": (
          (2, 2, 3, 3),
          lambda: _torch_weights_shape(average_attn_weights=False)),
      "keras": ((2, 2, 3, 3), _keras_weights_shape),
      "flax": ((2, 2, 3, 3), _flax_weights_shape)})


def _torch_batch_axis(make, inputs):
    """Which axis is the batch: along it, nothing is mixed."""
    import torch
    made = make().eval()
    x = _tensor(_values(3, 4, 6).astype(np.float32))
    other = x.clone()
    other[0] += 1
    found, changed = made(*[x] * inputs), made(*[other] * inputs)
    found, changed = (y[0] if isinstance(y, tuple) else y
                      for y in (found, changed))
    return _yes(torch.equal(found[1], changed[1]), "batch first",
                "position first")


def _torch_attention_axis():
    import torch
    return _torch_batch_axis(
        lambda: torch.nn.MultiheadAttention(6, 2), 3)


def _torch_encoder_axis():
    import torch
    return _torch_batch_axis(
        lambda: torch.nn.TransformerEncoderLayer(6, 2, 8), 1)


def _batch_axis(made):
    x = _values(3, 4, 6).astype(np.float32)
    other = x.copy()
    other[0] += 1
    return _yes(np.array_equal(_np(made(x))[1], _np(made(other))[1]),
                "batch first", "position first")


def _keras_batch_axis():
    made = _keras_mha(6, 2)
    return _batch_axis(lambda x: made(x, x))


def _flax_batch_axis():
    made = _nnx_mha(6, 2)
    return _batch_axis(lambda x: made(_jnp(x)))


_add("batch_axis", "attention",
     "torch's attention and Transformer layers take [position, batch, "
     "feature] unless told batch_first=True. Where both sizes agree nothing "
     "fails, and pairs attend to each other.",
     {"torch nn.MultiheadAttention": ("position first", _torch_attention_axis),
      "torch nn.TransformerEncoderLayer": (
          "position first", _torch_encoder_axis),
      "keras MultiHeadAttention": ("batch first", _keras_batch_axis),
      "flax nnx.MultiHeadAttention": ("batch first", _flax_batch_axis)})


def _torch_head_width():
    import torch
    return torch.nn.MultiheadAttention(12, 3).head_dim


def _keras_head_width():
    import keras
    made = keras.layers.MultiHeadAttention(3, 12)
    made.build((1, 2, 12), (1, 2, 12))
    return int(made.query_dense.kernel.shape[-1])


def _flax_head_width():
    return int(_nnx_mha(12, 3, qkv_features=12).query.kernel.shape[-1])


_add("width_of_a_head", "attention",
     "Told 12 for a width and 3 heads, torch and Flax give each head 4 "
     "features and Keras, whose key_dim is that of one head, 12.",
     {"torch embed_dim": (4, _torch_head_width),
      "keras key_dim": (12, _keras_head_width),
      "flax qkv_features": (4, _flax_head_width)})


def _one_mask(outputs):
    return _yes(np.array_equal(outputs[0], outputs[1]),
                "one mask for the batch", "a mask for each pair")


def _flax_masks():
    import jax
    q, k, v = (np.repeat(x, 2, axis=0) for x in _keys(32))
    return _nnx_dpa(q, k, v, dropout_rng=jax.random.key(0), dropout_rate=0.5,
                    deterministic=False)


def _linen_masks():
    import jax
    q, k, v = (np.repeat(x, 2, axis=0) for x in _keys(32))
    return _linen_dpa(q, k, v, dropout_rng=jax.random.key(0),
                      dropout_rate=0.5, deterministic=False)


def _torch_masks():
    import torch
    with torch.random.fork_rng():
        return _sdpa(*(np.repeat(x, 2, axis=0) for x in _keys(32)),
                     dropout_p=0.5)


def _keras_masks():
    made = _keras_mha(32, 1, dropout=0.5, seed=0)
    x = np.zeros((2, 32, 32), np.float32)
    x[:] = np.eye(32)
    return _np(made(0 * x, x, training=True))


_add("attention_dropout_mask", "attention",
     "Flax drops the same attention weights for every pair and head unless "
     "told broadcast_dropout=False; torch and Keras draw each anew.",
     {"torch": ("a mask for each pair", lambda: _one_mask(_torch_masks())),
      "keras": ("a mask for each pair", lambda: _one_mask(_keras_masks())),
      "flax nnx": ("one mask for the batch", lambda: _one_mask(_flax_masks())),
      "flax linen": (
          "one mask for the batch", lambda: _one_mask(_linen_masks()))})


@functools.cache
def _sown(dtype):
    """nnx's attention with its weights kept against without."""
    from flax import nnx
    q, k, v = (_jnp(x).astype(dtype) for x in _values(3, 2, 16, 4, 8))
    return tuple(_np(nnx.dot_product_attention(
        q, k, v, module=module).astype("float32"))
        for module in (nnx.Module(), None))


_add("weights_that_are_watched", "attention",
     "Flax computes attention fused, and step by step when its weights are to "
     "be kept. In bfloat16 looking at the weights changes the output.",
     {"flax bfloat16": ("another output", lambda: _yes(
         np.array_equal(*_sown("bfloat16")), "the same output",
         "another output"))},
     effect=Effect("with weights kept against without", lambda: {
         dtype: _gap(*_sown(dtype)) for dtype in ("bfloat16", "float32")},
         hidden=("float32",), needs=("flax",)))


def _float16_scores():
    """q · k is 102400, above float16's largest number; over √64 it is not."""
    x = np.full((1, 2, 1, 64), 40, np.float16)
    return x, x, np.ones_like(x)


def _overflows(output):
    return _yes(np.isfinite(np.asarray(output, float)).all(), "finite",
                "overflows")


def _numpy_float16():
    q, k, v = (x[0, :, 0] for x in _float16_scores())
    with np.errstate(over="ignore", invalid="ignore"):
        scores = q @ k.T / np.float16(8)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ v


def _torch_float16(weights):
    import torch
    made = _torch_mha(64, 1, dtype=torch.float16)
    q, k, v = (_tensor(x[:, :, 0]) for x in _float16_scores())
    return _np(made(q, k, v, need_weights=weights)[0])


def _keras_float16(**more):
    made = _keras_mha(64, 1, dtype="float16")
    q, k, v = (x[:, :, 0] for x in _float16_scores())
    found = made(q, v, key=k, **more)
    return _np(found[0] if more else found)


_add("scale_before_the_product", "attention",
     "Dividing the query by √d_k before the product, or the product after it, "
     "is the same in exact numbers. In float16 the product overflows first, "
     "unless it is summed in float32.",
     {"numpy after": ("overflows", lambda: _overflows(_numpy_float16())),
      "torch scaled_dot_product_attention": ("finite", lambda: _overflows(
          _sdpa(*_float16_scores()))),
      "torch MHA with weights": ("finite", lambda: _overflows(
          _torch_float16(True))),
      "keras MHA": ("overflows", lambda: _overflows(_keras_float16())),
      "keras MHA with scores": ("finite", lambda: _overflows(
          _keras_float16(return_attention_scores=True))),
      "jax nn.dot_product_attention": ("finite", lambda: _overflows(
          _jax_dpa(*_float16_scores()))),
      "flax nnx": ("finite", lambda: _overflows(_nnx_dpa(*_float16_scores()))),
      "flax linen": ("finite", lambda: _overflows(
          _linen_dpa(*_float16_scores())))})


def _padded_encoder(quick):
    """What an encoder puts where a row is padding."""
    import torch
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
        made = torch.nn.TransformerEncoder(layer, 1).train(not quick)
        padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
        with torch.set_grad_enabled(not quick):
            output = _np(made(_tensor(_values(2, 5, 8).astype(np.float32)),
                              src_key_padding_mask=padding))
    return _yes(output[1, 3:].any(), "numbers", "zeros")


_add("padding_on_the_fast_path", "attention",
     "nn.TransformerEncoder packs padded rows when it neither trains nor "
     "differentiates, and what stands at padding is then 0 rather than a "
     "number. A comparison of whole outputs finds it, one of what counts does "
     "not.",
     {"torch while training": ("numbers", lambda: _padded_encoder(False)),
      "torch in eval and no_grad": ("zeros", lambda: _padded_encoder(True))})


# Layout


def _torch_kernel():
    import torch
    return tuple(torch.nn.Linear(2, 3).weight.shape)


def _keras_kernel():
    import keras
    made = keras.layers.Dense(3)
    made.build((1, 2))
    return tuple(made.kernel.shape)


def _nnx_kernel():
    from flax import nnx
    return tuple(nnx.Linear(2, 3, rngs=nnx.Rngs(0)).kernel.shape)


def _linen_kernel():
    import jax
    from flax import linen
    return tuple(linen.Dense(3).init(
        jax.random.key(0), np.zeros((1, 2)))["params"]["kernel"].shape)


def _transposed_effect():
    x, kernel = _values(4, 64), _values(64, 64)
    return {"64 × 64": _gap(x @ kernel.T, x @ kernel)}


_add("dense_kernel", "layout",
     "A layer from 2 to 3 features holds 3 × 2 numbers in torch and 2 × 3 in "
     "Keras and Flax. A square one loads transposed without a word.",
     {"torch": ((3, 2), _torch_kernel), "keras": ((2, 3), _keras_kernel),
      "flax nnx": ((2, 3), _nnx_kernel),
      "flax linen": ((2, 3), _linen_kernel)},
     effect=Effect("a square kernel transposed", _transposed_effect))


def _torch_attention_shapes(**more):
    import torch
    made = torch.nn.MultiheadAttention(6, 2, **more)
    return tuple((name, tuple(p.shape)) for name, p
                 in made.named_parameters() if "bias" not in name)


def _keras_attention_shapes():
    import keras
    made = keras.layers.MultiHeadAttention(2, 3)
    made.build((1, 5, 6), (1, 5, 6))
    return tuple((name, tuple(getattr(made, f"{name}_dense").kernel.shape))
                 for name in ("query", "output"))


def _flax_attention_shapes():
    made = _nnx_mha(6, 2)
    return tuple((name, tuple(getattr(made, name).kernel.shape))
                 for name in ("query", "out"))


_add("attention_kernels", "layout",
     "Width 6 in 2 heads: torch stacks query, key and value in one matrix, "
     "and parts them only where keys have another width; Keras and Flax keep "
     "the heads as an axis.",
     {"torch": (
          (("in_proj_weight", (18, 6)), ("out_proj.weight", (6, 6))),
          _torch_attention_shapes),
      "torch kdim=5": (
         
          (("q_proj_weight", (6, 6)), ("k_proj_weight", (6, 5)),
           ("v_proj_weight", (6, 6)), ("out_proj.weight", (6, 6))),
          lambda: _torch_attention_shapes(kdim=5)),
      "keras": (
          (("query", (6, 2, 3)), ("output", (2, 3, 6))),
          _keras_attention_shapes),
      "flax": (
          (("query", (6, 2, 3)), ("out", (2, 3, 6))), _flax_attention_shapes)})


def _torch_bias_shape():
    import torch
    return tuple(torch.nn.MultiheadAttention(6, 2).in_proj_bias.shape)


def _keras_bias_shape():
    import keras
    made = keras.layers.MultiHeadAttention(2, 3)
    made.build((1, 5, 6), (1, 5, 6))
    return tuple(made.query_dense.bias.shape)


_add("attention_biases", "layout",
     "The query's bias is a third of one vector in torch, and a row a head in "
     "Keras and Flax.",
     {"torch in_proj_bias": ((18,), _torch_bias_shape),
      "keras": ((2, 3), _keras_bias_shape),
      "flax": ((2, 3), lambda: tuple(_nnx_mha(6, 2).query.bias.shape))})


def _torch_head_order():
    """Which query columns touch the first head's weights."""
    import torch
    made = _torch_mha(6, 2)
    x = _tensor(_values(1, 4, 6).astype(np.float32))
    before = made(x, x, x, average_attn_weights=False)[1]
    touched = []
    for column in range(6):
        with torch.no_grad():
            made.in_proj_weight[column] += 1
        after = made(x, x, x, average_attn_weights=False)[1]
        with torch.no_grad():
            made.in_proj_weight[column] -= 1
        if (after - before)[0, 0].abs().max() > 1e-4:
            touched.append(column)
    return tuple(touched)


def _head_effect():
    """Columns dealt out feature by feature against head by head."""
    q, k, v = _values(3, 4, 6)

    def attend(split):
        heads = [split(x) for x in (q, k, v)]
        scores = heads[0] @ heads[1].swapaxes(1, 2) / math.sqrt(3)
        weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        return weights @ heads[2]

    return {"2 heads of 3": _gap(
        attend(lambda x: x.reshape(4, 3, 2).transpose(2, 0, 1)),
        attend(lambda x: x.reshape(4, 2, 3).swapaxes(0, 1)))}


_add("head_columns", "layout",
     "Which of a query kernel's 6 columns belong to the first of 2 heads: the "
     "first 3. A checkpoint that deals columns out one by one has the same "
     "shape and is another model.",
     {"torch": ((0, 1, 2), _torch_head_order)},
     effect=Effect("dealt out one by one against in a row", _head_effect))


def _names(pairs):
    return tuple(sorted(pairs))


def _torch_norm_names():
    import torch
    return _names(name for name, _
                  in torch.nn.LayerNorm(4).named_parameters())


def _keras_norm_names():
    import keras
    made = keras.layers.LayerNormalization()
    made.build((1, 4))
    return _names(v.name for v in made.weights)


def _flax_norm_names():
    import jax
    from flax import linen
    return _names(linen.LayerNorm().init(
        jax.random.key(0), np.zeros((1, 4)))["params"])


_add("norm_parameters", "layout",
     "The same two vectors of a layer norm go by three pairs of names.",
     {"torch": (("bias", "weight"), _torch_norm_names),
      "keras": (("beta", "gamma"), _keras_norm_names),
      "flax": (("bias", "scale"), _flax_norm_names)})


# Embedding


def _position_table(width, divisor, count=50):
    """sin and cos of position / 10000^(2i / divisor), side by side."""
    rates = 10000.0 ** (-2 * np.arange(width // 2) / divisor)
    angles = np.arange(count)[:, None] * rates
    return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(count, -1)


def _first_rates(divisor):
    return tuple(float(r) for r in 10000.0 ** (-2 * np.arange(3) / divisor))


_add("position_divisor", "embedding",
     "The paper divides 2i by the width d. Tensor2Tensor, Marian and Flax's "
     "examples divide i by d/2 - 1, so that the last rate is exactly 1/10000: "
     "another table, which no rearranging turns into the first. Here the "
     "first rates of width 8.",
     {"numpy with d": ((1.0, 0.1, 0.01), lambda: _first_rates(8)),
      "numpy with d - 2": (
          (1.0, 0.046416, 0.0021544), lambda: _first_rates(6))},
     effect=Effect("largest distance within 50 positions", lambda: {
         "width 512": float(np.abs(_position_table(512, 512)
                                   - _position_table(512, 510)).max())}))


def _layout_effect():
    table = _position_table(512, 512)
    halves = np.concatenate([table[:, ::2], table[:, 1::2]], -1)
    return {"width 512": _gap(halves, table)}


def _reference_layout(layout):
    """Whether the second feature at position 1 is a cosine or a sine."""
    from contract.config import preset
    engine = ports.engine("numpy")
    config = preset("practical").replace(
        d_model=8, n_heads=2, max_length=4, positions=layout)
    made = engine.build("positional_encoding", config, {})
    second = engine.run(made, np.zeros((1, 4, 8)))["positions"][1, 1]
    return _yes(abs(second - math.cos(1)) < 1e-6, "sine, cosine, sine, …",
                "sines, then cosines")


_add("position_layout", "embedding",
     "Sines and cosines stand in turn in the paper's lessons, and in two "
     "halves in Tensor2Tensor, Marian and OpenNMT. It is a permutation of the "
     "features, and weights trained on one are useless on the other.",
     {"reference interleaved": (
         "sine, cosine, sine, …", lambda: _reference_layout("interleaved")),
      "reference halves": (
          "sines, then cosines", lambda: _reference_layout("halves"))},
     effect=Effect("halves against interleaved", _layout_effect))


def _table_error(exp):
    """A position table of 5000 computed in float32 against float64."""
    i = np.arange(0, 512, 2)
    position = np.arange(5000)[:, None]
    truth = np.sin(position * 10000.0 ** (-i / 512))
    if exp:
        rates = np.exp(i.astype(np.float32)
                       * np.float32(-math.log(10000.0) / 512))
    else:
        rates = np.float32(10000) ** (-i.astype(np.float32) / np.float32(512))
    found = np.sin(position.astype(np.float32) * rates)
    return float(np.abs(found - truth).max())


_add("position_table_in_float32", "embedding",
     "A table computed in float32 is wrong in the fourth decimal by position "
     "5000, and the two ways to write the rates part as much. Here the "
     "largest error.",
     {"numpy by exp": (0.00044781, lambda: _table_error(True)),
      "numpy by power": (0.00038655, lambda: _table_error(False))},
     tolerance=0.5,
     effect=Effect("largest error", lambda: {
         "by exp": _table_error(True), "by power": _table_error(False)}))


def _first_and_count(positions):
    wrong = np.flatnonzero(np.asarray(positions, float) != np.arange(5000))
    return int(wrong[0]), len(wrong)


def _torch_positions():
    import torch
    return _np(torch.arange(5000).to(torch.bfloat16))


def _keras_positions():
    from keras import ops
    return _np(ops.cast(ops.cast(ops.arange(5000), "bfloat16"), "float32"))


def _jax_positions():
    import jax.numpy as jnp
    return _np(jnp.arange(5000).astype(jnp.bfloat16).astype(jnp.float32))


_add("positions_in_bfloat16", "embedding",
     "bfloat16 holds 8 digits of 2, so positions computed in it are wrong "
     "from 257 on. Here the first wrong one of 5000, and how many are.",
     {"torch": ((257, 4203), lambda: _first_and_count(_torch_positions())),
      "keras": ((257, 4203), lambda: _first_and_count(_keras_positions())),
      "jax": ((257, 4203), lambda: _first_and_count(_jax_positions()))})


def _torch_padding_row():
    import torch
    made = torch.nn.Embedding(4, 3, padding_idx=0)
    made(torch.tensor([0, 1])).sum().backward()
    return _padding_words(_np(made.weight)[0], _np(made.weight.grad)[0])


def _keras_padding_row():
    import keras
    import tensorflow as tf
    made = keras.layers.Embedding(4, 3, mask_zero=True)
    made.build(None)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(made(np.array([0, 1])))
    grad = tape.gradient(total, made.embeddings.value)
    return _padding_words(_np(made.embeddings)[0],
                          _np(tf.convert_to_tensor(grad))[0])


def _padding_words(row, gradient):
    return (_yes(row.any(), "some row", "zero row"),
            _yes(gradient.any(), "some gradient", "zero gradient"))


def _flax_padding_row():
    import jax
    from flax import nnx
    made = nnx.Embed(4, 3, rngs=nnx.Rngs(0))
    gradient = nnx.grad(lambda m: m(_jnp(np.array([0, 1]))).sum())(made)
    return _padding_words(
        _np(made.embedding[...])[0],
        _np(jax.tree.leaves(nnx.state(gradient))[0])[0])


_add("padding_row", "embedding",
     "torch's padding_idx makes the padding token's embedding zero and keeps "
     "it so; Keras' mask_zero only makes a mask, and Flax has neither.",
     {"torch padding_idx=0": (("zero row", "zero gradient"),
                              _torch_padding_row),
      "keras mask_zero=True": (
          ("some row", "some gradient"), _keras_padding_row),
      "flax": (("some row", "some gradient"), _flax_padding_row)})


def _looked_up(row):
    return _yes(np.isnan(row).all(), "NaN", _yes(
        np.array_equal(row, [7, 8]), "the last row", f"{row.tolist()}"))


_ROWS = np.array([[1, 2], [3, 4], [5, 6], [7, 8]], np.float32)


def _numpy_look_up(token):
    return _looked_up(_ROWS[np.array([token])][0])


def _torch_look_up(token):
    import torch
    made = torch.nn.Embedding.from_pretrained(_tensor(_ROWS))
    return _looked_up(_np(made(torch.tensor([token])))[0])


def _keras_look_up(token):
    import keras
    made = keras.layers.Embedding(4, 2)
    made.build(None)
    made.set_weights([_ROWS])
    return _looked_up(_np(made(np.array([token])))[0])


def _jax_look_up(token):
    import jax.numpy as jnp
    return _looked_up(_np(jnp.take(_jnp(_ROWS), _jnp([token]), axis=0))[0])


def _flax_look_up(token):
    from flax import nnx
    made = nnx.Embed(4, 2, rngs=nnx.Rngs(0))
    made.embedding.set_value(_jnp(_ROWS))
    return _looked_up(_np(made(_jnp([token])))[0])


def _look_ups(token, recorded):
    return {who: (value, functools.partial(ask, token)) for (who, ask), value
            in zip({"numpy": _numpy_look_up, "torch": _torch_look_up,
                    "keras": _keras_look_up, "jax jnp.take": _jax_look_up,
                    "flax nnx.Embed": _flax_look_up}.items(), recorded)}


_add("token_beyond_the_table", "embedding",
     "Token 4 of a table of 4: an error in torch and, on a CPU, in "
     "TensorFlow; NaN without a word in JAX and Flax.",
     _look_ups(4, ("IndexError", "IndexError", "InvalidArgumentError", "NaN",
                   "NaN")))

_add("negative_token", "embedding",
     "Token -1, as it stands for a label that does not count: an error in "
     "torch, the last row of the table elsewhere.",
     _look_ups(-1, ("the last row", "IndexError", "the last row",
                    "the last row", "the last row")))


def _one_hot_words(row):
    return _yes(row.any(), f"{row.tolist()}", "zeros")


def _torch_one_hot():
    import torch
    return _one_hot_words(_np(torch.nn.functional.one_hot(
        torch.tensor([4]), 4))[0])


def _keras_one_hot():
    from keras import ops
    return _one_hot_words(_np(ops.one_hot(np.array([4]), 4))[0])


def _jax_one_hot():
    import jax
    return _one_hot_words(_np(jax.nn.one_hot(_jnp([4]), 4))[0])


_add("one_hot_beyond", "embedding",
     "Class 4 of 4 as a one-hot row: torch refuses, the others answer zeros, "
     "and a loss on it is then 0.",
     {"torch": (
          "RuntimeError", _torch_one_hot), "keras": ("zeros", _keras_one_hot),
      "jax": ("zeros", _jax_one_hot)})


# Initialisation


def _deviation(value):
    return float(_np(value).std())


def _torch_init(make):
    import torch
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return _deviation(make(torch.nn))


def _keras_init(make):
    import keras
    made = make(keras.layers)
    made.build((1, 512))
    return _deviation(made.weights[0])


def _flax_init(make):
    from flax import nnx
    return _deviation(make(nnx)[...])


_add("linear_deviation", "initialisation",
     "The deviation of a new 512 × 512 kernel: torch draws evenly up to "
     "1/√512, Keras by Glorot, Flax by LeCun.",
     {"torch": (0.025522, lambda: _torch_init(
         lambda nn: nn.Linear(512, 512).weight)),
      "keras": (0.044245, lambda: _keras_init(
          lambda layers: layers.Dense(512))),
      "flax": (0.044226, lambda: _flax_init(lambda nnx: nnx.Linear(
          512, 512, rngs=nnx.Rngs(0)).kernel))},
     tolerance=0.02)


def _keras_bias():
    import keras
    made = keras.layers.Dense(512)
    made.build((1, 512))
    return _deviation(made.bias)


_add("linear_bias_deviation", "initialisation",
     "The deviation of a new layer's bias: torch draws it, Keras and Flax "
     "begin with 0.",
     {"torch": (0.025951, lambda: _torch_init(
         lambda nn: nn.Linear(512, 4096).bias)),
      "keras": (0.0, _keras_bias),
      "flax": (0.0, lambda: _flax_init(lambda nnx: nnx.Linear(
          512, 512, rngs=nnx.Rngs(0)).bias))},
     tolerance=0.05)


def _keras_query():
    import keras
    made = keras.layers.MultiHeadAttention(8, 64)
    made.build((1, 2, 512), (1, 2, 512))
    return _deviation(made.query_dense.kernel)


_add("attention_deviation", "initialisation",
     "The deviation of a new query kernel of width 512 in 8 heads. torch "
     "draws the three kernels as one matrix, whose outputs are three times as "
     "many, so each is smaller than Xavier makes one alone.",
     {"torch": (0.03125, lambda: _torch_init(
         lambda nn: nn.MultiheadAttention(512, 8).in_proj_weight[:512])),
      "torch kdim=511": (0.044194, lambda: _torch_init(
          lambda nn: nn.MultiheadAttention(512, 8, kdim=511).q_proj_weight)),
      "keras": (0.04427, _keras_query),
      "flax": (0.044226, lambda: _flax_init(
          lambda nnx: _nnx_mha(512, 8).query.kernel))},
     tolerance=0.02)


_add("embedding_deviation", "initialisation",
     "The deviation of a new embedding of width 512: torch's rows have length "
     "√512, Flax's length 1, and Keras draws evenly from -0.05 to 0.05. Only "
     "after a factor of √d do Flax's match torch's.",
     {"torch": (1.0008, lambda: _torch_init(
         lambda nn: nn.Embedding(1000, 512).weight)),
      "keras": (0.02888, lambda: _keras_init(
          lambda layers: layers.Embedding(1000, 512))),
      "flax": (0.044209, lambda: _flax_init(lambda nnx: nnx.Embed(
          1000, 512, rngs=nnx.Rngs(0)).embedding))},
     tolerance=0.02)


def _torch_transformer_init():
    def kernel(nn):
        return nn.Transformer(256, 1, 1, 0, 256).encoder.layers[
            0].linear1.weight
    return _torch_init(kernel)


_add("transformer_deviation", "initialisation",
     "nn.Transformer draws all its matrices again by Xavier, which its layers "
     "by themselves do not. Here a 256 × 256 kernel of a feed-forward network.",
     {"torch nn.Transformer": (0.062583, _torch_transformer_init),
      "torch nn.TransformerEncoderLayer": (0.036063, lambda: _torch_init(
          lambda nn: nn.TransformerEncoderLayer(256, 1, 256).linear1.weight))},
     tolerance=0.02)


def _torch_first_number():
    import torch
    return torch.randn(
        1, generator=torch.Generator().manual_seed(0)).item()


def _keras_first_number():
    import keras
    return float(_np(keras.random.normal((1,), seed=0))[0])


def _jax_first_number():
    import jax
    return float(jax.random.normal(jax.random.key(0), (1,))[0])


_add("first_random_number", "initialisation",
     "The first normal number of seed 0: a generator each, so that equal seeds "
     "mean nothing across frameworks, and weights and masks have to be handed "
     "over.",
     {"numpy": (0.12573, lambda: float(
         np.random.default_rng(0).standard_normal())),
      "torch": (1.541, _torch_first_number),
      "keras": (-1.697, _keras_first_number),
      "jax": (1.6226, _jax_first_number)})


# Dropout


def _dropped(output):
    return _yes((np.asarray(output) == 0).any(), "drops", "does not drop")


def _torch_layer_drops():
    import torch
    with torch.random.fork_rng():
        return _dropped(_np(torch.nn.Dropout()(torch.ones(99))))


def _torch_function_drops():
    import torch
    with torch.random.fork_rng():
        return _dropped(_np(torch.nn.functional.dropout(torch.ones(99))))


def _keras_layer_drops():
    import keras
    return _dropped(_np(keras.layers.Dropout(0.5, seed=0)(np.ones(99))))


def _nnx_layer_drops():
    from flax import nnx
    return _dropped(_np(nnx.Dropout(0.5, rngs=nnx.Rngs(0))(
        _jnp(np.ones(99)))))


def _linen_layer_drops():
    from flax import linen
    return _dropped(_np(linen.Dropout(0.5).apply({}, _jnp(np.ones(99)))))


_add("dropout_unless_told", "dropout",
     "A new dropout layer that is told nothing: torch's and nnx's drop, "
     "Keras' does not, linen's refuses. A forgotten eval() makes a comparison "
     "random.",
     {"torch nn.Dropout": ("drops", _torch_layer_drops),
      "torch F.dropout": ("drops", _torch_function_drops),
      "keras": ("does not drop", _keras_layer_drops),
      "flax nnx": ("drops", _nnx_layer_drops),
      "flax linen": ("ValueError", _linen_layer_drops)})


def _sdpa_drops():
    import torch
    with torch.random.fork_rng(), torch.no_grad():
        return _dropped(_sdpa(*_keys(32), dropout_p=0.5))


def _mha_drops():
    made = _torch_mha(32, 1, dropout=0.5).eval()
    x = _tensor(_values(1, 4, 32).astype(np.float32))
    return _yes(np.array_equal(*(_np(made(x, x, x)[0]) for _ in "12")),
                "does not drop", "drops")


_add("dropout_of_a_function", "dropout",
     "scaled_dot_product_attention has no mode: what it is given as dropout_p "
     "is dropped in evaluation too. The layer above it looks at its mode.",
     {"torch scaled_dot_product_attention": ("drops", _sdpa_drops),
      "torch nn.MultiheadAttention in eval": ("does not drop", _mha_drops)})


def _encoder_layer_places():
    """The dropouts of an encoder layer, by what they stand behind."""
    import torch
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8)
    return (("attention weights", layer.self_attn.dropout),
            ("attention", layer.dropout1.p), ("hidden", layer.dropout.p),
            ("feed-forward", layer.dropout2.p))


def _keras_attention_dropout():
    return float(_keras_mha(4, 1).dropout)


_add("dropout_by_default", "dropout",
     "nn.TransformerEncoderLayer drops 0.1 in four places unless told "
     "otherwise, the paper in two of them; Keras' and Flax's attention drop "
     "nothing.",
     {"torch nn.TransformerEncoderLayer": (
          (("attention weights", 0.1), ("attention", 0.1),
           ("hidden", 0.1), ("feed-forward", 0.1)),
          _encoder_layer_places),
      "keras MultiHeadAttention": (0.0, _keras_attention_dropout),
      "flax nnx.MultiHeadAttention": (0.0, lambda: float(
          _nnx_mha(4, 1).dropout_rate))})


# Loss

_LOGITS = np.array([[[0, 1, 2, 3, 2, 1, 0], [2, 0, 1, 0, 3, 1, 1],
                     [1, 0, 0, 2, 0, 1, 3]],
                    [[3, 1, 0, 1, 0, 2, 0], [0, 2, 1, 1, 1, 0, 2],
                     [1, 1, 0, 0, 2, 1, 0]]], np.float32)
_LABELS = np.array([[2, 4, 0], [5, 0, 0]])


def _reference_loss(labels=_LABELS, smoothing="uniform", share=0.0, pad=0):
    return float(ports.engine("numpy").loss(
        _LOGITS.astype(np.float64), labels, pad, share, smoothing))


_EVERY = np.array([[2, 4, 1], [5, 3, 6]])


def _torch_loss(labels, **more):
    import torch
    return torch.nn.functional.cross_entropy(
        _tensor(_LOGITS).flatten(0, 1), _tensor(labels).flatten(),
        **more).item()


def _keras_smoothed():
    import keras
    return float(keras.losses.CategoricalCrossentropy(
        from_logits=True, label_smoothing=0.1)(np.eye(7)[_EVERY], _LOGITS))


def _optax_smoothed():
    import optax
    labels = optax.smooth_labels(_jnp(np.eye(7, dtype=np.float32)[_EVERY]),
                                 0.1)
    return float(optax.softmax_cross_entropy(_jnp(_LOGITS), labels).mean())


def _smoothing_effect():
    """Each convention's loss against the first."""
    uniform = _reference_loss(_EVERY, "uniform", 0.1)
    return {name: abs(_reference_loss(_EVERY, name, 0.1) / uniform - 1)
            for name in ("others", "kl")}


_add("label_smoothing", "loss",
     "Where ε of the label's weight goes: to all V tokens, to the V - 1 "
     "others, or to the V - 2 that are not padding either, less an entropy. "
     "Here the loss of six predictions, V 7 and ε 0.1.",
     {"torch": (2.1428, lambda: _torch_loss(_EVERY, label_smoothing=0.1)),
      "keras": (2.1428, _keras_smoothed), "optax": (2.1428, _optax_smoothed),
      "reference uniform": (
          2.1428, lambda: _reference_loss(_EVERY, "uniform", 0.1)),
      "reference others": (
          2.1479, lambda: _reference_loss(_EVERY, "others", 0.1)),
      "reference kl": (1.6658, lambda: _reference_loss(_EVERY, "kl", 0.1))},
     effect=Effect("loss against ε over all tokens", _smoothing_effect))


def _takes(function, name):
    import inspect
    return _yes(name in inspect.signature(function).parameters,
                f"takes {name}", f"has no {name}")


def _torch_takes():
    import torch
    return _takes(torch.nn.CrossEntropyLoss, "label_smoothing")


def _keras_takes(name):
    import keras
    return _takes(getattr(keras.losses, name), "label_smoothing")


def _optax_takes():
    import optax
    return _takes(optax.softmax_cross_entropy_with_integer_labels,
                  "label_smoothing")


_add("smoothing_of_integer_labels", "loss",
     "Only torch smooths labels that are given as integers; Keras and Optax "
     "want them as rows of weights first.",
     {"torch CrossEntropyLoss": ("takes label_smoothing", _torch_takes),
      "keras SparseCategoricalCrossentropy": (
          "has no label_smoothing",
          lambda: _keras_takes("SparseCategoricalCrossentropy")),
      "keras CategoricalCrossentropy": (
          "takes label_smoothing",
          lambda: _keras_takes("CategoricalCrossentropy")),
      "optax with integer labels": ("has no label_smoothing", _optax_takes)})


def _keras_loss(labels, weighted=False, **more):
    import keras
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, **more)
    weights = (labels != 0).astype(np.float32) if weighted else None
    return float(loss(labels, _LOGITS, sample_weight=weights))


_add("mean_over_padding", "loss",
     "Three of six labels are padding. torch and Keras told to ignore them "
     "divide by three; Keras given a mask as weights divides by six, and told "
     "nothing every one counts.",
     {"reference": (1.3179, _reference_loss),
      "torch ignore_index": (
          1.3179, lambda: _torch_loss(_LABELS, ignore_index=0)),
      "torch": (1.9452, lambda: _torch_loss(_LABELS)),
      "keras ignore_class": (
          1.3179, lambda: _keras_loss(_LABELS, ignore_class=0)),
      "keras sample_weight": (
          0.65894, lambda: _keras_loss(_LABELS, weighted=True)),
      "keras": (1.9452, lambda: _keras_loss(_LABELS))},
     effect=Effect("a mean over all labels against one over the kept", lambda: {
         "half is padding": abs(_keras_loss(_LABELS, weighted=True)
                                / _reference_loss() - 1)},
         needs=("keras",)))

_add("loss_of_padding_alone", "loss",
     "A batch in which every label is padding: 0/0 in torch, 0 in Keras and "
     "the reference.",
     {"reference": (0.0, lambda: _reference_loss(0 * _LABELS)),
      "torch ignore_index": (
          math.nan, lambda: _torch_loss(0 * _LABELS, ignore_index=0)),
      "keras ignore_class": (
          0.0, lambda: _keras_loss(0 * _LABELS, ignore_class=0))})


def _torch_accumulated():
    """The mean of two batches' means, of 2 labels and of 1."""
    import torch
    return float(np.mean([torch.nn.functional.cross_entropy(
        _tensor(_LOGITS[i]), _tensor(_LABELS[i]), ignore_index=0).item()
        for i in range(2)]))


_add("mean_of_means", "loss",
     "Two batches of different numbers of labels, accumulated: the mean of "
     "their means is not the mean over all labels.",
     {"torch one batch": (
         1.3179, lambda: _torch_loss(_LABELS, ignore_index=0)),
      "torch two batches": (1.3837, _torch_accumulated)},
     effect=Effect("two batches against one", lambda: {
         "2 labels and 1": abs(_torch_accumulated()
                               / _reference_loss() - 1)}, needs=("torch",)))


def _keras_plain_loss():
    import keras
    return float(keras.losses.SparseCategoricalCrossentropy()(
        _EVERY, _LOGITS + 1))


def _optax_loss():
    import optax
    return float(optax.softmax_cross_entropy_with_integer_labels(
        _jnp(_LOGITS), _jnp(_EVERY)).mean())


_add("logits_or_probabilities", "loss",
     "torch's and Optax's losses take logits; Keras' takes probabilities "
     "unless told from_logits=True, and logits handed to it give a number, "
     "but another.",
     {"torch": (2.1118, lambda: _torch_loss(_EVERY)),
      "optax": (2.1118, _optax_loss),
      "keras": (1.9459, _keras_plain_loss),
      "keras from_logits=True": (2.1118, lambda: _keras_loss(_EVERY))},
     effect=Effect("logits read as probabilities", lambda: {
         "six predictions": abs(_keras_plain_loss()
                                / _reference_loss(_EVERY, pad=-1) - 1)
     }, needs=("keras",)))


def _torch_class_axis(axis):
    import torch
    logits = np.moveaxis(_LOGITS, -1, axis)
    return _yes(math.isfinite(torch.nn.functional.cross_entropy(
        _tensor(logits), _tensor(_EVERY)).item()), "accepted", "not finite")


_add("class_axis", "loss",
     "torch wants the classes on axis 1, Keras and Optax on the last. Where "
     "there are as many positions as classes nothing fails.",
     {"torch [B V T]": ("accepted", lambda: _torch_class_axis(1)),
      "torch [B T V]": ("RuntimeError", lambda: _torch_class_axis(-1)),
      "keras [B T V]": ("accepted", lambda: _yes(math.isfinite(
          _keras_loss(_EVERY)), "accepted", "not finite")),
      "optax [B T V]": ("accepted", lambda: _yes(math.isfinite(
          _optax_loss()), "accepted", "not finite"))})


# Optimiser


def _torch_moves(name, gradients, dtype="float64", start=0.0, **more):
    """How far each weight has gone after each step, gradients [step, n]."""
    import torch
    weights = torch.full((len(gradients[0]),), start,
                         dtype=getattr(torch, dtype), requires_grad=True)
    optimiser = getattr(torch.optim, name)([weights], **more)
    for row in gradients:
        weights.grad = torch.tensor(row, dtype=weights.dtype)
        optimiser.step()
    return _np(weights) - start


def _keras_moves(name, gradients, dtype="float64", start=0.0, **more):
    import keras
    weights = keras.Variable(np.full(len(gradients[0]), start), dtype=dtype)
    optimiser = getattr(keras.optimizers, name)(**more)
    for row in gradients:
        optimiser.apply([keras.ops.convert_to_tensor(
            np.array(row, dtype))], [weights])
    return _np(weights) - start


def _optax_moves(made, gradients, dtype="float64", start=0.0):
    import optax
    with _x64(dtype == "float64"):
        weights = _jnp(np.full(len(gradients[0]), start, dtype))
        state = made.init(weights)
        for row in gradients:
            updates, state = made.update(
                _jnp(np.array(row, dtype)), state, weights)
            weights = optax.apply_updates(weights, updates)
        return _np(weights) - start


def _optax_made(name, *args, **more):
    import optax
    return getattr(optax, name)(*args, **more)


def _effective(move, rate):
    """ε of a first step g / (|g| + ε), from how far g = 1e-8 moved."""
    share = float(-move[0] / rate)
    return 1e-8 / share - 1e-8


_SMALL = [[1e-8]]

_add("adam_epsilon", "optimiser",
     "The ε that a first step of Adam divides by. Keras' default is 1e-7, and "
     "by its place it acts as 1e-7 / √(1 - β₂ᵗ), thirty times that at first.",
     {"torch": (1e-08, lambda: _effective(
         _torch_moves("Adam", _SMALL, lr=1.0), 1)),
      "keras": (3.1623e-06, lambda: _effective(_keras_moves(
          "Adam", _SMALL, learning_rate=1.0), 1)),
      "optax": (1e-08, lambda: _effective(
          _optax_moves(_optax_made("adam", 1.0), _SMALL), 1))})

_STEADY = [[1e-1, 1e-4, 1e-7, 1e-9]] * 3


def _travelled(moves):
    return tuple(float(m) for m in moves)


def _adam_effect():
    """Keras' steps against torch's, ε 1e-9 and 1e-7, usual gradients."""
    found = {}
    for eps in (1e-9, 1e-7):
        for size in (1e-2, 1e-7):
            gradients = [[size]] * 3
            found[f"ε {eps:g}, gradient {size:g}"] = _gap(
                _keras_moves("Adam", gradients, learning_rate=1.0,
                             epsilon=eps),
                _torch_moves("Adam", gradients, lr=1.0, eps=eps))
    return found


_add("adam_epsilon_place", "optimiser",
     "torch and Optax add ε to the corrected √v, Keras to √v before its "
     "correction. Here three steps of rate 1 with ε 1e-9 and gradients 1e-1, "
     "1e-4, 1e-7, 1e-9: no constant ε makes Keras' those of torch.",
     {"torch": ((-3.0, -3.0, -2.9703, -1.5), lambda: _travelled(_torch_moves(
         "Adam", _STEADY, lr=1.0, eps=1e-9))),
      "optax": ((-3.0, -3.0, -2.9703, -1.5), lambda: _travelled(_optax_moves(
          _optax_made("adam", 1.0, eps=1e-9), _STEADY))),
      "keras": (
          (-3.0, -2.9993, -2.4225, -0.12535), lambda: _travelled(_keras_moves(
          "Adam", _STEADY, learning_rate=1.0, epsilon=1e-9)))},
     effect=Effect("Keras' steps against torch's", _adam_effect,
                   hidden=("ε 1e-09, gradient 0.01",),
                   needs=("keras", "torch")))


def _powers(moves):
    """How exactly a first step, which is 1 with ε 0, was computed."""
    return _yes(abs(abs(moves[0]) - 1) < 1e-9, "float64", "float32")


_add("adam_correction_precision", "optimiser",
     "1 - β₁ᵗ and 1 - β₂ᵗ of a float64 run: torch computes them in float64, "
     "and Optax too where JAX has 64 bits; Keras in float32, where 1 - 0.999 "
     "has lost three digits of seven. A lockstep in float64 shows it at once.",
     {"torch": ("float64", lambda: _powers(_torch_moves(
         "Adam", [[1.0]], lr=1.0, eps=0.0))),
      "keras": ("float32", lambda: _powers(_keras_moves(
          "Adam", [[1.0]], learning_rate=1.0, epsilon=0.0))),
      "optax": ("float64", lambda: _powers(_optax_moves(
          _optax_made("adam", 1.0, eps=0.0), [[1.0]])))},
     effect=Effect("a first step against 1", lambda: {
         "keras": float(abs(_keras_moves(
             "Adam", [[1.0]], learning_rate=1.0, epsilon=0.0)[0] + 1))},
         hidden=("keras",), needs=("keras",)))


def _decay_kind(moves):
    """A weight of 1, no gradient, decay 0.1, rate 0.01."""
    step = float(-moves[0])
    if abs(step) < 1e-9:
        return "none"
    return _yes(step > 5e-3, "in the gradient", "beside the step")


_add("weight_decay_kind", "optimiser",
     "weight_decay of Adam: torch adds it to the gradient, and Adam then "
     "scales it away; Keras subtracts it from the weight, as AdamW does "
     "everywhere.",
     {"torch Adam": ("in the gradient", lambda: _decay_kind(_torch_moves(
         "Adam", [[0.0]], start=1.0, lr=0.01, weight_decay=0.1))),
      "torch AdamW": ("beside the step", lambda: _decay_kind(_torch_moves(
          "AdamW", [[0.0]], start=1.0, lr=0.01, weight_decay=0.1))),
      "keras Adam": ("beside the step", lambda: _decay_kind(_keras_moves(
          "Adam", [[0.0]], start=1.0, learning_rate=0.01, weight_decay=0.1))),
      "keras AdamW": ("beside the step", lambda: _decay_kind(_keras_moves(
          "AdamW", [[0.0]], start=1.0, learning_rate=0.01,
          weight_decay=0.1))),
      "optax adamw": ("beside the step", lambda: _decay_kind(_optax_moves(
          _optax_made("adamw", 0.01, weight_decay=0.1), [[0.0]],
          start=1.0)))})

_add("weight_decay_default", "optimiser",
     "The decay that AdamW has unless told: a hundred times as much in torch "
     "as in Optax.",
     {"torch": (0.01, lambda: float(-_torch_moves(
         "AdamW", [[0.0]], start=1.0, lr=0.1)[0] / 0.1)),
      "keras": (0.004, lambda: float(-_keras_moves(
          "AdamW", [[0.0]], start=1.0, learning_rate=0.1)[0] / 0.1)),
      "optax": (0.0001, lambda: float(-_optax_moves(
          _optax_made("adamw", 0.1), [[0.0]], start=1.0)[0] / 0.1))})

_add("learning_rate_default", "optimiser",
     "The rate of Adam and SGD unless told: Keras' SGD goes ten times as far "
     "as torch's, and Optax wants to be told.",
     {"torch Adam": (0.001, lambda: float(-_torch_moves(
         "Adam", [[1.0]], eps=0.0)[0])),
      "torch SGD": (0.001, lambda: float(-_torch_moves("SGD", [[1.0]])[0])),
      "keras Adam": (0.001, lambda: float(-_keras_moves(
          "Adam", [[1.0]], epsilon=0.0)[0])),
      "keras SGD": (0.01, lambda: float(-_keras_moves("SGD", [[1.0]])[0])),
      "optax adam": ("TypeError", lambda: _optax_made("adam")),
      "optax sgd": ("TypeError", lambda: _optax_made("sgd"))})


def _torch_clipped():
    import torch
    weights = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    weights.grad = torch.tensor([3.0, 4.0], dtype=torch.float64)
    torch.nn.utils.clip_grad_norm_([weights], 1.0)
    return weights.grad.norm().item()


def _tf_clipped():
    import tensorflow as tf
    clipped, _ = tf.clip_by_global_norm([np.array([3.0, 4.0])], 1.0)
    return float(np.linalg.norm(_np(clipped[0])))


def _optax_clipped():
    with _x64(True):
        made = _optax_made("clip_by_global_norm", 1.0)
        gradient = _jnp(np.array([3.0, 4.0]))
        return float(np.linalg.norm(_np(made.update(
            gradient, made.init(gradient))[0])))


def _exactly_one(norm):
    return _yes(abs(norm - 1) < 1e-12, "1", "below 1")


_add("norm_after_clipping", "optimiser",
     "The norm of a gradient clipped to 1: torch divides by the norm and 1e-6, "
     "so that it ends a little below.",
     {"torch": ("below 1", lambda: _exactly_one(_torch_clipped())),
      "tensorflow": ("1", lambda: _exactly_one(_tf_clipped())),
      "optax": ("1", lambda: _exactly_one(_optax_clipped()))},
     effect=Effect("torch's norm against 1", lambda: {
         "norm 5": 1 - _torch_clipped()}, hidden=("norm 5",),
         needs=("torch",)))


def _keras_clip_scope(**more):
    """Gradients 3 and 4 of two variables: clipped together or each."""
    import keras
    weights = [keras.Variable(np.zeros(1), dtype="float64") for _ in "12"]
    keras.optimizers.SGD(1.0, **more).apply(
        [keras.ops.convert_to_tensor(np.array([g])) for g in (3.0, 4.0)],
        weights)
    return tuple(float(-_np(w)[0]) for w in weights)


def _torch_clip_scope():
    import torch
    weights = [torch.zeros(1, dtype=torch.float64, requires_grad=True)
               for _ in "12"]
    for weight, gradient in zip(weights, (3.0, 4.0)):
        weight.grad = torch.full((1,), gradient, dtype=torch.float64)
    torch.nn.utils.clip_grad_norm_(weights, 1.0)
    return tuple(w.grad.item() for w in weights)


_add("clipping_scope", "optimiser",
     "Keras' clipnorm clips each variable's gradient by its own norm, which "
     "turns the whole; global_clipnorm clips all by one factor, as torch does. "
     "Here gradients 3 and 4 of two variables, clipped to 1.",
     {"torch clip_grad_norm_": ((0.6, 0.8), _torch_clip_scope),
      "keras clipnorm": ((1.0, 1.0), lambda: _keras_clip_scope(clipnorm=1.0)),
      "keras global_clipnorm": (
          (0.6, 0.8), lambda: _keras_clip_scope(global_clipnorm=1.0))},
     effect=Effect("each alone against all together", lambda: {
         "3 and 4": _gap(_keras_clip_scope(clipnorm=1.0),
                         _keras_clip_scope(global_clipnorm=1.0))},
         needs=("keras",)))


def _torch_first_step():
    import torch
    seen = []
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: seen.append(step) or 1.0)
    return seen[0]


def _keras_first_step():
    import keras
    seen = []

    class Schedule(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            seen.append(int(step))
            return 1.0

        def get_config(self):
            return {}

    weights = keras.Variable(np.zeros(1))
    keras.optimizers.SGD(Schedule()).apply(
        [keras.ops.convert_to_tensor(np.ones(1, np.float32))], [weights])
    return seen[-1]


def _optax_first_step():
    seen = []
    made = _optax_made("sgd", lambda step: seen.append(int(step)) or 1.0)
    weights = _jnp(np.zeros(1))
    made.update(weights, made.init(weights))
    return seen[0]


def _warm_up_effect():
    """The paper's rate counted from 0 against from 1, at the 10th update."""
    def rate(step):
        return min(step**-0.5, step * 4000**-1.5)

    return {"10th update": 1 - rate(9) / rate(10)}


_add("first_step_of_a_schedule", "optimiser",
     "Which number a schedule is given for the first update: 0 everywhere, "
     "where the paper's formula, counted from 1, divides by the step.",
     {"torch": (0, _torch_first_step), "keras": (0, _keras_first_step),
      "optax": (0, _optax_first_step)},
     effect=Effect("the paper's rate counted from 0", _warm_up_effect))


def _torch_two_rates():
    import torch
    weights = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.SGD([weights], lr=1.0, momentum=0.9)
    for rate in (1.0, 0.5):
        optimiser.param_groups[0]["lr"] = rate
        weights.grad = torch.ones(1, dtype=torch.float64)
        optimiser.step()
    return -weights.item()


def _keras_two_rates():
    import keras
    weights = keras.Variable(np.zeros(1), dtype="float64")
    optimiser = keras.optimizers.SGD(1.0, momentum=0.9)
    for rate in (1.0, 0.5):
        optimiser.learning_rate = rate
        optimiser.apply([keras.ops.convert_to_tensor(np.ones(1))], [weights])
    return float(-_np(weights)[0])


def _optax_two_rates():
    made = _optax_made("sgd", lambda step: 1.0 - 0.5 * step, momentum=0.9)
    return float(-_optax_moves(made, [[1.0]] * 2)[0])


_add("momentum_and_rate", "optimiser",
     "Momentum keeps gradients in torch and Optax, and steps, rate included, "
     "in Keras. Two steps with gradient 1 at rates 1 and ½: the same while the "
     "rate stands, another as soon as it falls.",
     {"torch": (1.95, _torch_two_rates), "optax": (1.95, _optax_two_rates),
      "keras": (2.4, _keras_two_rates)})


# Precision


def _torch_dtype(value, **more):
    import torch
    return _dtype_name(torch.tensor(value, **more))


def _tf_dtype(value, **more):
    import tensorflow as tf
    return _dtype_name(tf.constant(value, **more))


def _keras_dtype(value):
    from keras import ops
    return _dtype_name(ops.convert_to_tensor(value))


def _jax_dtype(value, **more):
    import jax.numpy as jnp
    return _dtype_name(jnp.array(value, **more))


_add("dtype_of_a_float", "precision",
     "What a plain 1.0 becomes: float64 in NumPy, float32 elsewhere.",
     {"numpy": ("float64", lambda: _dtype_name(np.array(1.0))),
      "torch": ("float32", lambda: _torch_dtype(1.0)),
      "tensorflow": ("float32", lambda: _tf_dtype(1.0)),
      "jax": ("float32", lambda: _jax_dtype(1.0))})

_add("dtype_of_an_integer", "precision",
     "What a plain 1 becomes: 64 bits in NumPy and torch, 32 elsewhere.",
     {"numpy": ("int64", lambda: _dtype_name(np.array(1))),
      "torch": ("int64", lambda: _torch_dtype(1)),
      "tensorflow": ("int32", lambda: _tf_dtype(1)),
      "keras": ("int32", lambda: _keras_dtype(1)),
      "jax": ("int32", lambda: _jax_dtype(1))})


def _torch_float64():
    import torch
    return _torch_dtype(1.0, dtype=torch.float64)


def _jax_with_x64():
    with _x64(True):
        return _jax_dtype(1.0, dtype="float64")


_add("float64_asked_for", "precision",
     "What float64 becomes when it is asked for by name. JAX makes it float32 "
     "with a warning until jax_enable_x64 is set, and a proof in float64 is "
     "then none.",
     {"torch": ("float64", _torch_float64),
      "tensorflow": ("float64", lambda: _tf_dtype(1.0, dtype="float64")),
      "jax": ("float32", lambda: _jax_dtype(1.0, dtype="float64")),
      "jax with x64": ("float64", _jax_with_x64)})


_WIDE = np.ones((2, 2))


def _torch_layer_dtype():
    import torch
    return _dtype_name(torch.nn.Linear(2, 2)(_tensor(_WIDE)))


def _keras_layer_dtype():
    import keras
    return _dtype_name(keras.layers.Dense(2)(
        keras.ops.convert_to_tensor(_WIDE)))


def _flax_layer_dtype():
    from flax import nnx
    with _x64(True):
        return _dtype_name(nnx.Linear(2, 2, rngs=nnx.Rngs(0))(_jnp(_WIDE)))


_add("float64_into_a_layer", "precision",
     "Float64 handed to a layer made without a dtype: torch refuses, Keras "
     "rounds it to float32 without a word, Flax widens its float32 weights.",
     {"torch": ("RuntimeError", _torch_layer_dtype),
      "keras": ("float32", _keras_layer_dtype),
      "flax with x64": ("float64", _flax_layer_dtype)})

#: Above half a unit of float16 by less than float32 can hold.
_TWICE = 1 + 2.0**-11 + 2.0**-40


def _rounding(value):
    return _yes(value == 1, "twice, by way of float32", "once")


def _torch_half():
    import torch
    return _rounding(torch.tensor(_TWICE, dtype=torch.float64).half().item())


def _tf_half():
    import tensorflow as tf
    return _rounding(float(tf.cast(tf.constant(_TWICE, tf.float64),
                                   tf.float16)))


def _jax_half():
    with _x64(True):
        return _rounding(float(_jnp(np.float64(_TWICE)).astype("float16")))


_add("float64_to_float16", "precision",
     "Rounding float64 to float16 by way of float32 rounds twice, and one "
     "number in some ten thousand ends a unit off.",
     {"numpy": ("once", lambda: _rounding(float(np.float16(_TWICE)))),
      "torch": (
          "twice, by way of float32",
          _torch_half), "tensorflow": ("twice, by way of float32", _tf_half),
      "jax": ("once", _jax_half)})

_TORCH_SWITCHES = (
    "import torch; print((torch.get_float32_matmul_precision(), "
    "torch.backends.cudnn.allow_tf32))")
_TF_SWITCHES = (
    "import tensorflow as tf; "
    "print((tf.config.experimental.tensor_float_32_execution_enabled(),))")
_JAX_SWITCHES = (
    "import jax; print((jax.config.jax_default_matmul_precision, "
    "jax.config.jax_enable_x64))")

_add("process_precision", "precision",
     "What a new process allows float32 products on a GPU: torch computes "
     "matrix products in full and convolutions in TF32, TensorFlow all in "
     "TF32, and JAX leaves it to the device.",
     {"torch matmul": ("highest", lambda: _fresh(_TORCH_SWITCHES)[0]),
      "torch cudnn.allow_tf32": (
          "True", lambda: str(_fresh(_TORCH_SWITCHES)[1])),
      "tensorflow tensor_float_32": (
          "True", lambda: str(_fresh(_TF_SWITCHES)[0])),
      "jax default_matmul_precision": (
          "None", lambda: str(_fresh(_JAX_SWITCHES)[0])),
      "jax enable_x64": ("False", lambda: str(_fresh(_JAX_SWITCHES)[1]))})


def _largest_accepted(accepts):
    """The largest relative error at 1 that a comparison accepts."""
    low, high = 1e-12, 1.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if accepts(middle) else (low, middle)
    return low


def _passes(check, *args, **more):
    try:
        return check(*args, **more) is not False
    except (AssertionError, ValueError):
        return False


def _torch_accepts(dtype):
    import torch
    dtype = getattr(torch, dtype)
    return _largest_accepted(lambda error: _passes(
        torch.testing.assert_close, torch.tensor([1 + error], dtype=dtype),
        torch.ones(1, dtype=dtype)))


def _jax_accepts():
    import jax.numpy as jnp
    with _x64(True):
        return _largest_accepted(lambda error: bool(jnp.allclose(
            jnp.array([1 + error]), jnp.ones(1))))


def _tf_accepts():
    import tensorflow as tf
    return _largest_accepted(lambda error: not _raises(
        lambda: tf.debugging.assert_near(
            tf.constant([1 + error], tf.float32), tf.ones([1]))))


def _raises(function):
    try:
        function()
    except Exception:
        return True
    return False


_add("tolerance_by_default", "precision",
     "The largest relative error at 1 that a comparison lets pass unless "
     "told: five orders lie between the strictest and the laxest.",
     {"numpy allclose": (1.001e-05, lambda: _largest_accepted(
         lambda error: np.allclose([1 + error], [1]))),
      "numpy assert_allclose": (1e-07, lambda: _largest_accepted(
          lambda error: _passes(
              np.testing.assert_allclose, [1 + error], [1]))),
      "torch assert_close float64": (2e-07, lambda: _torch_accepts("float64")),
      "torch assert_close float32": (
          1.1265e-05, lambda: _torch_accepts("float32")),
      "torch assert_close bfloat16": (
          0.019531, lambda: _torch_accepts("bfloat16")),
      "tensorflow assert_near float32": (2.3246e-06, _tf_accepts),
      "jax allclose": (1.001e-05, _jax_accepts)},
     tolerance=0.1)


def _nan_words(passed):
    return _yes(passed, "equal", "not equal")


def _torch_nan():
    import torch
    nan = torch.tensor([math.nan])
    return _nan_words(_passes(torch.testing.assert_close, nan, nan))


def _jax_nan():
    import jax.numpy as jnp
    nan = jnp.array([jnp.nan])
    return _nan_words(bool(jnp.allclose(nan, nan)))


_add("nan_in_comparisons", "precision",
     "Whether NaN equals NaN: only in NumPy's assert_allclose, so that two "
     "broken outputs pass there.",
     {"numpy allclose": ("not equal", lambda: _nan_words(
         np.allclose([np.nan], [np.nan]))),
      "numpy assert_allclose": ("equal", lambda: _nan_words(_passes(
          np.testing.assert_allclose, [np.nan], [np.nan]))),
      "torch assert_close": ("not equal", _torch_nan),
      "jax allclose": ("not equal", _jax_nan)})


def _shape_words(passed):
    return _yes(passed, "accepted", "refused")


def _torch_shapes():
    import torch
    return _shape_words(_passes(torch.testing.assert_close,
                                torch.ones(3, 1), torch.ones(1, 3)))


def _jax_shapes():
    import jax.numpy as jnp
    return _shape_words(bool(jnp.allclose(jnp.ones((3, 1)),
                                          jnp.ones((1, 3)))))


_add("shapes_in_comparisons", "precision",
     "Ones of shape [3 1] against ones of [1 3]: allclose spreads them out "
     "and is content.",
     {"numpy allclose": ("accepted", lambda: _shape_words(
         np.allclose(np.ones((3, 1)), np.ones((1, 3))))),
      "numpy assert_allclose": ("refused", lambda: _shape_words(_passes(
          np.testing.assert_allclose, np.ones((3, 1)), np.ones((1, 3))))),
      "torch assert_close": ("refused", _torch_shapes),
      "jax allclose": ("accepted", _jax_shapes)})


# Decoding


def _torch_argmax():
    import torch
    return torch.zeros(1000).argmax().item()


def _keras_argmax():
    from keras import ops
    return int(ops.argmax(np.zeros(1000, np.float32)))


def _jax_argmax():
    return int(_jnp(np.zeros(1000)).argmax())


_add("ties_of_argmax", "decoding",
     "The largest of a thousand equal numbers: the first, in all of them.",
     {"numpy": (0, lambda: int(np.zeros(1000).argmax())),
      "torch": (0, _torch_argmax), "keras": (0, _keras_argmax),
      "jax": (0, _jax_argmax)})


def _in_order(indices):
    return _yes(list(map(int, indices)) == [0, 1, 2, 3], "the first four",
                "some four")


def _torch_top():
    import torch
    return _in_order(torch.zeros(1000).topk(4).indices)


def _keras_top():
    from keras import ops
    return _in_order(_np(ops.top_k(np.zeros(1000, np.float32), 4)[1]))


def _jax_top():
    import jax
    return _in_order(jax.lax.top_k(_jnp(np.zeros(1000)), 4)[1])


_add("ties_of_top_k", "decoding",
     "The four largest of a thousand equal numbers: torch promises no order "
     "and keeps none, so that beams with equal scores part.",
     {"torch": (
          "some four", _torch_top), "keras": ("the first four", _keras_top),
      "jax": ("the first four", _jax_top)})


def _winner(score):
    """Of two hypotheses, the one that a rule prefers."""
    short, long = score(-4.0, 4), score(-5.2, 7)
    return _yes(short > long, "the short one", "the long one")


_add("length_rule", "decoding",
     "A hypothesis of 4 tokens and log-probability -4 against one of 7 and "
     "-5.2. The sum and the paper's ((5 + L) / 6)^0.6 prefer the short one, "
     "the mean and an exponent of 1 the long one.",
     {"numpy sum": (
          "the short one", lambda: _winner(lambda total, length: total)),
      "numpy mean": ("the long one", lambda: _winner(
          lambda total, length: total / length)),
      "numpy ((5 + L) / 6)^0.6": ("the short one", lambda: _winner(
          lambda total, length: total / ((5 + length) / 6) ** 0.6)),
      "numpy ((5 + L) / 6)^1": ("the long one", lambda: _winner(
          lambda total, length: total / ((5 + length) / 6)))})


def _first_beams(live):
    """How many different tokens two beams have after their first step."""
    log_probs = np.log([0.5, 0.3, 0.2])
    start = np.array([0.0, 0.0 if live == 2 else -np.inf])
    scores = (start[:, None] + log_probs).ravel()
    best = np.argsort(-scores, kind="stable")[:2]
    return len(set(best % 3))


_add("live_beams_at_first", "decoding",
     "All beams begin with the same token. If all count at the first step "
     "they choose the same one, and stay copies of each other: here the "
     "different tokens of two beams.",
     {"numpy one beam live": (2, lambda: _first_beams(1)),
      "numpy two beams live": (1, lambda: _first_beams(2))})


def _padding_side(row):
    return tuple(int(i) for i in row)


def _torch_padded():
    import torch
    return _padding_side(torch.nn.utils.rnn.pad_sequence(
        [torch.tensor([5, 6]), torch.tensor([1, 2, 3])],
        batch_first=True)[0])


def _keras_padded():
    import keras
    return _padding_side(keras.utils.pad_sequences([[5, 6], [1, 2, 3]])[0])


def _words_tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers
    made = Tokenizer(models.WordLevel(
        {"[PAD]": 0, "a": 1, "b": 2, "c": 3, "[UNK]": 4},
        unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return made


def _tokenizers_padded():
    made = _words_tokenizer()
    made.enable_padding()
    return _padding_side(made.encode_batch(["b c", "a b c"])[0].ids)


_add("padding_side", "decoding",
     "A row of two tokens padded to three: Keras pads on the left, which "
     "moves every position, the others on the right. All pad with 0, also "
     "where 0 is a word.",
     {"torch pad_sequence": ((5, 6, 0), _torch_padded),
      "keras pad_sequences": ((0, 5, 6), _keras_padded),
      "tokenizers": ((2, 3, 0), _tokenizers_padded)})


def _keras_truncated():
    import keras
    return _padding_side(keras.utils.pad_sequences([[1, 2, 3]], maxlen=2)[0])


def _tokenizers_truncated():
    made = _words_tokenizer()
    made.enable_truncation(2)
    return _padding_side(made.encode("a b c").ids)


_add("truncation_side", "decoding",
     "Tokens 1, 2, 3 cut to two: Keras keeps the end, Tokenizers the "
     "beginning.",
     {"keras pad_sequences": ((2, 3), _keras_truncated),
      "tokenizers": ((1, 2), _tokenizers_truncated)})


def _decoded(special):
    made = _words_tokenizer()
    if special:
        made.add_special_tokens(["[PAD]"])
    return made.decode([0, 1, 2])


def _prefixed():
    from tokenizers import pre_tokenizers
    return pre_tokenizers.ByteLevel().pre_tokenize_str("a")[0][0]


_add("decoded_tokens", "decoding",
     "Decoding leaves out special tokens unless told not to, and only those "
     "that were registered as special.",
     {"tokenizers registered": ("a b", lambda: _decoded(True)),
      "tokenizers not registered": ("[PAD] a b", lambda: _decoded(False))})

_add("space_before_the_first_word", "decoding",
     "ByteLevel puts a space, shown as Ġ, before the first word unless told "
     "not to, so that a sentence and its own beginning are cut alike or not.",
     {"tokenizers ByteLevel": ("Ġa", _prefixed)})
