"""Files of ``torch.save``, read without torch and without executing anything.

Since 1.6 a zip: ``data.pkl`` describes the tensors, ``data/KEY`` holds their
numbers. Before, several pickles one after another and then the numbers. A
pickle may name any function of Python and have it called; this reader answers
four names, with functions of its own, and refuses every other by name.
"""

import collections
import io
import pickle
import struct
import zipfile

import ml_dtypes
import numpy as np

from parity_io.errors import InputError

#: torch's names of storages, by which a pickle says a dtype.
STORAGES = {
    "DoubleStorage": np.float64, "FloatStorage": np.float32,
    "HalfStorage": np.float16, "BFloat16Storage": ml_dtypes.bfloat16,
    "LongStorage": np.int64, "IntStorage": np.int32, "ShortStorage": np.int16,
    "CharStorage": np.int8, "ByteStorage": np.uint8, "BoolStorage": np.bool_,
}

#: What a file of before 1.6 begins with, as a number.
MAGIC = 0x1950A86A20F9469CFC6C
OLD = pickle.dumps(MAGIC, protocol=2)

#: What a tensor is called that was saved alone.
ALONE = "data"

#: Where a training run keeps its weights beside other things.
INSIDE = ("state_dict", "model_state_dict", "model")


def recognised(head, names):
    """Whether a file can be one; ``names`` are those in it, if it is a zip."""
    return head.startswith(OLD) or any(
        name.endswith("/data.pkl") for name in names)


def read(path):
    """The tensors of a file as views of it, and no metadata."""
    data = np.memmap(path, np.uint8, "c")
    try:
        old = data[:len(OLD)].tobytes() == OLD
        content = (_read_old if old else _read_zip)(path, data)
        return _tensors(content), {}
    except InputError as error:
        raise InputError(f"{str(path)!r} {error}") from None
    except Exception as error:  # whatever damage makes of a pickle
        raise InputError(
            f"{str(path)!r} cannot be read as a file of torch.save "
            f"({type(error).__name__}: {str(error)[:80]}); it is damaged or "
            "cut short, so fetch it again.") from None


def _read_zip(path, data):
    """What ``data.pkl`` holds, its storages being entries of the zip."""
    with zipfile.ZipFile(path) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        main = next(name for name in entries if name.endswith("/data.pkl"))
        root = main.removesuffix("data.pkl")
        order = entries.get(f"{root}byteorder")
        if order and archive.read(order) != b"little":
            raise InputError("holds big-endian numbers; save it again on a "
                             "little-endian machine.")
        if entries[main].compress_type != zipfile.ZIP_STORED:
            raise InputError("has a compressed pickle, which torch does not "
                             "write; save it again with torch.save.")
        text = archive.read(main)

    def storage(kind, key, count):
        entry = entries[f"{root}data/{key}"]
        if entry.compress_type != zipfile.ZIP_STORED:
            raise InputError("has compressed numbers, which torch does not "
                             "write; save it again with torch.save.")
        # a local header: 26 bytes, then the lengths of a name and of extras
        at = entry.header_offset
        name, extra = struct.unpack("<HH", data[at + 26:at + 30].tobytes())
        return _numbers(data, at + 30 + name + extra, kind, count)

    return _Unpickler(io.BytesIO(text), storage).load()


def _read_old(path, data):
    """What the fourth pickle holds, its storages coming after the fifth."""
    later: dict[str, _Later] = {}

    def storage(kind, key, count):
        return later.setdefault(key, _Later(kind))

    with open(path, "rb") as file:
        # a magic number, a version, the machine's sizes, tensors, keys
        *_, content, keys = [
            _Unpickler(file, storage).load() for _ in range(5)]
        for key in keys:
            count = int.from_bytes(file.read(8), "little")
            numbers = later[key].numbers = _numbers(
                data, file.tell(), later[key].kind, count)
            file.seek(numbers.nbytes, io.SEEK_CUR)
    return content


class _Later:
    """A storage whose numbers come after the pickle that names it."""

    def __init__(self, kind):
        self.kind, self.numbers = kind, None


def _numbers(data, start, kind, count):
    """``count`` numbers of a dtype, a view of the file from ``start``."""
    size = np.dtype(kind).itemsize * count
    if not 0 <= start <= start + size <= len(data):
        raise InputError("is cut short; fetch it again.")
    return data[start:start + size].view(kind)


class _Tensor:
    """A tensor as the pickle describes it: a part of a storage, in steps."""

    def __init__(self, storage, offset, shape, strides):
        self.storage, self.offset = storage, offset
        self.shape, self.strides = shape, strides

    def array(self):
        """The numbers, a view; InputError if they reach beyond the storage."""
        numbers = getattr(self.storage, "numbers", self.storage)
        whole = [self.offset, *self.shape, *self.strides]
        if (not isinstance(numbers, np.ndarray)
                or len(self.shape) != len(self.strides)
                or not all(type(n) is int and n >= 0 for n in whole)):
            raise InputError("is damaged: a tensor's shape is none.")
        size = numbers.dtype.itemsize
        last = self.offset + sum(
            (n - 1) * step for n, step in zip(self.shape, self.strides))
        if 0 in self.shape:
            return np.zeros(self.shape, numbers.dtype)
        if last >= len(numbers):
            raise InputError("is damaged: a tensor reaches beyond its "
                             "storage.")
        return np.lib.stride_tricks.as_strided(
            numbers[self.offset:], self.shape,
            [step * size for step in self.strides])


class _Unpickler(pickle.Unpickler):
    """A pickle of tensors in dicts, lists and plain values; no other class.

    ``storage`` makes the numbers of (dtype, key, how many).
    """

    def __init__(self, file, storage):
        super().__init__(file)
        self.storage = storage

    def find_class(self, module, name):
        """The answer to a name in the pickle; InputError for all others."""
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            def rebuild(storage, offset, shape, strides, *more):
                return _Tensor(storage, offset, shape, strides)
            return rebuild
        if module == "torch" and name in STORAGES:
            return name
        raise InputError(
            f"names {module}.{name}, which is no part of a tensor and might "
            "do anything; save the state_dict alone, or as safetensors.")

    def persistent_load(self, pid):
        """The storage that ("storage", dtype, key, place, how many) names."""
        _, kind, key, _, count = pid[:5]
        if len(pid) > 5 and pid[5] is not None:
            raise InputError("has a storage that is a part of another; save "
                             "it again with a newer torch.")
        return self.storage(STORAGES[kind], key, count)


def plain(path):
    """What a pickle of plain values holds; every class is refused by name."""
    try:
        with open(path, "rb") as file:
            return _Unpickler(file, None).load()
    except InputError as error:
        raise InputError(f"{str(path)!r} {error}") from None
    except Exception as error:  # whatever damage makes of a pickle
        raise InputError(
            f"{str(path)!r} cannot be read as a pickle "
            f"({type(error).__name__}); fetch it again.") from None


def _tensors(content):
    """The tensors by name, of a dict of them or of the one inside it; a single
    one is called ALONE."""
    if isinstance(content, _Tensor):
        return {ALONE: content.array()}
    if isinstance(content, dict):
        for inside in (content, *(content.get(name) for name in INSIDE)):
            if isinstance(inside, dict) and inside and all(
                    isinstance(name, str) and isinstance(tensor, _Tensor)
                    for name, tensor in inside.items()):
                return {name: tensor.array()
                        for name, tensor in inside.items()}
    raise InputError(
        "holds no dict of tensors by name; save a model's state_dict().")
