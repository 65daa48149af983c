"""Embeddings whose gradient has only the rows that were looked up."""

import contextlib
import contextvars

from torch.nn import functional as F

from impl_torch import linear

#: Whether a table's gradient may be sparse.
SPARSE = contextvars.ContextVar("sparse", default=False)


@contextlib.contextmanager
def sparse():
    """A table's gradient has only the rows that were looked up."""
    token = SPARSE.set(True)
    try:
        yield
    finally:
        SPARSE.reset(token)


class Table(linear.Table):
    """See impl_torch.linear; its gradient may be sparse."""

    def forward(self, tokens):
        """Rows for tokens, int [B T]."""
        return F.embedding(tokens, self.weight, self.padding_idx,
                           sparse=SPARSE.get())
