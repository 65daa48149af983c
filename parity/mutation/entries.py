"""What an entry is that says why edits of a line change nothing."""

import dataclasses
from collections.abc import Callable

#: A reason that holds on machines without an accelerator alone.
NO_DEVICE = "Here is no device but the processor."

#: A reason that holds where Keras computes as it does by default.
NO_BACKEND = "Keras runs on TensorFlow."

ALL = ("torch", "keras", "jax")
TORCH, KERAS, JAX = (("torch",), ("keras",), ("jax",))

#: Whatever is done to a line.
ANY = "any edit"


@dataclasses.dataclass(frozen=True)
class Equivalent:
    """One or more edits of a line that compute the same.

    Attributes:
        ports: in which.
        file: in which file.
        text: the line, without its indentation.
        edits: ANY, or each as "before → after"; where a line has several of
            these, with " at " and the column of the one; where a file has
            several such lines, with ":" and how many stand before it.
        why: the reason, in a sentence.
        proof: what raises AssertionError if it does not hold.
    """

    ports: tuple
    file: str
    text: str
    edits: tuple
    why: str
    proof: Callable


def entries(ports, file, why, proof, *lines):
    """Equivalents of one reason: each line is (text, edit, edit, …)."""
    return tuple(Equivalent(ports, file, text, edits, why, proof)
                 for text, *edits in lines)
