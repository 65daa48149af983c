"""Which line, and which module, asked for an operation: from the stack."""

import functools
import importlib.util
import math
import pathlib
import sys
import sysconfig

from parity.operations.program import Place

#: Where this folder lies, and that of functions that are called as modules:
#: their frames asked for nothing.
HERE = tuple(str(pathlib.Path(__file__).parents[1] / name)
             for name in ("operations", "exported"))

#: The code of functions that run one node of a graph: their locals ``place``
#: and ``module`` say where it was written.
TELLING = set()

#: Python's own files, such as contextlib.
STANDARD = sysconfig.get_paths()["stdlib"]


@functools.cache
def folder_of(package):
    """The folder of a package, with its last separator; "" if it is not
    installed."""
    found = importlib.util.find_spec(package)
    if found is None or not found.origin:
        return ""
    return str(pathlib.Path(found.origin).parent) + "/"


class Frames:
    """Finds places in the Python stack of the thread that asks.

    Args:
        paths: id(module) -> its path, as a Trace names it.
        packages: those whose lines are told only where there are no others,
            such as ("torch.nn", "torch"): those of the first rather than those
            of the second.
        end: the code that the run begins at: who called it asked for nothing.
        passed: packages that ask for nothing.
        otherwise: the path that is told where no module is met. Inside a
            compiled function modules are others than those of ``paths``.
    """

    def __init__(self, paths, packages, end=None, passed=(), otherwise=""):
        self.paths, self.end, self.otherwise = paths, end, otherwise
        self.own = tuple(filter(None, map(folder_of, packages)))
        self.passed = (
            *HERE, "<frozen", *filter(None, map(folder_of, passed)))
        self.kinds = {}

    def kind(self, file):
        """0 for a user's or another library's file, 1 for the framework's
        own, 2 for what asks for nothing."""
        if file not in self.kinds:
            passed = file.startswith(self.passed) or (
                file.startswith(STANDARD) and "site-packages" not in file)
            self.kinds[file] = (2 if passed else
                                1 if file.startswith(self.own) else 0)
        return self.kinds[file]

    def rank(self, file):
        """How telling a line of the framework's is; 0 is the most."""
        return next(i for i, folder in enumerate(self.own)
                    if file.startswith(folder))

    def place(self, frame):
        """The Place of a frame that asked, and of all that called it."""
        asked, outer, place = [frame], frame.f_back, None
        while outer is not None and outer.f_code is not self.end:
            if not self.kind(outer.f_code.co_filename):
                asked.append(outer)
            outer = outer.f_back
        for each in reversed(asked):
            code = each.f_code
            place = Place(code.co_filename, each.f_lineno, code.co_name,
                          place, self.module(each))
        return place

    def module(self, frame):
        """The path of the module whose method a frame runs, or ""."""
        code = frame.f_code
        return self.paths.get(id(frame.f_locals.get(
            code.co_varnames[0])), "") if code.co_argcount else ""

    def here(self):
        """The Place, and the path of the innermost module or ""."""
        frame, outer, module = sys._getframe(1), None, ""
        place, far = None, math.inf
        while frame is not None and frame.f_code is not self.end and (
                place is None or not module):
            code = frame.f_code
            if place is None and code in TELLING:
                return frame.f_locals["place"], frame.f_locals["module"]
            kind = self.kind(code.co_filename)
            if place is None and kind == 0:
                place = self.place(frame)
            elif kind == 1 and (rank := self.rank(code.co_filename)) < far:
                outer = Place(code.co_filename, frame.f_lineno, code.co_name)
                far = rank
            if not module and kind < 2:
                module = self.module(frame)
            frame = frame.f_back
        return (place or outer or Place(),
                module or (self.otherwise if self.paths else ""))


class KerasFrames(Frames):
    """Frames of a run of Keras.

    Where no line is the user's, the layer's own line is told, and not that of
    the backend's function by which it was done. ``within`` is the line of a
    graph that is run, if it is known.
    """

    within = None

    def __init__(self, paths, end=None):
        super().__init__(paths, (
            "tensorflow", "torch", "jax", "keras", "numpy", "optree", "tree",
            "absl"), end)
        self.keras = folder_of("keras")

    def stack(self, depth=1):
        """Yield the frames of the run, the innermost first."""
        frame = sys._getframe(depth)
        while frame is not None and frame.f_code is not self.end:
            yield frame
            frame = frame.f_back

    def here(self):
        """The Place, and the path of the innermost module or ""."""
        place, module = super().here()
        return self.within or place, module

    def rank(self, file):
        """How telling a line of a library is; 0 is the most."""
        if file.startswith(f"{self.keras}src/layers/") and not file.endswith(
                ("/layers/layer.py", "/layers/layer_test.py")):
            return 0
        return 1 if file.startswith(self.keras) else 2
