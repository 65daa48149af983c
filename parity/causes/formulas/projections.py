"""An attention's parameters by what they project to."""

import re

import numpy as np

from parity.matching.words import words_of
from parity.tracing.trace import is_float

NAMED = ("query", "key", "value", "output")

#: How a parameter is called that holds query, key and value.
PACKED = re.compile("in_proj|qkv|c_attn|query_key_value")

#: How modules call the number of their heads.
HEADS = ("num_heads", "nhead", "n_heads", "n_head", "heads", "h",
         "num_attention_heads", "_num_heads")


def projections(side):
    """An attention's parameters by role, and the number of its heads.

    (None, None) where they are not those of an attention.
    """
    none = None, None
    roles: dict = {
        f"{name}{leaf}": None for name in NAMED for leaf in ("", " bias")}
    heads, turn = side.setting(*HEADS), side.framework == "torch"
    arrays = {path: array for path, array in side.parameters.items()
              if is_float(array)}
    for path, array in arrays.items():
        leaf = " bias" if words_of(path)[0][-1:] == ["bias"] else ""
        if array.ndim not in ((0, 1, 2) if leaf else (2, 3)):
            return none
        if PACKED.search(path):
            parts = unpacked(array.T if turn and not leaf and (
                "c_attn" not in path) else array, leaf)
            if parts is None:
                return none
            roles |= parts
            continue
        name = role_of(path, len(arrays))
        if roles[name + leaf] is not None:
            return none
        if array.ndim == 3:
            heads = array.shape[0 if name == "output" else 1]
        roles[name + leaf] = flat(array, name, leaf, turn)
    return (roles, heads) if belong_together(roles, heads) else none


def unpacked(array, leaf):
    """{role: third} of an array that holds query, key and value; or None."""
    if array.shape[-1] % 3:
        return None
    return {name + leaf: part
            for name, part in zip(NAMED, np.split(array, 3, -1))}


def role_of(path, count):
    """Which projection one of so many parameters is of, by its path."""
    words, numbers = words_of(path)
    name = next((word for word in words if word in NAMED[:3]), None)
    if name is None and count == 8 and len(numbers) == 1 and (
            numbers[0] < 4) and "output" not in words:
        return NAMED[numbers[0]]  # a list of four layers
    return name or "output"


def flat(array, name, leaf, turn):
    """A kernel as [in, out], whether it has heads or not, a bias as [out]."""
    if array.ndim == 3:
        return (array.reshape(-1, array.shape[-1]) if name == "output"
                else array.reshape(len(array), -1))
    if leaf:
        return array.reshape(-1)
    return array.T if turn else array


def belong_together(roles, heads):
    """Whether projections are there, and of widths that belong together."""
    query, key, value = (roles[name] for name in NAMED[:3])
    return not (query is None or key is None or value is None) and (
        not query.shape[1] % key.shape[1]
        and value.shape[1] == key.shape[1]
        and isinstance(heads, (int, type(None))))
