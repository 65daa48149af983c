"""A question to the frameworks, and their answers.

A framework is imported inside an answer and nowhere else. If one is not
installed, its answers are not checked, and the others are.
"""

import dataclasses
import functools
import importlib
import importlib.metadata
import math
import os
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from parity_io.errors import not_installed
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

#: A framework -> the first words of its answerers: its own, and of what is
#: built on it.
SIDES = {
    "numpy": ("numpy", "reference"),
    "torch": ("torch",),
    "keras": ("keras", "tensorflow"),
    "jax": ("jax", "flax", "optax"),
    "onnx": ("onnx",),
    "tokenizers": ("tokenizers",),
}

#: Those that need only NumPy, and so do not answer for a framework.
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
    """How much outputs differ.

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

    def probe(self, left_out):
        """{answerer: its answer now, or a NotChecked}."""
        return {who: answer(who, ask, left_out)
                for who, ask in self.answers.items()}


@dataclasses.dataclass(frozen=True)
class Found:
    """The result of demonstrate.

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
        reasons: dict[str, list[str]] = {}
        for who in self.missing:
            reasons.setdefault(self.answers[who].reason, []).append(who)
        return "; ".join(f"{', '.join(names)}: {reason}"
                         for reason, names in reasons.items())

    def as_json(self):
        """Plain data; NaN and infinity as text."""
        effect = self.known.effect
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
            "effect": {
                "about": effect.about, "values": plain(self.effect),
                "hidden": list(effect.hidden)}
            if effect and isinstance(self.effect, dict) else None,
        }


def framework(answerer):
    """The first word of an answerer: the framework that it needs."""
    return answerer.split()[0]


@functools.cache
def absent(name):
    """Why a framework cannot be asked, or None."""
    if words := not_installed(NEEDS[name]):
        return words
    try:
        if name in ("keras", "tensorflow"):
            os.environ.setdefault("KERAS_BACKEND", "tensorflow")
            os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
            ports.engine("keras")  # whose import hides TensorFlow's log
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


def answer(answerer, ask, left_out=MappingProxyType({})):
    """An answer, the name of the exception raised, or a NotChecked.

    JAX answers in its own default precision, whatever the process has set.

    Args:
        left_out: {framework: why it is not asked}.
    """
    name = framework(answerer)
    if reason := left_out.get(name) or absent(name):
        return ports.NotChecked(answerer, reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if "jax" in NEEDS[name]:
                with x64(False):
                    return ask()
            return ask()
        except Exception as error:
            return type(error).__name__


def same(answer, recorded, tolerance):
    """Whether an answer is the recorded one: words and integers exactly."""
    if isinstance(recorded, tuple):
        return (isinstance(answer, tuple) and len(answer) == len(recorded)
                and all(same(a, b, tolerance)
                        for a, b in zip(answer, recorded)))
    if isinstance(recorded, float):
        if type(answer) not in (int, float):
            return False
        if math.isnan(recorded):
            return math.isnan(answer)
        return math.isclose(answer, recorded, rel_tol=tolerance, abs_tol=1e-15)
    return type(answer) is type(recorded) and answer == recorded


def demonstrate(known, left_out=MappingProxyType({})):
    """Ask all answerers of a Known, measure its effect; a Found.

    Args:
        left_out: {framework: why it is not asked}.
    """
    answers = known.probe(left_out)
    missing = tuple(who for who, current in answers.items()
                    if isinstance(current, ports.NotChecked))
    changed = tuple(
        who for who, current in answers.items() if who not in missing
        and not same(current, known.expected[who], known.tolerance))
    return Found(known, answers, measured(known.effect, left_out), changed,
                 missing)


def measured(effect, left_out):
    """An effect's numbers; None without one; a NotChecked where it cannot."""
    if effect is None:
        return None
    for name in effect.needs:
        if reason := left_out.get(name) or absent(name):
            return ports.NotChecked(name, reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if any("jax" in NEEDS[name] for name in effect.needs):
            with x64(False):
                return effect.measure()
        return effect.measure()


def versions(names):
    """{distribution: version} of what these frameworks need, if installed."""
    installed = {"numpy": np.__version__}
    for name in names:
        for need in NEEDS[name]:
            for distribution in (need, f"{need}-cpu"):
                try:
                    installed[need] = importlib.metadata.version(distribution)
                    break
                except importlib.metadata.PackageNotFoundError:
                    continue
    return installed


def frameworks(demonstrations):
    """The frameworks asked, in the order of NEEDS."""
    names = {framework(who) for one in demonstrations for who in one.answers}
    return [name for name in NEEDS if name in names]


def shown(value):
    """An answer as text."""
    if isinstance(value, ports.NotChecked):
        return UNCHECKED
    if isinstance(value, tuple):
        return "(" + ", ".join(map(shown, value)) + ")"
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else f"{value:.4g}"
    return str(value)


def plain(value):
    """An answer as JSON data."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else str(value)
    return value


#: name -> Known, as the topics' files add them.
ADDED: dict[str, Known] = {}


def add(name, topic, about, answers, tolerance=1e-3, effect=None):
    """Register a row; ``answers`` is answerer -> (recorded, function)."""
    assert name not in ADDED and topic in TOPICS, name
    ADDED[name] = Known(
        name, topic, about,
        {who: ask for who, (_, ask) in answers.items()},
        {who: recorded for who, (recorded, _) in answers.items()},
        tolerance, effect)


def x64(on):
    """A context in which JAX has 64-bit numbers, or has not."""
    import jax
    try:
        return jax.enable_x64(on)
    except AttributeError:
        from jax.experimental import enable_x64
        return enable_x64(on)
