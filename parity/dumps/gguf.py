"""The tensors of a GGUF file, by the format's own names.

https://github.com/ggml-org/ggml/blob/master/docs/gguf.md: a magic word and a
version, what the file says of itself, a name, shape, type and offset of each
tensor, and the numbers. Shapes have the innermost axis first.
"""

import math
import mmap
import struct

import ml_dtypes
import numpy as np

from parity_io.errors import InputError

MAGIC, VERSIONS, ALIGNMENT = b"GGUF", (2, 3), 32

#: Types of tensors that are plain numbers; Q8_0 is blocks of a scale in
#: float16 and 32 whole numbers.
PLAIN = {0: np.float32, 1: np.float16, 24: np.int8, 25: np.int16,
         26: np.int32, 27: np.int64, 28: np.float64, 30: ml_dtypes.bfloat16}
Q8_0, BLOCK = 8, np.dtype([("scale", "<f2"), ("whole", "i1", 32)])

#: Types of what the file says of itself, as struct has them.
WORDS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?",
         10: "Q", 11: "q", 12: "d"}
TEXT, LIST = 8, 9

#: In files of this architecture the rotary pairs of queries and keys stand
#: beside each other, where transformers have the first and second half.
TURNED = "llama"


def read(path):
    """The tensors that can be read, and a sentence on those that cannot.

    Raises:
        InputError: it is no GGUF of this version and byte order, or cut short.
    """
    with open(path, "rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file
            raise InputError(f"{str(path)!r} is empty; copy it again."
                             ) from None
    try:
        reader = _GgufBytes(data)
        return _tensors(reader, *reader.header(path), path)
    except (struct.error, UnicodeDecodeError, ValueError, KeyError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{str(path)!r} cannot be read as GGUF; it is damaged or cut "
            "short, so copy it again.") from None


class _GgufBytes:
    """Bytes read one after another."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def word(self, kind):
        """A number of a type of struct."""
        found, = struct.unpack_from(f"<{kind}", self.data, self.at)
        self.at += struct.calcsize(f"<{kind}")
        return found

    def text(self):
        """A text with its length before it."""
        length = self.word("Q")
        if self.at + length > len(self.data):
            raise ValueError
        self.at += length
        return self.data[self.at - length:self.at].decode("utf-8")

    def value(self, kind):
        """A value of what the file says of itself."""
        if kind == TEXT:
            return self.text()
        if kind != LIST:
            return self.word(WORDS[kind])
        inner, count = self.word("I"), self.word("Q")
        if count > len(self.data):
            raise ValueError
        return [self.value(inner) for _ in range(count)]

    def header(self, path):
        """(what the file says of itself, (name, shape, type, offset)s)."""
        if self.data[:4] != MAGIC:
            raise InputError(f"{str(path)!r} is no GGUF file; give one.")
        self.at = 4
        version = self.word("I")
        if version not in VERSIONS:
            raise InputError(
                f"{str(path)!r} is GGUF of version {version}, or of another "
                "byte order, and this program reads 2 and 3; convert it.")
        count, pairs = self.word("Q"), self.word("Q")
        if max(count, pairs) > len(self.data):
            raise ValueError
        facts = {}
        for _ in range(pairs):
            name = self.text()
            facts[name] = self.value(self.word("I"))
        infos = []
        for _ in range(count):
            name, axes = self.text(), self.word("I")
            shape = tuple(self.word("Q") for _ in range(axes))[::-1]
            infos.append((name, shape, self.word("I"), self.word("Q")))
        return facts, infos


def _tensors(reader, facts, infos, path):
    """The arrays by name, and sentences."""
    step = facts.get("general.alignment", ALIGNMENT)
    start = -(-reader.at // step) * step
    arrays, unread = {}, []
    for name, shape, kind, offset in infos:
        count = math.prod(shape)
        if kind in PLAIN:
            array = np.frombuffer(reader.data, PLAIN[kind], count,
                                  start + offset)
        elif kind == Q8_0:
            blocks = np.frombuffer(reader.data, BLOCK, count // 32,
                                   start + offset)
            array = (blocks["scale"].astype(np.float32)[:, None]
                     * blocks["whole"])
        else:
            unread.append(name)
            continue
        arrays[name] = _turned_back(name, array.reshape(shape), facts)
    return arrays, [
        f"{len(unread)} tensors of {str(path)!r} are quantised in a way that "
        f"is not read, such as {unread[0]!r}."] if unread else []


def _turned_back(name, array, facts):
    """A query's or key's weight [out in] with the halves of a head apart."""
    role = name.rpartition(".")[0].rpartition(".")[2]
    key = {"attn_q": "head_count", "attn_k": "head_count_kv"}.get(role)
    heads = facts.get(f"{TURNED}.attention.{key}")
    if facts.get("general.architecture") != TURNED or not isinstance(
            heads, int) or array.shape[0] % (2 * heads):
        return array
    split = array.reshape(heads, -1, 2, *array.shape[1:])
    return np.swapaxes(split, 1, 2).reshape(array.shape)
