"""What other searches do: banned and forced tokens, other beams, prompts."""

import math

import torch

from impl_torch import cache
from impl_torch.projection import log_softmax
from impl_torch.sample import Sample
from impl_torch.search import Beam, Greedy


class Restricted:
    """A search in which not every token may follow, nor one alone may end."""

    def new_caches(self, source):
        """Caches with room for a prompt, which the target continues.

        With a prompt that is padded, tokens that are counted without padding
        have other positions in each row, and nothing can be kept.
        """
        if self.model.config.stacks != "decoder":
            return super().new_caches(source)
        if self.model.config.position_padding:
            return None
        return cache.new_caches(
            self.model, len(self.memory),
            source.shape[1] - 1 + self.settings.max_tokens)

    def next(self, tokens, written):
        """log p of what may follow the first ``written`` of tokens [R N]."""
        return self.allowed(super().next(tokens, written), tokens, written)

    def answer(self, decoded):
        """log p of the token after decoded [R 1 D]: float64 [R V] (R31)."""
        if not self.settings.allow_padding:
            return super().answer(decoded)
        output = self.model.project(decoded)
        return log_softmax(output[:, 0]).to(torch.float64)

    def allowed(self, log_probs, tokens, written):
        """log p [R V] of what may follow ``written`` tokens, else -∞ (R54)."""
        forced = self.settings.forced(written)
        token = torch.arange(log_probs.shape[-1])
        if forced is not None:
            return torch.where(
                token == forced, torch.zeros_like(log_probs), -math.inf)
        banned = torch.tensor(self.settings.banned(written), dtype=torch.int64)
        banned = torch.isin(token, banned) | self.repeats(tokens, written)
        return torch.where(banned, -math.inf, log_probs)

    def repeats(self, tokens, written):
        """Whether a token completes n that its row has: [R V] (R56)."""
        token = torch.arange(self.model.config.target_vocab)
        n = self.settings.no_repeat_ngram
        found = torch.zeros((len(tokens), len(token)), dtype=torch.bool)
        for end in range(n - 1, written) if n else ():
            same = torch.all(
                tokens[:, end - n + 1:end]
                == tokens[:, written - n + 1:written], dim=-1)
            found = found | (
                same[:, None] & (token == tokens[:, end, None]))
        return found

    def ends(self, token):
        """Whether each token is one of the eos ids: bool [*], of int [*]."""
        return torch.isin(token, torch.tensor(self.settings.eos_ids))


class DialectGreedy(Restricted, Greedy):
    """The most likely token that may follow, one after the other."""


class DialectSample(Restricted, Sample):
    """Tokens that may follow, drawn by their probability."""


class DialectBeam(Restricted, Beam):
    """Beam search by other rules: who may finish, when it is done (R56)."""

    def select(self, candidates, finished):
        """The best of candidates; -∞ what has no place in a narrower beam."""
        scores, which = super().select(candidates, finished)
        if self.settings.finishing == "narrowing":
            rank = torch.arange(scores.shape[1])
            scores = torch.where(
                rank < self.left(finished), scores, -math.inf)
        return scores, which

    def left(self, finished):
        """How many of W hypotheses have not finished: int [B 1]."""
        return torch.sum(finished == -math.inf, dim=1, keepdim=True)

    def closed(self, token, written):
        """Whether hypotheses end; at the greatest length if they compete."""
        if self.settings.unfinished == "compete":
            return super().closed(token, written)
        return self.ends(token)

    def best(self, scores, tokens, more_scores, more_tokens):
        """The W best of two sets, the second being those that may finish."""
        rank = torch.arange(more_scores.shape[1])
        may = rank < self.settings.finishers
        if self.settings.finishing == "first":
            ends = may & (more_scores > -math.inf)
            may = ends & (torch.cumsum(ends, 1) <= self.left(scores))
        return super().best(
            scores, tokens, torch.where(may, more_scores, -math.inf),
            more_tokens)

    def outcome(self, tokens, alive, finished_tokens, finished):
        """What has finished; where nothing has, what is alive."""
        none = finished[:, :1] == -math.inf
        # [1] scores [B W]: the finished ones'; where there are none, log p
        scores = torch.where(none, alive, finished)
        tokens = torch.where(none[:, :, None], tokens, finished_tokens)
        return tokens, scores

    def is_done(self, finished, alive, bound):
        """Whether the length rule ends a row's search: bool [B]."""
        done = super().is_done(finished, alive, bound)
        if self.settings.length_rule == "hf_true":
            return finished[:, -1] > -math.inf
        return done
