"""The files of models that ``save`` of each port writes, and ``load`` reads.

A safetensors file: weights by their canonical names, and the config among the
metadata. Its ending may be any.
"""

import os
import zipfile

from transformer_contract import checks, shipped
from transformer_contract import weights as files
from transformer_contract.config import TransformerConfig
from parity_io.errors import InputError, is_whole
from transformer_contract.schema import schema

ENDING = ".safetensors"

ZIP = b"PK\x03\x04"

#: Files of frameworks: how they begin, what a zip archive holds, what they are
#: and what reads them.
OTHERS = (
    (ZIP, "data.pkl", "a file of torch.save", "torch.load"),
    (ZIP, "model.weights.h5", "a .keras file", "keras.saving.load_model"),
    (ZIP, ".npy", "an .npz file", "what wrote it, such as MLX"),
    (b"\x89HDF", "", "an HDF5 file", "what wrote it, such as Keras"),
    (b"\x80", "", "a pickle", "what wrote it"))


def initial(config, seed):
    """The weights of a new model: initial_weights, float64.

    Raises:
        InputError: these are no config and no whole number.
    """
    checks.kind(config, TransformerConfig, "a TransformerConfig", "config")
    if not is_whole(seed):
        raise InputError(f"the seed is {seed!r}; choose a whole number.")
    return files.initial_weights(config, seed)


def rounded(weights, dtype):
    """Weights in a dtype, rounded once, by NumPy, for all ports alike.

    torch and TensorFlow round float64 to float32 first, then to float16.
    """
    return {name: array.astype(dtype, copy=False)
            for name, array in weights.items()}


def read(name):
    """The config and weights of a shipped model's name, or of a path.

    Raises:
        InputError: the file cannot be read, or is no model's.
    """
    checks.kind(name, (str, os.PathLike), "a path", "model's file")
    names = [each.removesuffix(ENDING) for each in shipped.sums()
             if each.endswith(ENDING) and "/" not in each]
    if name in names:
        path = shipped.sound(f"{name}{ENDING}")
    elif os.path.exists(name):
        path = name
    else:
        raise InputError(
            f"there is no file {str(name)!r}; check the path, or choose one "
            f"of {', '.join(names)}.")
    _refuse_others(path)
    weights, metadata = files.load(path)
    try:
        config = TransformerConfig(**files.described(metadata)["config"])
    except (KeyError, TypeError):
        raise InputError(
            f"{str(path)!r} does not say which model it is, in words known "
            "here; give a file that save wrote.") from None
    files.check_layers(config, len(weights), str(path))
    files.check(weights, schema(config), str(path))
    return config, weights


def write(model, path, export):
    """Write a model's config, and its weights by a port's ``export``.

    Raises:
        InputError: it is no model of ours, or the file cannot be written.
    """
    checks.kind(path, (str, os.PathLike), "a path", "file to write")
    config = getattr(model, "config", None)
    if not isinstance(config, TransformerConfig):
        raise InputError(
            f"the model came as {type(model).__name__}, without a config; "
            "give one that create or load made.")
    files.save(path, export(model), config=config.as_dict())


def _refuse_others(path):
    """Name a file of a framework's own format, and what reads it.

    Raises:
        InputError: it is one, or a folder.
    """
    if os.path.isdir(path):
        raise InputError(
            f"{str(path)!r} is a folder; give a file that save wrote.")
    try:
        with open(path, "rb") as file:
            head = file.read(9)
        inside = []
        if head.startswith(ZIP):
            with zipfile.ZipFile(path) as archive:
                inside = archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return  # what reads it as safetensors says why it cannot
    if head.endswith(b"{"):  # safetensors, whatever its header's length
        return
    for begin, ending, what, reader in OTHERS:
        if head.startswith(begin) and (begin != ZIP or any(
                each.endswith(ending) for each in inside)):
            raise InputError(
                f"{str(path)!r} is {what}, and no file that save wrote; read "
                f"it by {reader}, then write the model by save.")
