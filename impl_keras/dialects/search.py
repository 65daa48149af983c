"""What other searches do: banned and forced tokens, other beams, prompts."""

import math

from keras import ops

from impl_keras import cache
from impl_keras.projection import log_softmax
from impl_keras.sample import Sample
from impl_keras.search import Beam, Greedy


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
        return ops.cast(log_softmax(output[:, 0]), "float64")

    def allowed(self, log_probs, tokens, written):
        """log p [R V] of what may follow ``written`` tokens, else -∞ (R54)."""
        forced = self.settings.forced(written)
        token = ops.arange(log_probs.shape[-1])
        if forced is not None:
            return ops.where(
                token == forced, ops.zeros_like(log_probs), -math.inf)
        banned = ops.array(self.settings.banned(written), "int64")
        banned = ops.isin(token, banned) | self.repeats(tokens, written)
        return ops.where(banned, -math.inf, log_probs)

    def repeats(self, tokens, written):
        """Whether a token completes n that its row has: [R V] (R56)."""
        token = ops.arange(self.model.config.target_vocab)
        n = self.settings.no_repeat_ngram
        found = ops.zeros((len(tokens), len(token)), "bool")
        for end in range(n - 1, written) if n else ():
            same = ops.all(
                tokens[:, end - n + 1:end]
                == tokens[:, written - n + 1:written], axis=-1)
            found = found | (
                same[:, None] & (token == tokens[:, end, None]))
        return found

    def ends(self, token):
        """Whether each token is one of the eos ids: bool [*], of int [*]."""
        return ops.isin(token, ops.array(self.settings.eos_ids, "int64"))


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
            rank = ops.arange(scores.shape[1])
            scores = ops.where(rank < self.left(finished), scores, -math.inf)
        return scores, which

    def left(self, finished):
        """How many of W hypotheses have not finished: int [B 1]."""
        return ops.sum(finished == -math.inf, axis=1, keepdims=True)

    def closed(self, token, written):
        """Whether hypotheses end; at the greatest length if they compete."""
        if self.settings.unfinished == "compete":
            return super().closed(token, written)
        return self.ends(token)

    def best(self, scores, tokens, more_scores, more_tokens):
        """The W best of two sets, the second being those that may finish."""
        rank = ops.arange(more_scores.shape[1])
        may = rank < self.settings.finishers
        if self.settings.finishing == "first":
            ends = may & (more_scores > -math.inf)
            count = ops.cumsum(ops.cast(ends, "int32"), axis=1)
            may = ends & (count <= self.left(scores))
        return super().best(
            scores, tokens, ops.where(may, more_scores, -math.inf),
            more_tokens)

    def outcome(self, tokens, alive, finished_tokens, finished):
        """What has finished; where nothing has, what is alive."""
        none = finished[:, :1] == -math.inf
        # [1] scores [B W]: the finished ones'; where there are none, log p
        scores = ops.where(none, alive, finished)
        tokens = ops.where(none[:, :, None], tokens, finished_tokens)
        return tokens, scores

    def is_done(self, finished, alive, bound):
        """Whether the length rule ends a row's search: bool [B]."""
        done = super().is_done(finished, alive, bound)
        if self.settings.length_rule == "hf_true":
            return finished[:, -1] > -math.inf
        return done
