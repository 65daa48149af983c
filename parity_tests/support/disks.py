"""A disk that is full."""

import contextlib
import resource


@contextlib.contextmanager
def full(size):
    """No file may become larger than so many bytes."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
