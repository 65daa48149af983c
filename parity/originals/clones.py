"""Old code of a clone, imported without what it asks for beside a model."""

import contextlib
import sys
from unittest import mock


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
