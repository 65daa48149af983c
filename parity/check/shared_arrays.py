"""Where weights and truths lie until ports have taken them."""

import dataclasses
import mmap
import pathlib
import pickle
import tempfile

#: Arrays in a file begin at multiples of so many bytes.
ALIGNED = 64


class SharedArrays:
    """Where weights and truths lie until ports have taken them.

    For ports in processes of their own they lie in files, of which all
    processes share the pages; else they stay as they are.
    """

    def __init__(self, subprocesses):
        self._folder = tempfile.TemporaryDirectory() if subprocesses else None
        self._count = 0

    def store(self, value):
        """A value that holds arrays, as something to ``load`` it from."""
        if not self._folder:
            return value
        self._count += 1
        path = pathlib.Path(self._folder.name) / str(self._count)
        arrays: list = []
        body = pickle.dumps(value, 5, buffer_callback=arrays.append)
        arrays = [array.raw() for array in arrays]
        with open(path, "wb") as file:
            for array in arrays:
                file.write(array)
                file.write(bytes(-array.nbytes % ALIGNED))
        return Stored(path, body, [array.nbytes for array in arrays])

    def close(self):
        """Take all away."""
        if self._folder:
            self._folder.cleanup()


@dataclasses.dataclass(frozen=True)
class Stored:
    """A value of which the arrays lie in a file, one behind the other."""

    path: pathlib.Path
    body: bytes
    sizes: list

    def load(self):
        """The value; its arrays are the file's pages, until written to."""
        arrays, start = [], 0
        with open(self.path, "rb") as file:
            file_pages = memoryview(mmap.mmap(
                file.fileno(), 0, access=mmap.ACCESS_COPY)
                if sum(self.sizes) else b"")
        for size in self.sizes:
            arrays.append(file_pages[start:start + size])
            start += size + -size % ALIGNED
        return pickle.loads(self.body, buffers=arrays)

    def drop(self):
        """Take the file away; what has it open keeps it."""
        self.path.unlink()


def load(value):
    """What was stored, or the value that was not."""
    return value.load() if isinstance(value, Stored) else value
