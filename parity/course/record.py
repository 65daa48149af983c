"""What an answer returned, as JSON: reading it executes nothing.

The answer's process writes a record, and the judge reads it in another, so
that nothing that an answer does can change what is right or the verdict.
"""

import base64
import contextlib
import dataclasses
import json

import numpy as np

#: Of more bytes, shape and dtype are told and no number; of longer lists and
#: texts, and of deeper ones, only what they are.
LARGEST, LONGEST, DEEPEST = 2**24, 10_000, 3

#: The kinds of dtype whose numbers are handed on.
NUMBERS = "biufc"


@dataclasses.dataclass(frozen=True)
class Other:
    """A value that no exercise asks for: its type's name and its words."""

    kind: str
    words: str

    def __repr__(self):
        return self.words


def words_of(value, write=repr):
    """``repr`` or ``str`` of anything, which may raise."""
    with contextlib.suppress(BaseException):
        return str(write(value))[:LONGEST]
    return f"a {type(value).__name__} that cannot be written"


def encoded(value, depth=0):
    """A value in what JSON has; of what it cannot hold, an Other."""
    kind = type(value)
    if value is None or kind in (bool, float):
        return value
    if kind is int and abs(value) < 2**63:
        return value
    if kind in (str, np.str_) and len(value) <= LONGEST:
        return str(value)
    if isinstance(value, np.generic) or kind is np.ndarray:
        if value.dtype.kind in NUMBERS:
            return _encoded_array(value, kind is not np.ndarray)
        return _other(f"{kind.__name__} of {value.dtype.name}", value)
    if kind in (list, tuple, dict):
        if len(value) > LONGEST or depth == DEEPEST:
            return {"other": kind.__name__,
                    "words": f"a {kind.__name__} of {len(value)}"}
        items = value.items() if kind is dict else value
        return {kind.__name__: [encoded(item, depth + 1) for item in items]}
    return _other(kind.__name__, value)


def _other(kind, value):
    return {"other": kind, "words": words_of(value)}


def _encoded_array(array, scalar):
    told = {"dtype": array.dtype.str, "shape": list(array.shape),
            "scalar": scalar}
    if array.nbytes <= LARGEST:
        told["numbers"] = base64.b64encode(array.tobytes()).decode()
    return told


def decoded(told):
    """The value that was encoded.

    Raises:
        ValueError, KeyError, TypeError: nobody encoded this.
    """
    if not isinstance(told, dict):
        return told
    if "other" in told:
        return Other(str(told["other"]), str(told["words"]))
    if "dtype" in told:
        return _decoded_array(told)
    (kind, items), = told.items()
    return {"list": list, "tuple": tuple, "dict": dict}[kind](
        map(decoded, items))


def _decoded_array(told):
    dtype = np.dtype(told["dtype"])
    if dtype.kind not in NUMBERS:
        raise ValueError(dtype)
    if "numbers" not in told:
        return np.broadcast_to(np.zeros((), dtype), told["shape"])
    array = np.frombuffer(base64.b64decode(told["numbers"]), dtype)
    array = array.reshape(told["shape"])
    return array[()] if told["scalar"] else array


def read(text):
    """A record from its text: {"answers": [value, …], …}.

    Raises:
        ValueError: it is none.
    """
    try:
        told = json.loads(text)
        return told | {"answers": [*map(decoded, told["answers"])]}
    except (ValueError, KeyError, TypeError, AttributeError,
            RecursionError, MemoryError) as error:
        raise ValueError("no record of an answer") from error
