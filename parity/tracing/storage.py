"""Large arrays of a trace lie in nameless files, not in memory.

What is not read takes no memory, and what two traces have in common is there
once. A file goes when the last array in it does.
"""

import mmap
import tempfile
import weakref

import numpy as np

#: Arrays of fewer bytes stay in memory.
LARGE = 1 << 20

_stored = weakref.WeakValueDictionary()


def stored(array, key):
    """A read-only array of the same numbers.

    Args:
        array: of any dtype.
        key: its ``array_digest``; arrays of one key are one.
    """
    if (kept := _stored.get(key)) is not None:
        return kept
    if array.nbytes >= LARGE:
        array = _mapped(array)
        _stored[key] = array
    array.flags.writeable = False
    return array


def is_stored(array):
    """Whether an array lies in a file."""
    return _memory(array) is not None


def put_away(array):
    """Take what was read of an array out of memory, if it lies in a file.

    Its numbers are then those that were stored, whatever was written since.
    """
    if is_stored(array) and hasattr(mmap, "MADV_DONTNEED"):
        _memory(array).madvise(mmap.MADV_DONTNEED)


def _memory(array):
    """The file that an array lies in, mapped; None for any other array."""
    while isinstance(array, np.ndarray):
        array = array.base
    if isinstance(array, memoryview):
        array = array.obj
    return array if isinstance(array, mmap.mmap) else None


def _mapped(array):
    """An array in a file, or as it is where no file can have it."""
    data = np.ascontiguousarray(array)
    try:
        with tempfile.TemporaryFile() as file:
            file.write(data.reshape(-1).view(np.uint8).data)
            file.flush()
            # Private: a model that reads from it may write to its own copy.
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except OSError:  # a full disk, or none
        return data
    return np.frombuffer(memory, data.dtype).reshape(data.shape)
