"""A dump of anybody's: a folder of arrays, and what they are called.

The arrays are in ``.npy``, ``.npz``, ``.safetensors`` and ``.pt`` files, at any
depth. An array's name is its key; that of one that is alone in its file is the
file's path without the ending:

    raw/image            what the inputs were made of: image, audio or rate;
                         a text is in raw/text.txt
    inputs/ids           what the model was given
    outputs/logits       what it gave
    parameters/h.0.w     a weight
    h.0.attn             what the step h.0.attn gave; also h.0.attn/output
    h.0.attn/input.mask  what it was given

``names.txt`` may say in which order they were computed, a name a line. Its
first line is ``parity dump 1``. Every array is then to be in it.
"""

import difflib
import re

import ml_dtypes  # noqa: F401  teaches NumPy bfloat16
import numpy as np

from parity_io.checkpoints import folder as checkpoints
from parity_io.checkpoints import torch_archive
from parity_io.errors import InputError, visible
from parity_io.files import check_ordinary, read_text
from parity_io.memory import check_memory
from parity.tracing.trace import MODULE, WHOLE, Step, Trace, is_float

#: The file of names, what its first line begins with, and the version read.
NAMES, HEAD, VERSION = "names.txt", "parity dump", "1"

#: Files with arrays.
ENDINGS = ".npy", ".npz", ".safetensors", ".pt"

#: What the names of the model's own arrays begin with.
OWN = "inputs", "outputs", "parameters", "raw"

#: The last part of a name that says which array of a step it is.
SIDE = re.compile(r"(input|output)s?(?:\.(.+))?")


def holds(path):
    """Whether a folder has files with arrays, or a path is one."""
    if not path.is_dir():
        return path.suffix in ENDINGS
    return any(each.suffix in ENDINGS for each in path.rglob("*"))


def read(path):
    """The Trace of a folder of arrays, or of one file.

    Raises:
        InputError: a file is damaged, cut short, or no file of arrays; a name
            stands twice, or ``names.txt`` and the files differ; or there is no
            array at all.
    """
    folder = path if path.is_dir() else path.parent
    files = sorted(each for each in path.rglob("*")
                   if each.suffix in ENDINGS) if path.is_dir() else [path]
    arrays = {}
    homes: dict = {}
    for file in files:
        for name, array in _arrays(file, folder).items():
            name = visible(name)
            if name in arrays:
                raise InputError(
                    f"the array {name!r} is in {homes[name].name!r} and in "
                    f"{file.name!r}; leave one of them out.")
            arrays[name], homes[name] = native(array, name, file), file
    if not arrays:
        raise InputError(
            f"{str(path)!r} holds no array; write .npy, .npz or .safetensors "
            "files into it.")
    text = folder / "raw" / "text.txt"
    raw = {"text": read_text(text)} if path.is_dir() and (
        text.is_file()) else {}
    order = folder / NAMES
    if path.is_dir() and order.is_file():
        arrays = {name: arrays[name] for name in _listed(order, arrays)}
        made = trace_of(arrays, "dump", str(path))
        made.raw |= raw
        return made
    kept = all(file.suffix == ".npz" for file in files)
    names = arrays if kept else sorted(arrays, key=_natural)
    made = trace_of({name: arrays[name] for name in names}, "dump", str(path))
    made.raw |= raw
    made.ordered = kept or len(made.steps) < 3
    if not made.ordered:
        made.notes.append(
            f"{str(path)!r} does not say in which order its arrays were "
            f"computed; list them in {NAMES}.")
    return made


def _natural(name):
    """A key that puts layer 2 before layer 10."""
    return [int(part) if part.isdigit() else part
            for part in re.split(r"(\d+)", name)]


def _arrays(file, folder):
    """The arrays of one file, by name."""
    check_ordinary(file)
    name = file.relative_to(folder).as_posix().removesuffix(file.suffix)
    if file.suffix == ".npy":
        check_memory(file.stat().st_size, file)
        try:
            return {name: np.load(file, mmap_mode="r", allow_pickle=False)}
        except (ValueError, OSError, EOFError) as error:
            raise InputError(
                f"{str(file)!r} cannot be read as npy ({str(error)[:80]}); it "
                "is damaged or cut short, so write it again.") from None
    _, arrays, _ = checkpoints.read_file(file)
    if file.suffix == ".pt" and [*arrays] == [torch_archive.ALONE]:
        return {name: arrays[torch_archive.ALONE]}
    prefix = f"{file.stem}/" if file.stem in OWN else ""
    return {prefix + name.removeprefix(prefix): array
            for name, array in arrays.items()}


