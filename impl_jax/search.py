"""Search: from a source to its target, token by token (sections 3.1, 6.1)."""

import jax.numpy as jnp

from contract.trace import tap
from impl_jax.cache import new_caches
from impl_jax.masks import causal_mask, padding_mask
from impl_jax.projection import log_softmax


class Search:
    """What all searches share: a model and the memory of its sources."""

    def __init__(self, model, source, settings, rows):
        """Encode sources, int [B S]; rows, int [B], are their numbers."""
        self.model, self.settings, self.rows = model, settings, rows
        self.pad_id, self.length = model.config.pad_id, 1 + settings.max_tokens
        source_mask = padding_mask(source, self.pad_id)
        memory = model.encode(source, source_mask)
        self.memory = jnp.repeat(memory, settings.width, axis=0)
        self.source_mask = jnp.repeat(source_mask, settings.width, axis=0)
        self.caches = new_caches(
            model, len(self.memory), model.room(source, settings.max_tokens)
        ) if settings.cached and model.cached else None

    def next(self, tokens, written):
        """log p of the token after the first ``written`` of tokens [R N]."""
        read, last = tokens[:, :-1], slice(written - 1, written)
        mask = jnp.tile(causal_mask(read.shape[1]), (len(read), 1, 1, 1))
        if self.caches is None:
            decoded = self.model.decode(
                read, self.memory, self.source_mask, mask, None)
            decoded = decoded[:, last]
        else:
            decoded = self.model.decode(
                read[:, last], self.memory, self.source_mask,
                mask[:, :, last], self.caches)
        return self.answer(decoded)

    def answer(self, decoded):
        """log p of the token after decoded [R 1 D]: float64 [R V] (R31)."""
        output = self.model.project(decoded)
        log_probs = log_softmax(output[:, 0]).astype(jnp.float64)
        padding = jnp.arange(log_probs.shape[-1]) == self.pad_id
        hidden = padding & (not self.settings.allow_padding)
        return jnp.where(hidden, -jnp.inf, log_probs)

    def allowed(self, log_probs, tokens, written):
        """log p [R V] of what may follow ``written`` tokens, else -∞ (R54)."""
        forced = self.settings.forced(written)
        token = jnp.arange(log_probs.shape[-1])
        if forced is not None:
            return jnp.where(
                token == forced, jnp.zeros_like(log_probs), -jnp.inf)
        banned = jnp.array(self.settings.banned(written), int)
        banned = jnp.isin(token, banned) | self.repeats(tokens, written)
        return jnp.where(banned, -jnp.inf, log_probs)

    def repeats(self, tokens, written):
        """Whether a token ends n that its row has already: [R V] (R56)."""
        token = jnp.arange(self.model.config.target_vocab)
        n = self.settings.no_repeat_ngram
        found = jnp.zeros((len(tokens), len(token)), bool)
        for end in range(n - 1, written) if n else ():
            same = jnp.all(
                tokens[:, end - n + 1:end]
                == tokens[:, written - n + 1:written], axis=-1)
            found = found | (
                same[:, None] & (token == tokens[:, end, None]))
        return found

    def ends(self, token):
        """Whether each token is one of the eos ids: bool [*], of int [*]."""
        return jnp.isin(token, jnp.array(self.settings.eos_ids))

    def reorder(self, parents):
        """Let each row continue another row of its source: int [R]."""
        for cache in self.caches or ():
            cache.reorder(parents)

    @staticmethod
    def top(scores, count):
        """The ``count`` highest of scores [B n], and their places."""
        places = jnp.argsort(-scores, axis=-1, stable=True)[:, :count]
        return jnp.take_along_axis(scores, places, axis=-1), places


class Greedy(Search):
    """The most likely token, one after the other."""

    def choose(self, log_probs, written):
        """The most likely token of log_probs [B V]; of equals, the first."""
        return jnp.argmax(log_probs, axis=-1)

    def run(self):
        """Tokens, int [B 1 N], and their log p, float64 [B 1]."""
        settings, place = self.settings, jnp.arange(self.length)
        first = jnp.where(place == 0, settings.bos_id, self.pad_id)
        tokens = jnp.tile(first, (len(self.memory), 1))
        scores = jnp.zeros(len(tokens))
        finished = jnp.zeros(len(tokens), bool)
        for written in range(1, self.length):
            # [1] log_probs [B V]: log p of every token that may come next
            log_probs = tap(self, "log_probs", self.allowed(
                self.next(tokens, written), tokens, written))
            # [2] token [B]: the chosen one
            token = self.choose(log_probs, written)
            log_p = jnp.take_along_axis(log_probs, token[:, None], axis=-1)
            # [3] scores [B]: the sum of log p of all tokens, up to the eos
            scores = scores + jnp.where(finished, 0, log_p[:, 0])
            token = jnp.where(finished, self.pad_id, token)
            # [4] tokens [B N]: the token at its place; padding behind an eos
            tokens = jnp.where(place == written, token[:, None], tokens)
            # [5] finished [B]: whether the eos is written
            finished = tap(
                self, "finished", finished | self.ends(token))
            if jnp.all(finished):
                break
        return tokens[:, None], scores[:, None]


