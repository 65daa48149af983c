"""Searches with a cache that is moved little.

The searches are those of the readable form. fast/cache.py computes what comes
next, and the highest scores are found without sorting all. Without a cache the
model reads what is written, not the places behind it.
"""

import math

import torch

from impl_torch import search
from impl_torch.dialects.search import (
    DialectBeam, DialectGreedy, DialectSample, Restricted)
from impl_torch.fast.cache import (
    decode_one, new_cache, new_writers, reorder)
from impl_torch.fast.layout import laid_out
from impl_torch.projection import log_softmax


class Search(Restricted, search.Search):
    """What all searches share; see impl_torch.search.

    Attributes:
        kept: the cache; None without one.
        writers: which row wrote what stands in each place of a row, [R N].
    """

    def __init__(self, model, source, settings, rows):
        super().__init__(model, source, settings.replace(cached=False), rows)
        self.kept, self.written = None, 0
        if settings.cached:  # a source's hypotheses stand side by side
            self.model = laid_out(
                model, len(self.memory), settings.max_tokens)
            mask = self.source_mask[::settings.width]
            self.source_mask = None if mask.all() else mask
            self.kept = new_cache(model, self.memory[::settings.width],
                                  len(self.memory), self.length)
            self.writers = new_writers(len(self.memory), self.length)

    def next(self, tokens, written):
        """log p of the token after the first ``written`` of tokens [R N]."""
        self.written = written
        if self.kept is None:
            return super().next(tokens[:, :1 + written], written)
        decoded = decode_one(
            self.model, tokens[:, written - 1], written - 1, self.kept,
            self.source_mask)
        return self.allowed(
            self.answer(decoded[:, None]), tokens, written)

    def answer(self, decoded):
        """log p of the token after decoded [R 1 D]: float64 [R V] (R31)."""
        log_probs = log_softmax(
            self.model.project(decoded)[:, 0]).to(torch.float64)
        if not self.settings.allow_padding:
            log_probs[:, self.pad_id:self.pad_id + 1] = -math.inf
        return log_probs

    def allowed(self, log_probs, tokens, written):
        """log p [R V] of what may follow ``written`` tokens, else -∞ (R54)."""
        settings = self.settings
        if (settings.forced(written) is None and not settings.no_repeat_ngram
                and not settings.banned(written)):
            return log_probs
        return super().allowed(log_probs, tokens, written)

    def reorder(self, parents):
        """Let each row continue another row of its source: int [R]."""
        if self.kept is not None:
            reorder(self.kept, self.writers, parents, self.written)

    @staticmethod
    def top(scores, count):
        """The ``count`` highest of scores [B n], and their places: [B count].

        Only those that are no lower than the last of them are sorted.
        """
        least = torch.topk(scores, count)[0][:, -1]
        places = torch.stack([
            in_order(row, torch.nonzero(~(row < low))[:, 0])[:count]
            for row, low in zip(scores, least)])
        return torch.gather(scores, -1, places), places


def in_order(scores, places):
    """Places of scores, the highest first; of equals the first."""
    return places[torch.sort(
        scores[places], descending=True, stable=True)[1]]


class Greedy(Search, DialectGreedy):
    """The most likely token, one after the other."""


class Sample(Search, DialectSample):
    """Tokens drawn by their probability, one after the other."""


class Beam(Search, DialectBeam):
    """Beam search: the W best hypotheses at once."""
