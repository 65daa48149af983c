"""What goes wrong in a search, which its tokens themselves tell."""

from parity.causes.cause import Cause
from parity.check import generation

NOT_PUT = "test_generate.py rewrites a line of each search instead"
NOT_EXPLAINED = "a trace holds one forward pass, and no search"

CAUSES = tuple(
    Cause(name, "generation", sentence, not_put=NOT_PUT,
          not_explained=NOT_EXPLAINED)
    for name, (sentence, _) in generation.CAUSES.items())
