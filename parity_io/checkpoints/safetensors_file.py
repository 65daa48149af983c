"""Safetensors files: a header in JSON, then the numbers.

https://huggingface.co/docs/safetensors: eight bytes that count the header's,
the header {name: dtype, shape, begin and end}, and the arrays in C order.
"""

import json

import ml_dtypes
import numpy as np
from safetensors import SafetensorError, safe_open

from parity_io.errors import InputError
from parity_io.files import new_file, as_input_error

#: In the order in which the library stores arrays of several.
DTYPES = {
    "U64": np.uint64, "I64": np.int64, "F64": np.float64, "F32": np.float32,
    "U32": np.uint32, "I32": np.int32, "BF16": ml_dtypes.bfloat16,
    "F16": np.float16, "U16": np.uint16, "I16": np.int16, "I8": np.int8,
    "U8": np.uint8, "BOOL": np.bool_,
}

#: The same by NumPy's name.
CALLED = {np.dtype(kind).name: name for name, kind in DTYPES.items()}

#: Where the header says what the whole file is.
METADATA = "__metadata__"


def recognised(head, size):
    """Whether a file of ``size`` bytes can be one, by its first bytes."""
    count = int.from_bytes(head[:8], "little")
    return head[8:9] == b"{" and 2 <= count <= size - 8


def read(path):
    """The arrays of a file, as views of it, and its metadata.

    The library checks the header: that no array overlaps another or reaches
    beyond the file.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(
            f"{str(path)!r} cannot be read as safetensors ({error}); it is "
            "damaged or cut short, so fetch it again.") from None
    data = np.memmap(path, np.uint8, "c")
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8:start].tobytes())
    header.pop(METADATA, None)
    return {name: _view(data[start:], name, entry, path)
            for name, entry in header.items()}, metadata


def _view(data, name, entry, path):
    """One array of a header's entry."""
    if entry["dtype"] not in DTYPES:
        raise InputError(
            f"the array {name!r} in {str(path)!r} is {entry['dtype']}, which "
            "cannot be read; store it as float32.")
    begin, end = entry["data_offsets"]
    return data[begin:end].view(DTYPES[entry["dtype"]]).reshape(
        entry["shape"])


def write(path, arrays, metadata=None):
    """Write arrays, one after another, whole or not at all.

    Whatever their layout in memory, only one is copied at a time. The file is
    that of the library to the bit: sorted by dtype and then by name.
    """
    header, end = {METADATA: metadata} if metadata else {}, 0
    kinds = list(DTYPES)
    order = sorted(arrays, key=lambda name: (
        kinds.index(CALLED[arrays[name].dtype.name]), name))
    for name in order:
        array = arrays[name]
        header[name] = {"dtype": CALLED[array.dtype.name],
                        "shape": list(array.shape),
                        "data_offsets": [end, end := end + array.nbytes]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with as_input_error(path), new_file(path) as temporary:
        with open(temporary, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for name in order:
                file.write(np.ascontiguousarray(arrays[name]).reshape(
                    -1).view(np.uint8).data)
