"""How many threads compute: one, for models as small as those of the pages.

Threads that wait for one another cost more than they gain there: on two cores
on which other programs run as well, five to forty times as much.
"""

import contextlib
import os

from threadpoolctl import threadpool_limits

#: What PyTorch reads when it is imported, and NumPy in another process.
NAME = "OMP_NUM_THREADS"


@contextlib.contextmanager
def one_thread():
    """Compute on one thread, here and in processes that begin meanwhile."""
    before = os.environ.get(NAME)
    os.environ[NAME] = "1"
    try:
        with threadpool_limits(1):
            yield
    finally:
        del os.environ[NAME]
        if before is not None:
            os.environ[NAME] = before
