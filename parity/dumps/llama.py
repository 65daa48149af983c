"""What llama.cpp's ``llama-eval-callback`` prints, as a Trace.

Each tensor has a line with its name, type, operation and shape, innermost axis
first; then its corners to four decimals, and the sum of all its numbers:

    common_debug_cb_eval:  attn_norm-0 = (f32)  MUL(…) = {64, 6, 1, 1}

Log lines may stand between. ``number of input tokens`` is followed by ids.
"""

import itertools
import math
import re

import numpy as np

from parity_io.errors import InputError
from parity_io.files import read_text
from parity.dumps.named import trace_of
from parity.dumps.printed import END, corners, lean, printed_as
from parity.tracing.trace import WHOLE

TENSOR = re.compile(r"(?:ggml_debug|common_debug_cb_eval): +(.+?) = "
                    r"\((\w+)\) +(\S+)\((.*)\) = \{([\d, ]+)\}")
ROW = re.compile(r"\[(.*[\d.naif].*)\]")
NUMBER = re.compile(r"-?(?:\d+\.\d+|inf|nan)")
SUM = re.compile(r"^\s*sum = (\S+)")
IDS = re.compile(r"number of input tokens = (\d+)")
WHOLE_NUMBER = re.compile(r"(?:^|\s)(\d+)$")

#: Operations that move numbers only.
MOVES = "RESHAPE", "PERMUTE", "TRANSPOSE"

#: What the last tensor of a pass is called, and its name among the outputs.
LAST, LOGITS = "result_output", "logits"

#: Four decimals are printed.
DECIMALS = 5e-5


def recognised(text):
    """Whether a text is such an output."""
    return TENSOR.search(text) is not None


def read(path):
    """The Trace of one pass.

    Raises:
        InputError: a tensor has another number of values than its shape says.
    """
    lines = read_text(path).splitlines()
    heads = [(i, found) for i, line in enumerate(lines)
             if (found := TENSOR.search(line))]
    notes, first = [], heads[0][1].groups()
    again = next((n for n, (_, found) in enumerate(heads)
                  if n and found.groups()[:4] == first[:4]), len(heads))
    if again < len(heads):
        notes.append(f"{str(path)!r} has several passes, of which the first "
                     "is read.")
    ends = [i for i, _ in heads[1:]] + [len(lines)]
    totals, shapes, unread = {}, {}, 0
    arrays: dict = {}
    for (start, found), end in itertools.islice(zip(heads, ends), again):
        name, kind, operation, _, sizes = found.groups()
        shape = tuple(int(each) for each in reversed(sizes.split(",")))
        known, total = _values(lines[start + 1:end], name, kind, shape, path)
        if known is None:
            unread += 1
        elif operation not in MOVES:
            name = _second(name.strip(), arrays)
            arrays[name], totals[name], shapes[name] = known, total, shape
    if unread:
        notes.append(f"{unread} quantised tensors of {str(path)!r} are named "
                     "and not printed.")
    notes.append(
        f"{str(path)!r} has of each array the first and last {END} places "
        "along each axis, to 4 decimals, and the sum: what lies between is "
        "seen in that alone.")
    if ids := _ids(lines):
        arrays = {"inputs/input_ids": np.array([ids]), **arrays}
    if LAST in arrays:
        arrays[f"outputs/{LOGITS}"] = arrays[LAST]
    made = trace_of(arrays, "llama.cpp", str(path), notes,
                    f"let it print {LAST}")
    made.resolution = (DECIMALS, 0.0)
    for step in made.steps:
        name = LAST if step.path == WHOLE else step.path
        for each, array in [*step.outputs.items()]:
            if array.size < (size := math.prod(shapes[name])):
                made.printed[step.path, "outputs", each] = lean(shapes[name])
                step.outputs |= printed_as(each, array, totals[name], size)
    return made


def _second(name, arrays):
    """A name, with #2 where a tensor is computed into another of its name."""
    return name if name not in arrays else next(
        other for n in itertools.count(2)
        if (other := f"{name}#{n}") not in arrays)


def _values(lines, name, kind, shape, path):
    """The corners of a tensor, and the sum; None where it is not printed."""
    total = None
    numbers: list = []
    for line in lines:
        if found := SUM.match(line):
            total = float(found[1])
        elif found := ROW.search(line):
            numbers += map(float, NUMBER.findall(found[1]))
    if not numbers and total is None:
        return None, None
    cut = tuple(min(length, 2 * END) for length in shape[1:])
    printed = next((each for each in ((shape[0], *cut), shape)
                    if math.prod(each) == len(numbers)), None)
    if printed is None or total is None:
        raise InputError(
            f"{str(path)!r} has {len(numbers)} numbers of {name.strip()!r}, "
            f"whose shape is {list(shape)}; it is cut short, or of another "
            "version of llama.cpp, so run llama-eval-callback again.")
    array = np.array(numbers, np.int64 if kind.startswith("i") else
                     np.float32).reshape(printed)
    return corners(array) if array.size < math.prod(
        shape) else array.reshape(lean(shape)), total


def _ids(lines):
    """The token ids that were printed; none where they were not."""
    for i, line in enumerate(lines):
        if found := IDS.search(line):
            ids = [WHOLE_NUMBER.search(each.rstrip())
                   for each in lines[i + 1:i + 1 + int(found[1])]]
            whole = [int(each[1]) for each in ids if each]
            return whole if len(whole) == len(ids) else []
    return []
