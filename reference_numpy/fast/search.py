"""Searches with a cache that is moved little.

The searches are those of the readable form. fast/cache.py computes what comes
next, and the highest scores are found without sorting all. Without a cache the
model reads what is written, not the places behind it.
"""

import numpy as np

from reference_numpy import sample, search
from reference_numpy.dialects import search as dialect
from reference_numpy.fast.cache import (
    decode_one, new_cache, new_writers, reorder, same_places)
from reference_numpy.fast.layout import laid_out


class Search(search.Search):
    """What all searches share; see reference_numpy.search.

    Attributes:
        kept: the cache; None without one.
        writers: which row wrote what stands in each place of a row, [R N].
    """

    def __init__(self, model, source, settings, rows):
        count = len(source) * settings.width if settings.cached else 1
        model = laid_out(model, count, settings.max_tokens)
        super().__init__(model, source, settings.replace(cached=False), rows)
        self.kept, self.written = None, 0
        if settings.cached:  # a source's hypotheses stand side by side
            self.kept = new_cache(model, self.memory[::settings.width],
                                  len(self.memory), self.length)
            self.writers = new_writers(len(self.memory), self.length)

    def next(self, tokens, written):
        """log p of the token after the first ``written`` of tokens [R N]."""
        self.written = written
        if self.kept is None:
            return super().next(tokens[:, :1 + written], written)
        alike = same_places(
            self.writers, len(tokens) // self.settings.width, written - 1)
        return self.answer(decode_one(
            self.model, tokens[:, written - 1], written - 1, self.kept,
            alike, self.source_mask))

    def reorder(self, parents):
        """Let each row continue another row of its source: int [R]."""
        if self.kept is not None:
            reorder(self.kept, self.writers, parents, self.written)

    @staticmethod
    def top(scores, count):
        """The ``count`` highest of scores [B n], and their places: [B count].

        Only those that are no lower than the last of them are sorted.
        """
        least = -np.partition(-scores, count - 1, axis=-1)[:, count - 1]
        places = np.stack([
            in_order(row, np.flatnonzero(~(row < low)))[:count]
            for row, low in zip(scores, least)])
        return np.take_along_axis(scores, places, axis=-1), places


def in_order(scores, places):
    """Places of scores, the highest first; of equals the first."""
    return places[np.argsort(-scores[places], kind="stable")]


class Greedy(search.Greedy, Search):
    """The most likely token, one after the other."""


class Sample(sample.Sample, Search):
    """Tokens drawn by their probability, one after the other."""


class Beam(search.Beam, Search):
    """Beam search: the W best hypotheses at once."""


class DialectGreedy(dialect.DialectGreedy, Search):
    """See reference_numpy.dialects.search."""


class DialectSample(dialect.DialectSample, Search):
    """See reference_numpy.dialects.search."""


class DialectBeam(dialect.DialectBeam, Search):
    """See reference_numpy.dialects.search."""


#: As those of parts.py.
SEARCHES = {
    ("greedy", "usual"): Greedy, ("greedy", "dialect"): DialectGreedy,
    ("sample", "usual"): Sample, ("sample", "dialect"): DialectSample,
    ("beam", "usual"): Beam, ("beam", "dialect"): DialectBeam}
