"""Old code of a clone, imported without what it asks for beside a model."""

import contextlib
import functools
import sys
from unittest import mock

from parity_io.errors import InputError


def imported(package):
    """Have a function that imports a clone say it in words where it cannot.

    Whatever stands under the package's name on PYTHONPATH may raise anything.
    """
    def wrap(modules):
        @functools.wraps(modules)
        def call():
            try:
                return modules()
            except Exception as problem:
                raise InputError(
                    f"{package}, as PYTHONPATH has it, cannot be imported: "
                    f"{type(problem).__name__}, {problem}; set PYTHONPATH to "
                    "a clone as docs/dialects.md names it.") from problem

        return call

    return wrap


@contextlib.contextmanager
def without(*names):
    """Within this, modules of these names are imported as empty stand-ins.

    Whatever else is imported stays; the stand-ins do not.
    """
    with mock.patch.dict(sys.modules, {
            name: mock.MagicMock() for name in names}):
        yield
        kept = {name: module for name, module in sys.modules.items()
                if name not in names}
    sys.modules.update(kept)
