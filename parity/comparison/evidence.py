"""What a comparison was made of, to be attached to a pull request: plain data.
"""

import os
import platform

from parity.comparison.result import PARAMETER
from parity.numerics.comparator import MATCH
from parity.tracing.trace import is_float

#: How many rows are listed that come nearest to their limits.
NEAREST = 5

#: How many numbers of an input are shown.
SHOWN = 12


def evidence(comparison, a, b, command=""):
    """All of a comparison, and what it was made of.

    Args:
        comparison: a Comparison, explained or not.
        a, b: its two Traces.
        command: what repeats it.

    Returns:
        ``comparison.as_json()`` with "command", "environment", "sides" (of
        each its device, inputs, parameters and the dtype of every tensor) and
        "headroom", the rows that match and come nearest to their limits.
    """
    return comparison.as_json() | {
        "command": command,
        "environment": {"python": platform.python_version(),
                        "platform": platform.platform(),
                        "cores": os.cpu_count()},
        "sides": {"a": _side(a), "b": _side(b)},
        "headroom": _headroom(comparison.rows)}


def _side(trace):
    """One model's tensors."""
    def kind(array):
        return {"dtype": array.dtype.name, "shape": [*array.shape]}
    arrays = trace.parameters
    return {
        "device": trace.device,
        "inputs": {name: kind(array) | {
            "sha256": trace.hash_of(array),
            "begins": array.reshape(-1)[:SHOWN].tolist()
            if array.dtype.kind in "iub" else []}
            for name, array in trace.inputs.items()},
        "numbers": sum(array.size for array in arrays.values()
                       if is_float(array)),
        "trainable": sum(arrays[path].size for path in trace.trainable
                         if path in arrays),
        "parameters": {path: kind(array) for path, array in arrays.items()},
        "steps": {step.path: {name: kind(array) for name, array
                              in step.outputs.items()}
                  for step in trace.steps}}


def _headroom(rows):
    """The rows that match and come nearest to their limits, the nearest first.

    Of each by how much its limit is larger than its error.
    """
    near = [row for row in rows if row.verdict == MATCH and row.error
            and row.limit and row.part != PARAMETER]
    near.sort(key=lambda row: -row.error / row.limit)
    return [{"part": row.part, "a": row.a, "b": row.b, "error": row.error,
             "limit": row.limit, "times": row.limit / row.error}
            for row in near[:NEAREST]]
