"""Weights as files: safetensors, torch's and NumPy's read, two of them
written."""

import pathlib

import numpy as np

from parity_io.checkpoints import folder, safetensors_file
from parity_io.errors import InputError
from parity_io.files import new_file, as_input_error

#: What can be written, and of a live Keras model as well.
WRITTEN, KERAS = (".safetensors", ".npz"), ".weights.h5"


def read(path):
    """The arrays of a file, or of a folder with one, by name."""
    if pathlib.Path(path).suffix in (".h5", ".keras"):
        raise InputError(
            f"{str(path)!r} has its own names of weights; give "
            "SCRIPT.py:FUNCTION that makes the model and loads it.")
    return folder.read(path).arrays


def check(path, keras=False):
    """Raise InputError for a file that could not be written."""
    name = pathlib.Path(path).name
    endings = (*WRITTEN, *([KERAS] if keras else ()))
    if not name.endswith(endings):
        raise InputError(
            f"{str(path)!r} has no ending that says its format; write "
            f"{' or '.join(endings)}"
            + ("." if keras or not name.endswith(".h5") else
               ", or give a Keras model, which writes its own file."))


def write(path, arrays, model=None):
    """Write arrays by name, whole or not at all; or a Keras model's own."""
    path = pathlib.Path(path)
    if path.name.endswith(KERAS):
        with as_input_error(path), new_file(path) as temporary:
            # keras: the ending says the format.
            own = temporary.with_name(temporary.name + KERAS)
            try:
                model.save_weights(own)
                own.replace(temporary)
            finally:
                own.unlink(missing_ok=True)
    elif path.suffix == ".npz":
        with as_input_error(path), new_file(path) as temporary:
            with open(temporary, "wb") as file:
                np.savez(file, **arrays)
    else:
        safetensors_file.write(path, arrays)