def native(array, name, file):
    """An array in this machine's byte order; raises InputError for bytes."""
    if array.dtype.kind == "V" and array.dtype.names is None and (
            array.dtype.name.startswith("void")):
        raise InputError(
            f"{name!r} in {str(file)!r} is of raw bytes, {array.dtype}, as "
            "numpy.save writes bfloat16; save it as float32, or in "
            "safetensors.")
    if array.dtype.kind not in "fiubcV" or array.dtype.names:
        raise InputError(
            f"{name!r} in {str(file)!r} is of {array.dtype}, which is no "
            "number; save numbers.")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _listed(path, arrays):
    """The names of ``names.txt``, checked against the arrays."""
    head, *lines = read_text(path).splitlines() or [""]
    word, _, version = head.strip().rpartition(" ")
    if word != HEAD:
        raise InputError(
            f"the first line of {str(path)!r} is {head[:40]!r}; write "
            f"'{HEAD} {VERSION}'.")
    if version != VERSION:
        raise InputError(
            f"{str(path)!r} is of version {version[:20]!r} and this program "
            f"reads {VERSION}; write that one.")
    names = [line.strip() for line in lines
             if line.strip() and not line.lstrip().startswith("#")]
    absent = [name for name in names if name not in arrays]
    surplus = [name for name in arrays if name not in names]
    if absent:
        near = difflib.get_close_matches(absent[0], surplus, 1, 0.6)
        raise InputError(
            f"{str(path)!r} lists {absent[0]!r}, and no file has it"
            + (f", though one has {near[0]!r}" if near else "")
            + "; write both alike.")
    if surplus:
        raise InputError(
            f"{str(path)!r} does not list {surplus[0]!r}, which a file has; "
            "add it where it was computed.")
    if twice := [name for name in dict.fromkeys(names)
                 if names.count(name) > 1]:
        raise InputError(
            f"{str(path)!r} lists {twice[0]!r} twice; name the second call "
            f"{twice[0]}#2.")
    return names


def place_of(name):
    """(part of the model, or path of a step; which side; what it is called).
    """
    parts = name.strip("/").split("/")
    if len(parts) > 1 and parts[0] in OWN:
        return parts[0], "", ".".join(parts[1:])
    side = SIDE.fullmatch(parts[-1])
    if side and len(parts) > 1:
        which, rest = side[1], side[2]
        return ".".join(parts[:-1]), f"{which}s", (
            f"{which}.{rest}" if rest and rest.isdigit() else rest or which)
    return ".".join(parts), "outputs", "output"


#: What is to be done where nothing is an output.
OUTPUTS = "name an array outputs/NAME, so that it is compared"


def trace_of(arrays, framework, origin, notes=(), outputs=OUTPUTS):
    """The Trace of arrays by their names, in the order of computation.

    Args:
        arrays: name -> array, the names as in this file's first lines.
        framework: who wrote it.
        origin: where it was read from.
        notes: sentences on what is not known of it.
        outputs: what to do where nothing is said of the model's outputs.
    """
    own: dict = {part: {} for part in OWN}
    steps: dict = {}
    for name, array in arrays.items():
        place, side, called = place_of(name)
        if not side:
            own[place][called] = array
            continue
        step = steps.setdefault(place, Step(
            place, place.partition("#")[0], "", MODULE, 0, 0, {}, {}))
        getattr(step, side)[called] = array
    for i, step in enumerate(steps.values()):
        step.began, step.ended = 2 * i + 1, 2 * i + 2
    for name in own["parameters"]:  # of the step that it is called after
        if owner := steps.get(name.rpartition(".")[0]):
            owner.parameters.append(name)
    whole = Step(WHOLE, WHOLE, "", MODULE, 0, 2 * len(steps) + 1,
                 own["inputs"], own["outputs"])
    every = [*steps.values(), whole]
    dtype = next((array.dtype.name for arrays in (
        whole.outputs, *(step.outputs for step in reversed(every[:-1])),
        own["parameters"], own["inputs"]) for array in arrays.values()
        if is_float(array)),
        "")
    missing = [] if whole.outputs else [
        f"{origin!r} does not say what the model gave: {outputs}."]
    return Trace(framework, {}, {}, dtype, every, own["parameters"], [],
                 notes=[*notes, *missing], origin=origin,
                 gives=bool(whole.outputs), raw={
                     name: int(array) if name == "rate" else array
                     for name, array in own["raw"].items()})
