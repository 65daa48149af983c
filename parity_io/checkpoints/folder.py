"""A file or a folder of others, recognised and read."""

import dataclasses
import json
import os
import pathlib
import zipfile
from collections.abc import Mapping

import numpy as np

from parity_io.checkpoints import (
    ctranslate2, npz_file, safetensors_file, torch_archive)
from parity_io.errors import InputError
from parity_io.files import check_ordinary, read_text
from parity_io.memory import check_memory

#: What holds the weights of a folder; the first that is there, as
#: transformers choose.
WEIGHTS = ("model.safetensors", "model.safetensors.index.json",
           "pytorch_model.bin", "pytorch_model.bin.index.json", "model.bin",
           "model.npz", "io.safetensors")

#: The key of ``config.json`` that names another file.
NAMED = "transformers_weights"

#: What the name of a file ends in that says where each array is.
INDEX = ".index.json"

CONFIG, GENERATION = "config.json", "generation_config.json"


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """What others stored of a model.

    Attributes:
        path: where.
        format: "safetensors", "torch", "npz" or "ctranslate2".
        arrays: by their own names; views of the file where that can be, and
            of an npz read when they are asked for.
        metadata: what the file says of itself.
        config: what ``config.json`` says, or None without one.
        generation: what ``generation_config.json`` says; {} without one.
    """

    path: pathlib.Path
    format: str
    arrays: Mapping
    metadata: dict
    config: dict | None = None
    generation: dict = dataclasses.field(default_factory=dict)


def read(path):
    """Read a file, or a folder with its ``config.json``, as a Checkpoint.

    Raises:
        InputError: it is not there, of no format that can be read, damaged,
            cut short, or larger than this machine's memory.
    """
    path = pathlib.Path(path)
    if not path.exists():
        raise InputError(f"there is no {str(path)!r}; check the path.")
    if not path.is_dir():
        kind, arrays, metadata = read_file(path)
        return Checkpoint(path, kind, arrays, metadata)
    config, generation = (
        read_json(path / name) if (path / name).is_file() else None
        for name in (CONFIG, GENERATION))
    names = WEIGHTS
    if (named := (config or {}).get(NAMED)) is not None:
        if not isinstance(named, str) or os.path.basename(named) != named:
            raise InputError(
                f"{NAMED} in {str(path / CONFIG)!r} is {named!r}; it must be "
                "the name of a file beside it.")
        names = (named,)
    file = next((path / name for name in names
                 if (path / name).is_file()), None)
    if file is None:
        raise InputError(
            f"the folder {str(path)!r} holds none of {', '.join(names)}; "
            "give a folder that does, or the file of the weights.")
    kind, arrays, metadata = read_file(file)
    return Checkpoint(path, kind, arrays, metadata, config, generation or {})


def read_file(path):
    """The format of a file, its arrays and its metadata."""
    check_ordinary(path)
    if path.name.endswith(INDEX):
        return read_shards(path)
    try:
        with open(path, "rb") as file:
            head = file.read(512)
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be read ({error.strerror}); check the path."
        ) from None
    size = os.path.getsize(path)
    check_memory(size, path)
    names = _names(path) if head[:2] == b"PK" else []
    if torch_archive.recognised(head, names):
        return "torch", *torch_archive.read(path)
    if any(name.endswith(".npy") for name in names):
        return "npz", npz_file.Members(path), {}
    if ctranslate2.recognised(head):
        return "ctranslate2", *ctranslate2.read(path)
    if safetensors_file.recognised(head, size):
        return "safetensors", *safetensors_file.read(path)
    raise InputError(
        f"{str(path)!r} is no safetensors, torch, npz or CTranslate2 file, or "
        "is cut short; give one of these.")


def read_shards(path):
    """The format of the shards that an index names, all arrays, its metadata.
    """
    index = read_json(path)
    of_name = index.get("weight_map")
    if not isinstance(of_name, dict) or not all(
            isinstance(shard, str) and os.path.basename(shard) == shard
            and shard not in ("", ".", "..") and not shard.endswith(INDEX)
            for shard in of_name.values()) or not of_name:
        raise InputError(
            f"{str(path)!r} has no weight_map that says in which file beside "
            "it each array is; fetch it again.")
    arrays: dict[str, np.ndarray] = {}
    kind = ""
    for shard in dict.fromkeys(of_name.values()):
        if not (file := path.with_name(shard)).is_file():
            raise InputError(
                f"{str(path)!r} names the shard {shard!r}, which is not "
                "there; fetch the whole folder.")
        kind, there, _ = read_file(file)
        own = {name for name, home in of_name.items() if home == shard}
        if difference := sorted(own ^ there.keys()):
            raise InputError(
                f"{str(path)!r} and its shard {shard!r} differ in the array "
                f"{difference[0]!r}; fetch the whole folder.")
        arrays |= there
    return kind, arrays, index.get("metadata") or {}


def _names(path):
    """The names in a zip; none where it is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise InputError(
            f"{str(path)!r} begins as an archive, but is damaged or cut "
            "short; fetch it again.") from None


def read_json(path):
    """A dict from JSON; InputError where it is none."""
    text = read_text(path)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{str(path)!r} is not JSON ({str(error)[:80]}); fetch it again."
        ) from None
    if not isinstance(found, dict):
        raise InputError(
            f"{str(path)!r} is not a JSON object; fetch it again.")
    return found
