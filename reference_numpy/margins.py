"""How near a search came to another answer.

Two sound searches compute scores that part in their last digits. Where two
hypotheses score alike to so little, either may come first, and from there on
the answers are others. So the reference can tell, for every row, how wide the
narrowest of its decisions was; a row that was decided by rounding says nothing
about a port.
"""

import contextlib
import contextvars

import numpy as np

_watched = contextvars.ContextVar("watched", default=None)


class Margins:
    """The narrowest decision of every row.

    Attributes:
        narrowest: float64 [R], ∞ at first.
        live: bool [R], the rows that still decide.
    """

    def __init__(self, rows):
        self.narrowest = np.full(rows, np.inf)
        self.live = np.full(rows, True)


@contextlib.contextmanager
def watching(rows):
    """The Margins of the search in the block."""
    margins = Margins(rows)
    token = _watched.set(margins)
    try:
        yield margins
    finally:
        _watched.reset(token)


def only(live):
    """From here on, these rows decide: bool [R]."""
    if margins := _watched.get():
        margins.live = live


def note(gaps):
    """A decision of each row, by gaps [R n]; what is not finite is none."""
    if margins := _watched.get():
        gaps = np.where(np.isfinite(gaps), gaps, np.inf)
        np.minimum(margins.narrowest, gaps.min(axis=-1, initial=np.inf),
                   out=margins.narrowest, where=margins.live)


def ranked(scores, count):
    """That the ``count`` highest of scores [R n] are those, in that order."""
    if _watched.get():
        highest = -np.sort(-scores, axis=-1)[:, :count + 1]
        with np.errstate(invalid="ignore"):  # of -∞ and -∞
            note(highest[:, :-1] - highest[:, 1:])


def drawn(draw, scores, p, rank, settings):
    """That a draw [R] in [0, 1) fell on a rank [R], by p [R V] of each rank.

    It could have fallen into what stands beside it, or its token could have
    another rank; top_k and top_p could have kept another token.
    """
    if not _watched.get():
        return
    reached = np.cumsum(p, axis=-1)
    kept = reached - p < settings.top_p
    if settings.top_k:
        kept[:, settings.top_k:] = False
        ranked(scores, settings.top_k)
    within = np.where(kept, reached, 0)
    total = within.max(axis=-1, keepdims=True)
    last = np.sum(kept, axis=-1, keepdims=True) - 1
    inner = np.arange(p.shape[-1]) < last
    note(np.where(inner, np.abs(reached - draw[:, None] * total), np.inf))
    if settings.top_p < 1:
        note(np.abs(reached - p - settings.top_p))
    gaps = scores[:, :-1] - scores[:, 1:]
    beside = np.arange(gaps.shape[-1]) - rank[:, None]
    note(np.where((beside == 0) | (beside == -1), gaps, np.inf))
