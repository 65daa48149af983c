"""The one exception for a user's mistake, and sentences of many places."""

import difflib
import importlib.util
import numbers
import re

#: What moves a cursor, colours a terminal or turns the direction of writing.
CONTROL = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")


class InputError(ValueError):
    """An input cannot be used.

    The message is one sentence that names the input and says what to do. The
    command line prints it and exits with status 2; it never shows a traceback.
    """


def plural(count, thing):
    """How many there are of a thing, in words: 1 step, 2 steps, 3 entries."""
    if count != 1:
        thing = f"{thing[:-1]}ies" if thing.endswith("try") else f"{thing}s"
    return f"{count} {thing}"


def not_installed(needs):
    """That the first module of some that is not here is not installed; "" where
    all are."""
    for need in needs:
        if importlib.util.find_spec(need) is None:
            return f"{need} is not installed"
    return ""


def visible(text):
    """A foreign text, its control characters written as ``\\x1b``."""
    return CONTROL.sub(lambda match: repr(match[0])[1:-1], text)


def one_of(value, allowed, what):
    """Return ``value`` if it is one of ``allowed``, else raise InputError."""
    if isinstance(value, str) and value in allowed:
        return value
    near = _meant(value, list(allowed)) if isinstance(value, str) else ""
    wrong = f"is unknown (did you mean {near}?)" if near else "is unknown"
    if not near and str(what).startswith("port") and value in REFERENCE:
        wrong = "is the reference, with which every port is compared"
    raise InputError(
        f"{what} {value!r} {wrong}; choose one of {', '.join(allowed)}.")


def is_whole(value):
    """Whether a value is a whole number; True and 2.0 are none."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_real(value):
    """Whether a value is a number; True is none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


#: What the reference is called, which is no port.
REFERENCE = "numpy", "np", "reference", "reference_numpy"

#: What others call a word of ours.
CALLED = {
    **dict.fromkeys(REFERENCE, "numpy"),
    "pytorch": "torch", "tensorflow": "keras", "tf": "keras", "flax": "jax",
    "nnx": "jax", "gpu": "cuda", "metal": "mps", "fp64": "float64",
    "double": "float64", "fp32": "float32", "float": "float32",
    "single": "float32", "fp16": "float16", "half": "float16",
    "bf16": "bfloat16", "f64": "float64", "f32": "float32"}


def _meant(word, allowed):
    """The allowed word that is probably meant, or ""."""
    word = word.lower()[:40]
    if CALLED.get(word) in allowed:
        return CALLED[word]
    return next(iter(difflib.get_close_matches(word, allowed, 1, 0.7)), "")
