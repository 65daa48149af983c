"""What a sound pair is, and the list of all."""

import dataclasses
import functools
import importlib
import typing

from benchmarks.sound.weights import computing

#: The largest difference of two outputs, by what both are computed in, over
#: the largest output. The last is a float64 model with float32 inside.
LIMITS = {"float64": 1e-12, "float32": 2e-5, "bfloat16": 2e-2,
          "float32 inside": 1e-5}

#: Files of pairs -> the topics are the parts of their names.
FILES = (
    "torch_boundaries", "torch_attention", "torch_packing", "torch_masks",
    "torch_positions", "torch_norms", "torch_activations", "torch_convolution",
    "torch_recurrent", "torch_experts", "torch_places", "torch_precision",
    "torch_ways", "hugging_face", "hugging_face_more", "nnx_attention",
    "nnx_layers", "nnx_ways", "keras_attention", "keras_layers", "keras_ways",
    "across_transformers", "across_convolution", "across_layers",
    "across_recurrent", "across_keras", "across_hugging_face")

#: Name -> Sound, in the order in which they are defined.
PAIRS: dict = {}


@dataclasses.dataclass(frozen=True)
class Sound:
    """Two programs that compute one function.

    Attributes:
        name: an identifier, the only one of its name.
        topic: the file that defines it.
        a, b: makers, called with nothing: (model, inputs, keywords) each.
        dtype: a key of LIMITS.
        axes: the order of b's axes in which its output is a's, or None.
        words: what is written differently.
    """

    name: str
    topic: str
    a: typing.Callable
    b: typing.Callable
    dtype: str = "float64"
    axes: tuple | None = None
    words: str = ""


def sound(build=None, *, dtype="float64", axes=None):
    """Put a function that makes both sides on the list.

    Args:
        build: called with nothing; returns two (model, inputs, keywords).
        dtype, axes: as in Sound.

    Raises:
        ValueError: another pair has this name.
    """
    if build is None:
        return functools.partial(sound, dtype=dtype, axes=axes)
    name = build.__name__
    if name in PAIRS and PAIRS[name].words != build.__doc__:
        raise ValueError(f"two pairs are named {name}; rename one.")
    sides = [functools.partial(_side, build, which, dtype) for which in (0, 1)]
    PAIRS[name] = Sound(name, build.__module__.rpartition(".")[2], *sides,
                        dtype, axes, build.__doc__)
    return build


def _side(build, which, dtype):
    """One side of a pair: (model, inputs, keywords)."""
    with computing("float64" if dtype == "float32 inside" else dtype):
        return build()[which]


def pairs():
    """Every Sound of FILES."""
    for name in FILES:
        importlib.import_module(f"benchmarks.sound.{name}")
    return [*PAIRS.values()]


def pair(name):
    """The Sound of this name.

    Raises:
        KeyError: there is none.
    """
    for file in FILES:
        if name not in PAIRS:
            importlib.import_module(f"benchmarks.sound.{file}")
    return PAIRS[name]
