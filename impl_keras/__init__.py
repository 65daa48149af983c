"""The Transformer in Keras 3, on TensorFlow unless KERAS_BACKEND says else."""

import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # keras: errors only

from impl_keras.transformer import Transformer  # noqa: E402

__all__ = ["Transformer"]
