"""How frameworks are started: nothing is printed, nothing is done twice."""

import contextlib
import functools
import gc
import logging
import os
import sys


@contextlib.contextmanager
def without_chatter():
    """Hide what C++ prints to the standard error, which no setting stops.

    Errors are exceptions and still show.
    """
    stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)


@contextlib.contextmanager
def without_logs(name):
    """Hide what a library logs of what it raises as well.

    Args:
        name: of its logger.
    """
    logger = logging.getLogger(name)
    was, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = was


def start_keras():
    """Import Keras, on TensorFlow unless KERAS_BACKEND says else.

    Raises:
        ImportError: it, or what it runs on, is not installed.
    """
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # errors only
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    with without_chatter():
        import keras
        keras.ops.zeros(1)


@contextlib.contextmanager
def uncollected():
    """Search for no garbage meanwhile: an import makes little of it, and
    objects by the hundred thousand that would be searched each time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def settled():
    """Say that what this process has imported is here to stay.

    It is not searched for garbage any more. And JAX lowers every program in
    one MLIR context.
    """
    gc.freeze()
    # jax: 0.10 makes a context for each and loads all dialects into it, which
    # takes a third of the time where programs are small. It has no switch.
    with contextlib.suppress(ImportError, AttributeError):
        if "jax" in sys.modules:
            from jax._src.interpreters import mlir
            if not hasattr(mlir.make_ir_context, "cache_info"):
                mlir.make_ir_context = functools.cache(mlir.make_ir_context)


def start_matplotlib():
    """Import matplotlib, of which no window is opened.

    So it does not matter if MPLBACKEND names nothing that opens one.
    """
    with contextlib.suppress(ImportError):  # who uses it says so
        try:
            import matplotlib
        except ValueError:
            if (named := os.environ.pop("MPLBACKEND", None)) is None:
                raise
            for name in [name for name in sys.modules
                         if name.partition(".")[0] == "matplotlib"]:
                del sys.modules[name]  # what was imported of it in part
            try:
                import matplotlib  # noqa: F401  without it this time
            finally:
                os.environ["MPLBACKEND"] = named
