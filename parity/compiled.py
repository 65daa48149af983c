"""How JAX compiles what a command runs, and where it keeps it for the next.

It compiles each operation for each shape, which takes longer than all that is
computed.
"""

import contextlib
import os
import pathlib
import sys
import tempfile

#: Where JAX keeps what it compiled, and that it keeps what is small as well.
KEPT, ALL = "JAX_COMPILATION_CACHE_DIR", {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}

#: The variable of XLA's options, and those by which it compiles in a quarter of
#: the time: the programs run for milliseconds.
OPTIONS, QUICKLY = "XLA_FLAGS", ("--xla_backend_optimization_level=0 "
                                 "--xla_cpu_use_fusion_emitters=false")

#: Who knows these options, and as of which versions: XLA ends a process that
#: gives it one that it does not know.
KNOWN = {"jaxlib": "0.10.", "tensorflow": "2.21.", "tensorflow-cpu": "2.21."}


def folder():
    """The folder jax of the virtual environment, which ``make`` makes; or None.
    """
    kept = pathlib.Path(sys.prefix, "jax")
    return kept if kept.is_dir() and os.access(kept, os.W_OK) else None


def quickly():
    """What has XLA compile quickly: {variable: value}, before it is imported.

    Nothing where options are set already, or not known to be known.
    """
    if OPTIONS in os.environ or not all(
            version.startswith(KNOWN[name])
            for name, version in installed(KNOWN)):
        return {}
    return {OPTIONS: QUICKLY}


def unsure():
    """The options of XLA in the environment that it may not know."""
    return [option for option in os.environ.get(OPTIONS, "").split()
            if option not in QUICKLY.split()]


def installed(names):
    """Each of these distributions that is here, and its version."""
    import importlib.metadata  # takes as long as all of "parity --help"
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            yield name, importlib.metadata.version(name)


def keeping(kept):
    """What has JAX keep what it compiles in a folder: {variable: value}.

    Nothing for None, or where the environment says of it already.
    """
    if KEPT in os.environ or kept is None:
        return {}
    return {**ALL, KEPT: str(kept)}


@contextlib.contextmanager
def environment(variables):
    """Have variables of the environment, as they were before at the end."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ |= variables
    try:
        yield
    finally:
        for name, value in before.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value


@contextlib.contextmanager
def once(prefix):
    """Let all processes share what JAX compiles, here before it is imported.

    Quickly, for most of it runs once. Where nothing of it is kept already, in a
    folder of this run, whose name begins with ``prefix``.
    """
    with contextlib.ExitStack() as stack:
        kept = folder() or stack.enter_context(tempfile.TemporaryDirectory(
            prefix=prefix, ignore_cleanup_errors=True))
        stack.enter_context(environment(keeping(kept) | quickly()))
        yield
