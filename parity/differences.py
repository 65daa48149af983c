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
    "OpenNMT": "they are not installed; the rows position_divisor, "
    "position_layout and label_smoothing show their arithmetic",
    "keras_hub's layers and samplers": "it is not among this project's "
    "dependencies",
    "Hugging Face's length penalty, early stopping and caches":
    "it is not among this project's dependencies",
    "when a beam search stops": "no installed library searches with beams",
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
     "shrinks by a tenth or by half.",
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
     "with torch's std divides by D - 1, which makes every output smaller by "
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
     "A hidden score becomes a number, and a kept one that is lower still "
     "loses to it: Keras takes -1e9, in float16 -3e4, where JAX and Flax take "
     "the dtype's lowest, or nearly so, and torch -∞. Here the kept score is "
     "-2e9, in float16 -4e4. A constant of -1e4 is too small even for scores "
     "that are met.",
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


def _torch_batch_axis(make, *more):
    """Which axis is the batch: along it, nothing is mixed."""
    import torch
    made = make().eval()
    x = _tensor(_values(3, 4, 6).astype(np.float32))
    other = x.clone()
    other[0] += 1
    found = made(*[x] * (1 + len(more)))
    changed = made(*[other] * (1 + len(more)))
    found, changed = (y[0] if isinstance(y, tuple) else y
                      for y in (found, changed))
    return _yes(torch.equal(found[1], changed[1]), "batch first",
                "position first")


def _torch_attention_axis():
    import torch
    return _torch_batch_axis(
        lambda: torch.nn.MultiheadAttention(6, 2), "key", "value")


def _torch_encoder_axis():
    import torch
    return _torch_batch_axis(
        lambda: torch.nn.TransformerEncoderLayer(6, 2, 8))


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


def _sown(dtype):
    """nnx's attention with its weights kept against without."""
    made = _nnx_mha(32, 4, dtype=dtype, param_dtype=dtype)
    x = _jnp(_values(2, 16, 32)).astype(dtype)
    return (_np(made(x, sow_weights=True).astype("float32")),
            _np(made(x).astype("float32")))


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
