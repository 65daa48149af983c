"""Arrays in a safetensors file: written whole, with a checksum, and read.

The files of weights, checkpoints and traces are such files.
"""

import errno
import json
import os
import re
import zlib
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes  # noqa: F401  teaches NumPy, and so safetensors, bfloat16
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from parity_io.errors import InputError
from parity_io.files import check_ordinary, new_file, as_input_error

#: The only metadata key that we write; safetensors stores several in random
#: order, and then two equal files would hash differently.
METADATA_KEY = "parity"

#: Where among the metadata the checksum of a file stands.
CHECKSUM = "crc32"


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
    return zlib.crc32(array.reshape(-1).view(np.uint8).data, state)


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
    with as_input_error(path), new_file(path) as temporary:
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
