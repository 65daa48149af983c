"""vLLM's intermediate tensors, as a Trace.

A run is a folder with ``step_0`` in it. There a module has a folder of its
name, and in that ``inputs_0_cuda_0.pt``, ``outputs_cuda_0.pt`` or, of several,
``outputs_1_cuda_0.pt``; ``module_calls.txt`` has the modules as they were
called. A second call of a module ends in ``_1``.
"""

import re

from parity_io.checkpoints import torch_archive
from parity_io.errors import InputError
from parity_io.files import read_text
from parity.dumps.named import native, trace_of

FILE = re.compile(r"(input|output)s(?:_(.+?))?_(cpu|[a-z]+_\d+)\.pt")
CALLS = "module_calls.txt"


def step_of(path):
    """The folder of a run's first step; None where it is no such run."""
    if not path.is_dir():
        return None
    steps = [path] if re.fullmatch(r"step_\d+", path.name) else sorted(
        path.glob("step_*"), key=lambda each: int(
            re.sub(r"\D", "", each.name) or 0))
    return next((step for step in steps if any(
        FILE.fullmatch(file.name) for file in step.glob("*/*.pt"))), None)


def read(path):
    """The Trace of one step of a run.

    Raises:
        InputError: it is of several devices, or a file is damaged.
    """
    files = {folder.name: sorted(folder.glob("*.pt"))
             for folder in sorted(path.iterdir()) if folder.is_dir()}
    devices = {found[3] for each in files.values() for file in each
               if (found := FILE.fullmatch(file.name))}
    if len(devices) > 1:
        raise InputError(
            f"{str(path)!r} is of several devices, {', '.join(sorted(devices))}"
            "; run vLLM on one, or keep the files of one.")
    order = files
    if (path / CALLS).is_file():
        called = read_text(path / CALLS).split()
        order = {name: 0 for name in called if name in files} | files
    arrays = {}
    for name in _outer_last(order):
        base, _, count = name.rpartition("_")
        step = (f"{base}#{int(count) + 1}" if count.isdigit()
                and base in files else name)
        for file in files[name]:
            if found := FILE.fullmatch(file.name):
                side, rest, _ = found.groups()
                arrays[f"{step}/{side}" + (f".{rest}" if rest else "")] = (
                    _tensor(file))
    return trace_of(arrays, "vllm", str(path), outputs=(
        "copy its last module's outputs to a dump of names, as outputs/NAME"))


def _tensor(file):
    """The one tensor of a file."""
    arrays, _ = torch_archive.read(file)
    return native(next(iter(arrays.values())), file.name, file)


def _outer_last(names):
    """Modules in the order in which they end: what is inside comes first."""
    ended = []
    open_: list = []
    for name in names:
        while open_ and not name.startswith(f"{open_[-1]}."):
            ended.append(open_.pop())
        open_.append(name)
    return ended + open_[::-1]