class Beam(Search):
    """Beam search: the W best hypotheses at once."""

    def run(self):
        """Tokens, int [B W N], and log p over the penalty, float64 [B W]."""
        settings, place = self.settings, jnp.arange(self.length)
        vocab, w = self.model.config.target_vocab, settings.beam
        b = len(self.memory) // w
        count = settings.candidates
        rank = jnp.arange(count)
        # At the greatest length all end, unless they only stand in.
        last = settings.max_tokens if settings.unfinished == "compete" else 0
        first = jnp.where(place == 0, settings.bos_id, self.pad_id)
        tokens = finished_tokens = jnp.tile(first, (b, w, 1))
        finished = jnp.full((b, w), -jnp.inf)
        # At first one hypothesis is alive: all W would be the same.
        alive = jnp.where(jnp.arange(w) == 0, 0.0, finished)
        for written in range(1, self.length):
            rows = tokens.reshape(b * w, -1)
            # [1] log_probs [R V]: log p of every token that may come next
            log_probs = self.allowed(
                self.next(rows, written), rows, written)
            # [2] candidates [B *]: log p of each hypothesis with each token
            candidates = tap(self, "candidates", (
                alive[:, :, None] + log_probs.reshape(b, w, -1)
            ).reshape(b, -1))
            # [3] scores [B *]: the best candidates', so that W stay  (R34, R56)
            scores, which = self.top(candidates, count)
            scores = self.narrowed(scores, finished)
            parents, token = which // vocab, which % vocab
            # [4] grown [B * N]: their tokens
            grown = jnp.where(place == written, token[:, :, None],
                              follow(tokens, parents))
            ends = self.ends(token) | (written == last)
            may = self.may_finish(ends & (rank < settings.finishers), finished)
            # [5] finished [B W]: the best that end and may, over the penalty
            finished, finished_tokens = self.best(
                finished, finished_tokens, jnp.where(
                    may, scores / settings.penalty(written), -jnp.inf), grown)
            # [6] alive [B W]: the best of those that do not end
            alive, which = self.top(jnp.where(ends, -jnp.inf, scores), w)
            tokens = follow(grown, which)
            parents = jnp.take_along_axis(parents, which, axis=1)
            self.reorder((parents + w * jnp.arange(b)[:, None]).reshape(-1))
            # [7] done [B]: whether the length rule ends a row's search
            done = tap(self, "done", self.is_done(
                finished, alive, settings.bound(written)))
            if jnp.all(done):
                break
            alive = jnp.where(done[:, None], -jnp.inf, alive)
        none = finished[:, :1] == -jnp.inf
        # [8] scores [B W]: the finished ones'; where there are none, log p
        scores = jnp.where(none, alive, finished)
        tokens = jnp.where(none[:, :, None], tokens, finished_tokens)
        return tokens, scores

    def narrowed(self, scores, finished):
        """Scores [B n], -∞ of those that have no place in a narrower beam."""
        if self.settings.finishing != "narrowing":
            return scores
        rank = jnp.arange(scores.shape[1])
        return jnp.where(rank < self.left(finished), scores, -jnp.inf)

    def may_finish(self, ends, finished):
        """Which of those that end may finish: bool [B n], the best first."""
        if self.settings.finishing != "first":
            return ends
        left = self.left(finished)
        return ends & (jnp.cumsum(ends, axis=1) <= left)

    def left(self, finished):
        """How many of W hypotheses have not finished: int [B 1]."""
        return jnp.sum(finished == -jnp.inf, axis=1, keepdims=True)

    def best(self, scores, tokens, more_scores, more_tokens):
        """The W best of two sets of hypotheses, [B n] and [B n N] each."""
        scores = jnp.concatenate([scores, more_scores], axis=1)
        tokens = jnp.concatenate([tokens, more_tokens], axis=1)
        scores, which = self.top(
            tap(self, "contenders", scores), self.settings.beam)
        return scores, follow(tokens, which)

    def is_done(self, finished, alive, bound):
        """Whether the length rule ends a row's search: bool [B]."""
        # [9] hope [B]: the best score that one alive can reach
        hope = tap(self, "hope", alive[:, 0] / bound)
        # [10] worst [B]: the worst score of W finished ones; -∞ if fewer
        worst = tap(self, "worst", finished[:, -1])
        if self.settings.length_rule == "hf_true":
            return worst > -jnp.inf
        return worst >= hope


def follow(tokens, which):
    """Of each row the hypotheses ``which`` [B m]: [B n N] to [B m N]."""
    return jnp.take_along_axis(tokens, which[:, :, None], axis=1)
