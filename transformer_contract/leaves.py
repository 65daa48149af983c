"""The record of a weight: how every framework's is read and replaced."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Weight:
    """One weight of a model.

    Attributes:
        name: its canonical name; see schema.py.
        get: what it is now, as the framework's own array.
        set: puts another in its place.
        to_ours: a NumPy array as the framework lays it out, in our layout.
        to_theirs: the way back.
    """

    name: str
    get: Callable[[], Any]
    set: Callable[[Any], None]
    to_ours: Callable[[np.ndarray], np.ndarray]
    to_theirs: Callable[[np.ndarray], np.ndarray]
