"""Which line and which layer asked for an operation of Keras."""

import sys

from parity.operations.frames import Frames, folder_of
from parity.operations.program import Place

#: Packages whose lines are told only where there are no others.
PACKAGES = ("tensorflow", "torch", "jax", "keras", "numpy", "optree", "tree",
            "absl")


class KerasFrames(Frames):
    """Frames, of a run that begins at the code ``end``.

    Where no line is the user's, the layer's own line is told, and not that of
    the backend's function by which it was done. ``within`` is the line of a
    graph that is run, if it is known.
    """

    def __init__(self, paths, end=None):
        super().__init__(paths, PACKAGES, end)
        self.within = None
        self.layers = f"{folder_of('keras')}src/layers/"
        self.keras = folder_of("keras")

    def stack(self, depth=1):
        """Yield the frames of the run, the innermost first."""
        frame = sys._getframe(depth)
        while frame is not None and frame.f_code is not self.end:
            yield frame
            frame = frame.f_back

    def here(self):
        """The Place, and the path of the innermost module or ""."""
        found, module = {}, ""
        for frame in self.stack(2):
            code = frame.f_code
            kind = self.kind(code.co_filename)
            if kind == 2:
                continue
            module = module or self.module(frame)
            rank = 0 if kind == 0 else self.rank(code.co_filename)
            if rank not in found:
                found[rank] = self.place(frame) if rank == 0 else Place(
                    code.co_filename, frame.f_lineno, code.co_name)
            if 0 in found and module:
                break
        if self.within or not found:
            return self.within or Place(), module
        return found[min(found)], module

    def rank(self, file):
        """How telling a line of a library is; 1 is the most."""
        if file.startswith(self.layers) and not file.endswith(
                ("/layers/layer.py", "/layers/layer_test.py")):
            return 1
        return 2 if file.startswith(self.keras) else 3
