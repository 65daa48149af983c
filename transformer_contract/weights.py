"""Values and files of the weights that all four load."""

import errno
import hashlib
import json
import math
import os
import re
import zlib
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes  # teaches NumPy, and so safetensors, bfloat16
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from transformer_contract import random
from transformer_contract.errors import InputError, amount
from transformer_contract.files import check_ordinary, new_file, told
from transformer_contract.schema import schema

#: The only metadata key that we write; safetensors stores several in random
#: order, and then two equal files would hash differently.
METADATA_KEY = "parity"

#: Where among the metadata the checksum of a file stands.
CHECKSUM = "crc32"

#: The dtypes that weights may have, most exact first.
FLOATS = ("float64", "float32", "float16", np.dtype(ml_dtypes.bfloat16).name)


def part(weights, prefix):
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
            f"{what} have {amount(count, 'array')}, and their configuration "
            f"{amount(layers, 'layer')}; choose the configuration that they "
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


def checksum(arrays, metadata):
    """CRC-32 over metadata and over names, dtypes, shapes and bytes; as text.

    It finds every single flipped bit, several times as fast as SHA-256.
    """
    state = _sum_of(metadata)
    for name in sorted(arrays):
        state = _added(state, name, arrays[name])
    return f"{state:08x}"


def _sum_of(metadata):
    """The CRC-32 of metadata, their own checksum left out."""
    return zlib.crc32(_canonical({
        name: value for name, value in metadata.items() if name != CHECKSUM}))


def _added(state, name, array):
    """A CRC-32 that goes on over one more array."""
    array = np.ascontiguousarray(array)
    state = zlib.crc32(f"{name} {array.dtype} {array.shape}\n".encode(), state)
    return zlib.crc32(array.reshape(-1).view(np.uint8), state)


def _canonical(metadata):
    return json.dumps(
        metadata, sort_keys=True, separators=(",", ":")).encode()


def save(path, arrays, **metadata):
    """Write arrays to a safetensors file, whole or not at all.

    safetensors' NumPy writer stores an array that is not C-contiguous with its
    values scrambled, so arrays are made contiguous, the file is read back and
    compared, and only then does it take its name. Metadata is one key of
    canonical JSON, so that equal contents give equal bytes; a checksum of
    everything stands in it, and ``load`` compares it.

    Raises:
        InputError: the file cannot be written, the disk is full, or a dtype
            is none that the format has.
    """
    arrays = {name: _storable(name, array)
              for name, array in sorted(arrays.items())}
    text = _canonical(
        metadata | {CHECKSUM: checksum(arrays, metadata)}).decode()
    with told(path), new_file(path) as temporary:
        try:
            save_file(arrays, temporary, metadata={METADATA_KEY: text})
        except SafetensorError as error:
            raise _system_error(error) from None
        with safe_open(temporary, framework="numpy") as file:
            for name, array in arrays.items():
                if file.get_tensor(name).tobytes() != array.tobytes():
                    raise RuntimeError(f"{name} was not written as it is")


def _storable(name, array):
    """An array as the format stores it: little-endian, row by row.

    Raises:
        InputError: its dtype is none of the format's.
    """
    array = np.asarray(array)
    if array.dtype.kind not in "biufV" or array.dtype.itemsize > 8 or (
            array.dtype.names):
        raise InputError(
            f"{name!r} is of {array.dtype}, which no safetensors file holds; "
            "convert it to real numbers of at most 64 bits.")
    return np.asarray(array, array.dtype.newbyteorder("<"), order="C")


def _system_error(error):
    """The OSError that safetensors tells of as text."""
    found = re.search(r"os error (\d+)", str(error))
    number = int(found[1]) if found else errno.EIO
    return OSError(number, os.strerror(number))


def load(path):
    """Read a safetensors file.

    The checksum is compared where the file has one, as each that we write; of
    others, and of earlier versions, there is none.

    Returns:
        The arrays by name, and the metadata as a dict of text.

    Raises:
        InputError: it is not there, not safetensors, cut short, damaged, or
            holds an array of a dtype that cannot be read.
    """
    check_ordinary(path)
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays, state = {}, _sum_of(described(metadata))
            for name, array in _read_ahead(file):
                arrays[name], state = array, _added(state, name, array)
    except FileNotFoundError:  # safetensors' word for all it cannot open
        if os.path.exists(path):
            raise InputError(
                f"{str(path)!r} may not be read; ask its owner for the right "
                "to.") from None
        raise InputError(
            f"there is no file {str(path)!r}; check the path."
        ) from None
    except (SafetensorError, OSError) as error:
        raise InputError(
            f"{str(path)!r} cannot be read as safetensors ({error}); it is "
            "damaged or of another format, so make it again."
        ) from None
    except (TypeError, AttributeError, KeyError):
        raise InputError(
            f"{str(path)!r} holds an array of a dtype that cannot be read; "
            "store it as float32."
        ) from None
    _compare(f"{state:08x}", metadata, path)
    return arrays, metadata


def _read_ahead(file):
    """Names and arrays, by name; the next is read while one is summed."""
    names = sorted(file.keys())
    with ThreadPoolExecutor(1) as reader:
        yield from zip(names, reader.map(file.get_tensor, names))


def verify(arrays, metadata, path):
    """Raise InputError where a file has a checksum and it is another's."""
    _compare(checksum(arrays, described(metadata)), metadata, path)


def _compare(own, metadata, path):
    """Raise InputError unless a file's checksum is its own, if it has one."""
    if described(metadata).get(CHECKSUM, own) != own:
        raise InputError(
            f"{str(path)!r} is damaged: its checksum is not the one that it "
            "was written with; make it again, or take a sound copy.")


def described(metadata):
    """What ``save`` was told of a file, as a dict; {} of a file of others."""
    try:
        found = json.loads(metadata.get(METADATA_KEY, "{}"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def load_weights(path, config):
    """Read the weights of a model and check them against its schema."""
    arrays, _ = load(path)
    check_layers(config, len(arrays), str(path))
    check(arrays, schema(config), str(path))
    return {name: arrays[name] for name in schema(config)}
