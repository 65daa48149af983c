"""A trace as a folder: ``arrays.safetensors`` and ``manifest.json``.

An array's name in the file is the SHA-256 of its dtype, shape and bytes, so
that the output of one step and equal input of the next are stored once. The
manifest has all else, the SHA-256 of the file, and one of itself.
"""

import hashlib
import json
import os
import pathlib

import ml_dtypes
import numpy as np

from parity_io import array_file
from parity_io.errors import InputError, visible
from parity_io.files import check_ordinary, new_folder
from parity.tracing.trace import WHOLE, Step, Trace

SCHEMA = 1
MANIFEST, ARRAYS = "manifest.json", "arrays.safetensors"

#: What safetensors can store as it is; anything else is stored as its bytes.
STORED = {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16",
          "uint32", "uint64", "float16", "float32", "float64", "bfloat16"}

ARRAY_FIELDS = ("inputs", "outputs", "gradients")
PLAIN_FIELDS = ("path", "module", "kind", "source", "began", "ended",
                "others", "parameters", "settings")
TRACE_FIELDS = ("framework", "versions", "precision", "dtype", "trainable",
                "aliases", "loss", "never_called", "notes")


def _file_hash(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _own_hash(manifest):
    """SHA-256 of a manifest but for its own entry."""
    text = json.dumps({name: value for name, value in manifest.items()
                       if name != "sha256"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def dump(trace, folder, also=None):
    """Write a trace to a new folder, whole or not at all.

    Args:
        trace: a Trace.
        folder: where; it must not exist or be empty, and its parent must
            exist.
        also: {name: function of a path} that write further files.

    Raises:
        InputError: the folder is not empty or cannot be made.
    """
    folder = pathlib.Path(folder)
    check_vacant(folder)
    arrays = {}

    def entry(array):
        key = trace.hash_of(array)
        if key not in arrays:
            data = np.ascontiguousarray(array)
            if array.dtype.name not in STORED:
                data = data.reshape(-1).view(np.uint8)
            arrays[key] = data
        return {"array": key, "dtype": array.dtype.name,
                "shape": list(array.shape)}

    def entries(values):
        return {name: entry(array) for name, array in values.items()}

    manifest = {
        "schema": SCHEMA,
        **{field: getattr(trace, field) for field in TRACE_FIELDS},
        "inputs_hash": trace.inputs_hash,
        "parameters_hash": trace.parameters_hash,
        "raw": {name: value for name, value in trace.raw.items()
                if not isinstance(value, np.ndarray)},
        "raw_arrays": entries({
            name: value for name, value in trace.raw.items()
            if isinstance(value, np.ndarray)}),
        "parameters": entries(trace.parameters),
        "gradients": entries(trace.gradients),
        "steps": [{
            **{field: getattr(step, field) for field in PLAIN_FIELDS},
            **{field: entries(getattr(step, field))
               for field in ARRAY_FIELDS}} for step in trace.steps],
    }
    try:
        with new_folder(folder) as temporary:
            array_file.save(temporary / ARRAYS, arrays)
            for name, write in (also or {}).items():
                write(temporary / name)
            manifest["files"] = {name: _file_hash(temporary / name)
                                 for name in (ARRAYS, *(also or {}))}
            manifest = json.loads(json.dumps(manifest, allow_nan=True))
            manifest["sha256"] = _own_hash(manifest)
            (temporary / MANIFEST).write_text(
                json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"the dump {str(folder)!r} cannot be written ({error}); choose "
            "another folder.") from None


def check_vacant(folder):
    """Raise InputError unless a dump can be written to this folder."""
    folder = pathlib.Path(folder)
    if folder.exists() and not (folder.is_dir()
                                and not any(folder.iterdir())):
        raise InputError(
            f"{str(folder)!r} is not empty; remove it or choose another "
            "folder.")
    if not os.access(folder.absolute().parent, os.W_OK):
        raise InputError(
            f"{str(folder)!r} cannot be made; give a folder inside one that "
            "exists and is writable.")


def _manifest(folder):
    """Read a manifest and check that it was not edited."""
    path = folder / MANIFEST
    check_ordinary(path)
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"{str(folder)!r} is not a dump, because it has no {MANIFEST}; "
            "give a folder that parity dump made.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{str(path)!r} cannot be read ({error}); make the dump again."
        ) from None
    if not isinstance(manifest, dict) or "schema" not in manifest:
        raise InputError(
            f"{str(path)!r} is not the manifest of a dump; give a folder that "
            "parity dump made.")
    if manifest["schema"] != SCHEMA:
        raise InputError(
            f"{str(path)!r} is of schema {repr(manifest['schema'])[:40]} and "
            f"this program reads {SCHEMA}; make the dump again.")
    if manifest.get("sha256") != _own_hash(manifest):
        raise InputError(
            f"{str(path)!r} was edited or damaged: its hash is not the one "
            "recorded in it; make the dump again.")
    wrong = next(_wrong(manifest), None)
    if wrong:
        raise InputError(
            f"{str(path)!r} is not consistent: {wrong}; make the dump again.")
    return _visible(manifest)


def _visible(data):
    """Plain data of others, to be shown: without control characters."""
    match data:
        case str():
            return visible(data)
        case list():
            return [_visible(part) for part in data]
        case dict():
            return {visible(key): _visible(part)
                    for key, part in data.items()}
    return data


# What a manifest must be, so that a crafted one is refused here

def _words(value):
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def _texts(value):
    return isinstance(value, dict) and _words(list(value.values()))


def _size(value):
    return type(value) is int and 0 <= value < 1 << 40


def _entries(value):
    """Whether these are names with arrays, as ``dump`` writes them."""
    return isinstance(value, dict) and all(
        isinstance(entry, dict)
        and entry.keys() == {"array", "dtype", "shape"}
        and isinstance(entry["array"], str) and isinstance(entry["dtype"], str)
        and isinstance(entry["shape"], list) and len(entry["shape"]) < 33
        and all(map(_size, entry["shape"])) for entry in value.values())


def _text(value):
    return isinstance(value, str)


def _number(value):
    return value is None or isinstance(value, (int, float))


def _dict(value):
    return isinstance(value, dict)


OF_TRACE = {
    "framework": _text, "versions": _texts, "precision": _dict, "dtype": _text,
    "trainable": _words, "aliases": _texts, "loss": _number,
    "never_called": _words, "notes": _words, "parameters": _entries,
    "gradients": _entries, "files": _texts}
OF_STEP = {
    "path": _text, "module": _text, "kind": _text, "source": _text,
    "began": _size, "ended": _size, "others": _texts, "parameters": _words,
    "settings": _dict, "inputs": _entries, "outputs": _entries,
    "gradients": _entries}


def _wrong(manifest):
    """Yield in words what a manifest has otherwise than ``dump`` writes it."""
    for field, good in OF_TRACE.items():
        if field not in manifest or not good(manifest[field]):
            yield f"its {field} are not what is written there"
    steps = manifest.get("steps")
    if not isinstance(steps, list) or not all(
            isinstance(step, dict) and step.keys() == OF_STEP.keys()
            and all(good(step[field]) for field, good in OF_STEP.items())
            for step in steps):
        yield "its steps are not what is written there"
        return
    paths = [step["path"] for step in steps]
    ends = [step["ended"] for step in steps]
    if paths[-1:] != [WHOLE]:
        yield "its steps do not end with the whole"
    if not _dict(manifest.get("raw", {})) or not _entries(
            manifest.get("raw_arrays", {})):
        yield "what its inputs were made of is not what is written there"
    if ends != sorted(ends) or any(
            step["began"] > step["ended"] for step in steps):
        yield "its steps are not in order"
    if not set(manifest["aliases"].values()) <= set(manifest["parameters"]):
        yield "an alias leads to no parameter"


def _raw(manifest):
    """What inputs were made of, but for arrays; JSON's keys are texts."""
    raw = dict(manifest.get("raw", {}))
    if isinstance(raw.get("pieces"), dict):
        raw["pieces"] = {int(key): str(piece) for key, piece
                         in raw["pieces"].items()}
    return raw


def file_of(folder, name):
    """The path of one more file of a dump.

    Raises:
        InputError: it is missing, edited or another dump's.
    """
    folder = pathlib.Path(folder)
    return _checked(folder, name, _manifest(folder))


def _checked(folder, name, manifest):
    """The path of a file whose hash is the manifest's."""
    path = folder / name
    check_ordinary(path)
    if not path.is_file():
        raise InputError(
            f"the dump {str(folder)!r} lacks {name}; make the dump again.")
    if _file_hash(path) != manifest["files"].get(name):
        raise InputError(
            f"{str(path)!r} is damaged or another dump's: its hash is not the "
            "one in the manifest; make the dump again.")
    return path


def load(folder):
    """Read a dump.

    Returns:
        A Trace that is not live.

    Raises:
        InputError: it is no dump, of another schema, or a file of it is
            missing, cut short, edited or another dump's.
    """
    folder = pathlib.Path(folder)
    manifest = _manifest(folder)
    contents, _ = array_file.load(_checked(folder, ARRAYS, manifest))
    arrays_by_key = {}

    def array(entry):
        key = entry["array"]
        if key not in arrays_by_key:
            dtype = np.dtype(
                getattr(ml_dtypes, entry["dtype"], None) or entry["dtype"])
            values = contents[key]
            if values.dtype != dtype and not dtype.hasobject:
                values = values.view(dtype)
            values = arrays_by_key[key] = values.reshape(entry["shape"])
            values.flags.writeable = False
        if (list(arrays_by_key[key].shape), arrays_by_key[key].dtype.name) != (
                entry["shape"], entry["dtype"]):
            raise ValueError(f"{key} is another array")
        return arrays_by_key[key]

    def arrays(entries):
        return {name: array(entry) for name, entry in entries.items()}

    try:
        trace = Trace(
            **{field: manifest[field] for field in TRACE_FIELDS},
            steps=[Step(**{field: step[field] for field in PLAIN_FIELDS},
                        **{field: arrays(step[field])
                           for field in ARRAY_FIELDS})
                   for step in manifest["steps"]],
            parameters=arrays(manifest["parameters"]),
            gradients=arrays(manifest["gradients"]),
            raw=_raw(manifest) | arrays(manifest.get("raw_arrays", {})),
            origin=os.path.realpath(folder))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"the dump {str(folder)!r} is not consistent "
            f"({repr(error)[:80]}); make it again.") from None
    return trace
