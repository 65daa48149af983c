"""Where JAX keeps what it compiles, so that the next run need not.

It compiles each operation for each shape, which takes longer than all that is
computed.
"""

import contextlib
import os
import pathlib
import sys

#: Where JAX keeps what it compiled, and that it keeps what is small as well.
KEPT, ALL = "JAX_COMPILATION_CACHE_DIR", {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}


def folder():
    """The folder jax of the virtual environment, which ``make`` makes; or None.
    """
    kept = pathlib.Path(sys.prefix, "jax")
    return kept if kept.is_dir() and os.access(kept, os.W_OK) else None


@contextlib.contextmanager
def kept_in(kept):
    """Let JAX keep what it compiles in a folder, here before it is imported.

    Nowhere, for None; and what the environment says of it is left as it is.
    """
    if KEPT in os.environ or kept is None:
        yield
        return
    before = {name: os.environ.get(name) for name in (KEPT, *ALL)}
    os.environ |= {**ALL, KEPT: str(kept)}
    try:
        yield
    finally:
        for name, value in before.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value
