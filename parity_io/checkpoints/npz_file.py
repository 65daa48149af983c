"""The arrays of an npz, a zip of .npy files, read when they are asked for."""

import collections.abc
import contextlib
import zipfile

import numpy as np
from numpy.lib import format as npy

from parity_io.errors import InputError
from parity_io.memory import check_memory

#: What reads the header of a version of .npy.
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class Members(collections.abc.Mapping):
    """The arrays by name: headers are read at once, numbers when asked for.

    Raises:
        InputError: it is no npz, is larger than the memory, or holds objects,
            which are pickles, or what is no array.
    """

    def __init__(self, path):
        self._path, self._entries, self._arrays = path, {}, {}
        with self._opened() as archive:
            check_memory(sum(entry.file_size for entry in archive.infolist()),
                         path)
            for entry in archive.infolist():
                name = entry.filename.removesuffix(".npy")
                with archive.open(entry) as file:
                    self._check(name, file)
                self._entries[name] = entry

    def _check(self, name, file):
        """Raise an error unless a member begins as an array of numbers."""
        magic = file.read(npy.MAGIC_LEN)
        if not magic.startswith(npy.MAGIC_PREFIX):
            raise InputError(
                f"{str(self._path)!r} holds {name!r}, which is no array; save "
                "it again with np.savez.")
        _, _, dtype = HEADERS[magic[-2], magic[-1]](file)
        if dtype.hasobject:
            raise ValueError("it holds objects")

    @contextlib.contextmanager
    def _opened(self):
        """The zip; damage is told in a sentence."""
        try:
            with zipfile.ZipFile(self._path) as archive:
                yield archive
        except InputError:
            raise
        except Exception as error:  # zip, zlib, NumPy's headers
            raise InputError(
                f"{str(self._path)!r} cannot be read as npz "
                f"({str(error)[:80]}); save arrays of numbers with "
                "numpy.savez.") from None

    def __getitem__(self, name) -> np.ndarray:
        if name not in self._arrays:
            entry = self._entries[name]
            with self._opened() as archive, archive.open(entry) as file:
                self._arrays[name] = npy.read_array(file, allow_pickle=False)
        return self._arrays[name]

    def __iter__(self):
        return iter(self._entries)

    def __len__(self):
        return len(self._entries)
