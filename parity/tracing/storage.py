"""Large arrays of a trace lie in nameless files, not in memory.

What is not read takes no memory, and what two traces have in common is there
once. Many arrays share a file, for every file takes one of the numbers that a
process has for those it opens; it goes when the last array in it does.

Threads take turns. A forked process reads the files of its parent and writes
to its own.
"""

import mmap
import os
import tempfile
import threading
import typing
import weakref

import numpy as np

#: Arrays of fewer bytes stay in memory.
LARGE = 1 << 20

#: So many bytes a file has room for, or for one larger array.
ROOM = 1 << 30

_stored: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
#: {"": the segment that is filled now}.
_open: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
_lock = threading.RLock()


def _of_its_own():
    """Have a forked process fill no segment of its parent."""
    _open.clear()
    _lock.release()


if hasattr(os, "register_at_fork"):  # nobody writes while a process forks
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release,
                        after_in_child=_of_its_own)


class Segment(mmap.mmap):
    """A file, mapped so that nobody can write to it.

    Attributes:
        file: the same, open.
        used: how many of its bytes have arrays, in whole pages.
    """

    file: typing.IO
    used: int

    def __new__(cls, size):
        file = tempfile.TemporaryFile()
        file.truncate(size)
        self = super().__new__(
            cls, file.fileno(), size, access=mmap.ACCESS_READ)
        self.file, self.used = file, 0
        return self


class View:
    """The arrays of files as one model has them: what it writes is its own."""

    def __init__(self):
        self.maps = {}

    def of(self, array):
        """A writable array of the same numbers, which no trace sees change."""
        segment = _segment(array)
        if id(segment) not in self.maps:
            self.maps[id(segment)] = mmap.mmap(
                segment.file.fileno(), len(segment), access=mmap.ACCESS_COPY)
        return _array(self.maps[id(segment)], array, _start(segment, array))

    def put_away(self):
        """Take what was read out of memory. Nothing may be written yet."""
        for memory in self.maps.values():
            _put_away(memory, 0, len(memory))


def stored(array, key, least=LARGE):
    """A read-only array of the same numbers.

    Args:
        array: of any dtype and shape.
        key: its ``array_digest``; arrays of one key are one.
        least: arrays of fewer bytes stay in memory.
    """
    with _lock:
        if (kept := _stored.get(key)) is not None:
            return kept
        if array.nbytes >= least:
            array = _stored[key] = _mapped(array)
    array.flags.writeable = False
    return array


def is_stored(array):
    """Whether an array lies in a file."""
    return _segment(array) is not None


def put_away(array):
    """Take what was read of an array out of memory, if it lies in a file."""
    segment = _segment(array)
    if segment is not None:
        _put_away(segment, _start(segment, array), array.nbytes)


def _put_away(memory, start, size):
    if hasattr(mmap, "MADV_DONTNEED"):  # elsewhere the system decides alone
        memory.madvise(mmap.MADV_DONTNEED, start, size)


def _segment(array):
    """The Segment that an array lies in; None for any other array."""
    while isinstance(array, np.ndarray):
        array = array.base
    if isinstance(array, memoryview):
        array = array.obj
    return array if isinstance(array, Segment) else None


def _start(segment, array):
    """The place of an array in its segment, in bytes."""
    return array.ctypes.data - np.frombuffer(segment, np.uint8).ctypes.data


def _array(memory, array, start):
    """An array's dtype and shape over the bytes from ``start`` on."""
    return np.frombuffer(
        memory, array.dtype, array.size, start).reshape(array.shape)


def _mapped(array):
    """An array in a file, or as it is where no file can have it."""
    data = np.ascontiguousarray(array)
    try:
        segment = _open.get("")
        if segment is None or len(segment) - segment.used < data.nbytes:
            segment = _open[""] = Segment(max(ROOM, data.nbytes))
        start = segment.used
        segment.used += -(-data.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        segment.file.seek(start)
        segment.file.write(data.reshape(-1).view(np.uint8).data)
        segment.file.flush()
    except OSError:  # a full disk, or none
        return data
    return _array(segment, data, start)
