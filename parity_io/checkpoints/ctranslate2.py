"""CTranslate2's ``model.bin``: names, shapes and numbers, one after another.

u32 version, a text that names the model, u32 its revision, u32 how many
arrays; of each its name, u8 rank, u32 sizes, u8 dtype, u32 bytes, numbers; then
u32 how many aliases, and pairs of names. A text is u16 bytes long and ends in
a zero byte. Little-endian; source: ``src/models/model.cc`` of CTranslate2.
"""

import struct

import ml_dtypes
import numpy as np

from parity_io.errors import InputError

#: By their numbers in the file.
DTYPES = (np.float32, np.int8, np.int16, np.int32, np.float16,
          ml_dtypes.bfloat16)

VERSION = 6

#: The key of the metadata that says which model it is.
MODEL = "model"


def recognised(head):
    """Whether a file can be one, by its first bytes."""
    version, length = struct.unpack("<IH", head[:6].ljust(6, b"\xff"))
    return version <= 16 and head[6:6 + length].endswith(b"Spec\0")


def read(path):
    """The arrays as views of the file, and which model it is.

    An alias is the array that it stands for.
    """
    data = np.memmap(path, np.uint8, "c")
    reader = _Reader(data)
    try:
        version = reader.whole("I")
        if version != VERSION:
            raise InputError(
                f"{str(path)!r} is version {version} of CTranslate2's files; "
                f"convert it again, to version {VERSION}.")
        metadata = {MODEL: reader.text(), "revision": reader.whole("I")}
        arrays = {}
        for _ in range(reader.whole("I")):
            name = reader.text()
            shape = [reader.whole("I") for _ in range(reader.whole("B"))]
            kind = DTYPES[reader.whole("B")]
            arrays[name] = reader.bytes(
                reader.whole("I")).view(kind).reshape(shape)
        for _ in range(reader.whole("I")):
            alias = reader.text()
            arrays[alias] = arrays[reader.text()]
    except (struct.error, ValueError, KeyError, IndexError):
        raise InputError(
            f"{str(path)!r} is damaged or cut short, so it cannot be read as "
            "CTranslate2's; fetch it again.") from None
    return arrays, metadata


class _Reader:
    """What comes next in a mapped file."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def bytes(self, count):
        """The next bytes; ValueError where there are not so many."""
        start, self.at = self.at, self.at + count
        if self.at > len(self.data):
            raise ValueError("cut short")
        return self.data[start:self.at]

    def whole(self, kind):
        """The next whole number, of a letter of ``struct``."""
        kind = "<" + kind
        return struct.unpack(
            kind, self.bytes(struct.calcsize(kind)).tobytes())[0]

    def text(self):
        """The next text, without its zero byte."""
        return self.bytes(self.whole("H")).tobytes()[:-1].decode("utf-8")
