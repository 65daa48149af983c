"""Values and files of the weights that all four load."""

import hashlib
import math
import re

import ml_dtypes
import numpy as np

from transformer_contract import random
from parity_io.array_file import (
    CHECKSUM, METADATA_KEY, checksum, described, load, save, verify)
from parity_io.errors import InputError, plural
from transformer_contract.schema import schema

__all__ = [
    "CHECKSUM", "FLOATS", "METADATA_KEY", "check", "check_layers", "checksum",
    "described", "digest", "finite", "initial_weights", "load", "load_weights",
    "probe_weights", "save", "select", "verify"]

#: The dtypes that weights may have, most exact first.
FLOATS = ("float64", "float32", "float16", np.dtype(ml_dtypes.bfloat16).name)


def select(weights, prefix):
    """The arrays under ``prefix``, named from there on."""
    return {name.removeprefix(prefix): array
            for name, array in weights.items() if name.startswith(prefix)}


def check_layers(config, count, what):
    """Raise InputError if a file of ``count`` arrays cannot have the layers.

    So that the schema of a configuration that was read is no larger than the
    file that it came with.
    """
    layers = config.n_encoder_layers + config.n_decoder_layers
    if layers > count:
        raise InputError(
            f"{what} have {plural(count, 'array')}, and their configuration "
            f"{plural(layers, 'layer')}; choose the configuration that they "
            "were made for.")


def check(weights, shapes, what="the weights"):
    """Raise InputError unless ``weights`` have the names and shapes given.

    Every name and no other, every shape equal, floating point, finite.
    """
    for name in shapes:
        if name not in weights:
            raise InputError(
                f"{what} lack the array {name!r}; add it, or choose the "
                "configuration that they were made for."
            )
    for name in weights:
        if name not in shapes:
            raise InputError(
                f"{what} hold a surplus array {name!r}; remove it, or choose "
                "the configuration that they were made for."
            )
    for name, shape in shapes.items():
        own = tuple(weights[name].shape)
        if own != tuple(shape):
            raise InputError(
                f"the array {name!r} in {what} has shape {list(own)} where "
                f"{list(shape)} is needed; matrices stand as [in, out]."
            )
        finite(name, weights[name], what)


def finite(name, array, what):
    """Raise InputError unless ``array`` is floating point and finite."""
    if array.dtype.name not in FLOATS:
        raise InputError(
            f"the array {name!r} in {what} is {array.dtype}; weights must be "
            "floating point."
        )
    if not np.isfinite(array).all():
        raise InputError(
            f"the array {name!r} in {what} holds a NaN or an infinity; make "
            "the file again."
        )


def _share(name, config):
    """What a weight is multiplied by: 1/√d_k, if scores are not."""
    undivided = config.attention_scale == "none" and re.search(
        r"attention\.query\.(kernel|bias)$", name)
    return 1 / math.sqrt(config.d_k) if undivided else 1


def initial_weights(config, seed=0, generator=random, known=None):
    """Initial weights for training, the same on every machine; float64.

    Glorot uniform kernels (a query's over √d_k where scores are not, as in T5,
    R42), tables uniform with variance 1/D (so that embeddings times sqrt(D)
    have variance 1 at first), scales one, biases zero. Each array
    has its own key, named by its canonical name, so that its values do not
    depend on the model's other arrays.

    Args:
        config: a TransformerConfig.
        seed: from which all keys follow.
        generator: a module with ``key``, ``fold_in`` and ``uniform``; that of
            a port gives the same numbers to the bit.
        known: arrays to take instead, where name and shape are the same.
    """
    def uniform(name, shape, limit):
        key = generator.fold_in(generator.key(seed), name)
        return np.asarray(generator.uniform(key, shape, -limit, limit))

    weights, known = {}, known or {}
    for name, shape in schema(config).items():
        if name in known and known[name].shape == shape:
            weights[name] = known[name]
            continue
        match name.rpartition(".")[2]:
            case "kernel":  # Glorot and Bengio 2010, eq. 16
                weights[name] = uniform(
                    name, shape, _share(name, config)
                    * math.sqrt(6 / sum(shape)))
            case "table" | "types":
                weights[name] = uniform(name, shape, math.sqrt(3 / shape[1]))
            case "scale":
                weights[name] = np.ones(shape)
            case "bias":
                weights[name] = np.zeros(shape)
    return weights


def probe_weights(config, seed=0, known=None):
    """Weights that hide no mistake, to compare implementations with; float64.

    As initial_weights, but no scale is one and no bias zero, so that a missing
    scale, bias or norm shows: scales in [0.5, 1.5), biases in [-0.5, 0.5).
    ``known`` arrays are taken instead, where name and shape are the same.
    """
    weights = initial_weights(config, seed, known=known)
    for name, array in weights.items():
        if known and array is known.get(name):
            continue
        key = random.fold_in(random.key(seed), name)
        match name.rpartition(".")[2]:
            case "scale":
                weights[name] = random.uniform(key, array.shape, 0.5, 1.5)
            case "bias":
                bound = _share(name, config) / 2
                weights[name] = random.uniform(
                    key, array.shape, -bound, bound)
    return weights


def digest(weights):
    """SHA-256 over names, dtypes, shapes and bytes, in order of name."""
    state = hashlib.sha256()
    for name in sorted(weights):
        array = np.ascontiguousarray(weights[name])
        state.update(f"{name} {array.dtype} {array.shape}\n".encode())
        state.update(array.view(np.uint8).data)
    return state.hexdigest()


def load_weights(path, config):
    """Read the weights of a model and check them against its schema."""
    arrays, _ = load(path)
    check_layers(config, len(arrays), str(path))
    check(arrays, schema(config), str(path))
    return {name: arrays[name] for name in schema(config)}
