"""Which line and which module asked JAX for an operation."""

import sys

from parity.operations.frames import Frames
from parity.operations.program import Place
from parity.tracing.trace import WHOLE

#: Whose lines ask for nothing.
INSIDE = ("jax", "jaxlib", "numpy")


class JaxStack(Frames):
    """The Python stack below ``record``.

    Args:
        paths: id(module) -> path.
        packages: of the framework, told where no other file asked.
        top: the code of the function below which the stack is looked at.
    """

    def __init__(self, paths, packages, top):
        self.top = top
        super().__init__(paths, INSIDE + tuple(packages), top)
        self.inside = tuple(f"{folder.rstrip('/')}/" for folder in Frames(
            {}, INSIDE).own)

    def kind(self, file):
        """As of Frames; JAX and NumPy ask for nothing."""
        kind = super().kind(file)
        return 2 if kind == 1 and file.startswith(self.inside) else kind

    def here(self):
        """The Place, and the path of the innermost module.

        Inside a compiled function modules are others: there it is the one that
        called the function.
        """
        frame, place, outer, module = sys._getframe(1), None, None, ""
        while frame is not None and frame.f_code is not self.top and (
                place is None or not module):
            code = frame.f_code
            kind = self.kind(code.co_filename)
            if kind == 0:
                place = place or self.place(frame)
            elif kind == 1:
                outer = outer or Place(
                    code.co_filename, frame.f_lineno, code.co_name)
            if kind < 2 and not module:
                module = self.module(frame)
            frame = frame.f_back
        return (place or outer or Place(),
                module or (WHOLE if self.paths else ""))
