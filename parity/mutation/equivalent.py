"""Edits that change nothing, each with the reason and what proves it.

An entry stands for one edit of one line, wherever in the file that line is. A
proof is a function that raises AssertionError if the reason does not hold;
``parity_tests/harness/mutation`` runs it.
"""

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Equivalent:
    """One or more edits of a line that compute the same.

    Attributes:
        ports: in which.
        file: in which file.
        text: the line, without its indentation.
        edits: each as "before → after".
        why: the reason, in a sentence.
        proof: what raises AssertionError if it does not hold.
    """

    ports: tuple
    file: str
    text: str
    edits: tuple
    why: str
    proof: Callable


EQUIVALENT: tuple = ()


def entry_of(port, mutant):
    """The Equivalent of a mutant, or None."""
    return next((entry for entry in EQUIVALENT if port in entry.ports
                 and entry.file == mutant.file and entry.text == mutant.text
                 and mutant.edit in entry.edits), None)
