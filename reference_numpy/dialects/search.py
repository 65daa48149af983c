"""What other searches do: banned and forced tokens, other beams, prompts."""

import numpy as np

from reference_numpy import cache
from reference_numpy.projection import log_softmax
from reference_numpy.sample import Sample
from reference_numpy.search import Beam, Greedy


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
        output, _ = self.model.project(decoded)
        return log_softmax(output[:, 0]).astype(np.float64)

    def allowed(self, log_probs, tokens, written):
        """log p [R V] of what may follow ``written`` tokens, else -∞ (R54)."""
        forced = self.settings.forced(written)
        token = np.arange(log_probs.shape[-1])
        if forced is not None:
            return np.where(
                token == forced, np.zeros_like(log_probs), -np.inf)
        banned = np.array(self.settings.banned(written), int)
        banned = np.isin(token, banned) | self.repeats(tokens, written)
        return np.where(banned, -np.inf, log_probs)

    def repeats(self, tokens, written):
        """Whether a token completes n that its row has: [R V] (R56)."""
        token = np.arange(self.model.config.target_vocab)
        n = self.settings.no_repeat_ngram
        found = np.zeros((len(tokens), len(token)), bool)
        for end in range(n - 1, written) if n else ():
            same = np.all(
                tokens[:, end - n + 1:end]
                == tokens[:, written - n + 1:written], axis=-1)
            found = found | (
                same[:, None] & (token == tokens[:, end, None]))
        return found

    def ends(self, token):
        """Whether each token is one of the eos ids: bool [*], of int [*]."""
        return np.isin(token, np.array(self.settings.eos_ids))


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
            rank = np.arange(scores.shape[1])
            scores = np.where(rank < self.left(finished), scores, -np.inf)
        return scores, which

    def left(self, finished):
        """How many of W hypotheses have not finished: int [B 1]."""
        return np.sum(finished == -np.inf, axis=1, keepdims=True)

    def closed(self, token, written):
        """Whether hypotheses end; at the greatest length if they compete."""
        if self.settings.unfinished == "compete":
            return super().closed(token, written)
        return self.ends(token)

    def best(self, scores, tokens, more_scores, more_tokens):
        """The W best of two sets, the second being those that may finish."""
        rank = np.arange(more_scores.shape[1])
        may = rank < self.settings.finishers
        if self.settings.finishing == "first":
            ends = may & (more_scores > -np.inf)
            may = ends & (np.cumsum(ends, axis=1) <= self.left(scores))
        return super().best(
            scores, tokens, np.where(may, more_scores, -np.inf), more_tokens)

    def outcome(self, tokens, alive, finished_tokens, finished):
        """What has finished; where nothing has, what is alive."""
        none = finished[:, :1] == -np.inf
        # [1] scores [B W]: the finished ones'; where there are none, log p
        scores = np.where(none, alive, finished)
        tokens = np.where(none[:, :, None], tokens, finished_tokens)
        return tokens, scores

    def is_done(self, finished, alive, bound):
        """Whether the length rule ends a row's search: bool [B]."""
        done = super().is_done(finished, alive, bound)
        if self.settings.length_rule == "hf_true":
            return finished[:, -1] > -np.inf
        return done
