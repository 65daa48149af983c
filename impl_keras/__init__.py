"""The Transformer in Keras 3, on TensorFlow unless KERAS_BACKEND says else."""

import contextlib
import logging
import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # keras: errors only
logging.getLogger("tensorflow").setLevel(logging.ERROR)


@contextlib.contextmanager
def _without_chatter():
    """Hide what TensorFlow's C++ prints at its start; no setting stops it.

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


with _without_chatter():
    import keras  # noqa: E402
    keras.ops.zeros(1)

from impl_keras.transformer import Transformer  # noqa: E402

__all__ = ["Transformer"]
