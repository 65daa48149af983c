"""TensorRT's Polygraphy: saved inputs and outputs in JSON, as a Trace.

``polygraphy run … --save-outputs FILE`` writes runners, each with the outputs
of its iterations; with ``--trt-outputs mark all`` these are every tensor. An
array is an npy file in base64, under "array". ``--save-inputs`` writes a list
of {name: array}; it is read where it lies beside, as ``inputs.json``.
"""

import base64
import binascii
import io
import json

import numpy as np

from parity_io.errors import InputError
from parity_io.files import read_text
from parity.dumps.named import native, trace_of

INPUTS = "inputs.json"


def recognised(head):
    """Whether a text begins as such a file."""
    return head.lstrip()[:1] in "[{" and (
        "polygraphy_class" in head or "__polygraphy_encoded_" in head)


def read(path):
    """The Trace of the first runner's first iteration.

    The file does not say which tensors are the model's outputs, where all are
    marked: each is a step, and the last one is the output as well.
    """
    runs = _decoded(path)
    runs = runs.get("lst", runs) if isinstance(runs, dict) else runs
    notes = []
    try:
        (runner, iterations), *others = runs
        outputs = iterations[0]["outputs"]
        if others or len(iterations) > 1:
            notes.append(f"of {str(path)!r} the first runner, {runner}, and "
                         "its first iteration are read.")
        arrays = {name.strip("/"): _array(value, name, path)
                  for name, value in outputs.items()}
    except (TypeError, ValueError, KeyError, IndexError, AttributeError):
        raise InputError(
            f"{str(path)!r} holds no outputs of a runner; write it with "
            "polygraphy run --save-outputs.") from None
    given = {}
    beside = path.with_name(INPUTS)
    if beside.is_file() and beside != path:
        feeds = _decoded(beside)
        if isinstance(feeds, list) and feeds and isinstance(feeds[0], dict):
            given = {f"inputs/{name}": _array(value, name, beside)
                     for name, value in feeds[0].items()}
    if arrays:
        last = [*arrays][-1]
        notes.append(f"{last}, the last tensor of {str(path)!r}, is taken for "
                     "the model's output.")
        arrays |= {f"outputs/{last.replace('/', '.')}": arrays[last]}
    return trace_of(given | arrays, "tensorrt", str(path), notes)


def _decoded(path):
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{str(path)!r} is not JSON ({str(error)[:80]}); it is cut short, "
            "so write it again.") from None


def _array(value, name, path):
    """The array of an entry, whatever it is wrapped in."""
    while isinstance(value, dict) and "values" in value:
        value = value["values"]
    try:
        data = base64.b64decode(value["array"], validate=True)
        return native(np.load(io.BytesIO(data), allow_pickle=False), name,
                      path)
    except (KeyError, TypeError, ValueError, EOFError, binascii.Error):
        raise InputError(
            f"{name!r} in {str(path)!r} is no array that can be read; write "
            "it again.") from None
