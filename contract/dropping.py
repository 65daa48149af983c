"""When dropout is on, and by which key: for the time of a run.

Dropout is off unless a run is open, so that a model never drops by accident.
In an open run each place where something is dropped has a key of its own: the
run's key and the place's path, which is the same in all four.
"""

import contextlib

_open = None


def place(module):
    """None while dropout is off, else (the run's key, the module's path)."""
    if _open is None:
        return None
    paths, key, _ = _open
    return key, paths[id(module)]


def native():
    """Whether the open run asks for the framework's own generator.

    Its masks are quicker to draw and are nobody else's: such a run cannot be
    compared, nor resumed to the bit.
    """
    return _open[2]


@contextlib.contextmanager
def dropping(paths, key, native=False):
    """Open a run for the duration of a ``with`` block.

    Args:
        paths: id(module) -> its path from the root.
        key: the run's key, as the framework's ``random`` makes them; None
            leaves dropout off.
        native: whether masks come from the framework's own generator.
    """
    global _open
    before, _open = _open, None if key is None else (paths, key, native)
    try:
        yield
    finally:
        _open = before
