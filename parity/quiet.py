"""Frameworks that are imported without what they print at their start."""

import contextlib
import logging
import os


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
