"""What other searches do: banned and forced tokens, other beams, prompts."""

import math

import mlx.core as mx

from impl_mlx import cache
from impl_mlx.projection import log_softmax
from impl_mlx.sample import Sample
from impl_mlx.search import Beam, Greedy


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
        return log_softmax(output[:, 0]).astype(mx.float64)

    def allowed(self, log_probs, tokens, written):
        """log p [R V] of what may follow ``written`` tokens, else -∞ (R54)."""
        forced = self.settings.forced(written)
        token = mx.arange(log_probs.shape[-1])
        if forced is not None:
            return mx.where(
                token == forced, mx.zeros_like(log_probs), -math.inf)
        # mlx: takes Python's numbers, and none of NumPy's
        banned = mx.array(
            list(map(int, self.settings.banned(written))), mx.int32)
        banned = (mx.any(token[:, None] == banned, axis=-1)
                  | self.repeats(tokens, written))
        return mx.where(banned, -math.inf, log_probs)

    def repeats(self, tokens, written):
        """Whether a token completes n that its row has: [R V] (R56)."""
        token = mx.arange(self.model.config.target_vocab)
        n = self.settings.no_repeat_ngram
        found = mx.zeros((len(tokens), len(token)), mx.bool_)
        for end in range(n - 1, written) if n else ():
            same = mx.all(
                tokens[:, end - n + 1:end]
                == tokens[:, written - n + 1:written], axis=-1)
            found = found | (
                same[:, None] & (token == tokens[:, end, None]))
        return found

    def ends(self, token):
        """Whether each token is one of the eos ids: bool [*], of int [*]."""
        ends = mx.array(list(map(int, self.settings.eos_ids)), mx.int32)
        return mx.any(token[..., None] == ends, axis=-1)


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
            rank = mx.arange(scores.shape[1])
            scores = mx.where(
                rank < self.left(finished), scores, -math.inf)
        return scores, which

    def left(self, finished):
        """How many of W hypotheses have not finished: int [B 1]."""
        return mx.sum(finished == -math.inf, axis=1, keepdims=True)

    def closed(self, token, written):
        """Whether hypotheses end; at the greatest length if they compete."""
        if self.settings.unfinished == "compete":
            return super().closed(token, written)
        return self.ends(token)

    def best(self, scores, tokens, more_scores, more_tokens):
        """The W best of two sets, the second being those that may finish."""
        rank = mx.arange(more_scores.shape[1])
        may = rank < self.settings.finishers
        if self.settings.finishing == "first":
            ends = may & (more_scores > -math.inf)
            may = ends & (mx.cumsum(ends, 1) <= self.left(scores))
        return super().best(
            scores, tokens, mx.where(may, more_scores, -math.inf),
            more_tokens)

    def outcome(self, tokens, alive, finished_tokens, finished):
        """What has finished; where nothing has, what is alive."""
        none = finished[:, :1] == -math.inf
        # [1] scores [B W]: the finished ones'; where there are none, log p
        scores = mx.where(none, alive, finished)
        tokens = mx.where(none[:, :, None], tokens, finished_tokens)
        return tokens, scores

    def is_done(self, finished, alive, bound):
        """Whether the length rule ends a row's search: bool [B]."""
        done = super().is_done(finished, alive, bound)
        if self.settings.length_rule == "hf_true":
            return finished[:, -1] > -math.inf
        return done
