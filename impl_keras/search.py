"""Search: from a source to its target, token by token (sections 3.1, 6.1)."""

import math

from keras import ops

from transformer_contract.trace import tap
from impl_keras import cache
from impl_keras.masks import causal_mask, padding_mask
from impl_keras.projection import log_softmax


class Search:
    """What all searches share: a model and the memory of its sources."""

    def __init__(self, model, source, settings, rows):
        """Encode sources, int [B S]; rows, int [B], are their numbers."""
        self.model, self.settings, self.rows = model, settings, rows
        self.pad_id, self.length = model.config.pad_id, 1 + settings.max_tokens
        source_mask = padding_mask(source, self.pad_id)
        memory = model.encode(source, source_mask)
        self.memory = ops.repeat(memory, settings.width, axis=0)
        self.source_mask = ops.repeat(source_mask, settings.width, axis=0)
        self.caches = self.new_caches(source) if settings.cached else None

    def new_caches(self, source):
        """An empty cache for each decoder layer; None where none serves."""
        return cache.new_caches(
            self.model, len(self.memory), self.settings.max_tokens)

    def next(self, tokens, written):
        """log p of the token after the first ``written`` of tokens [R N]."""
        read, last = tokens[:, :-1], slice(written - 1, written)
        mask = ops.tile(causal_mask(read.shape[1]), (len(read), 1, 1, 1))
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
        log_probs = ops.cast(log_softmax(output[:, 0]), "float64")
        padding = ops.arange(log_probs.shape[-1]) == self.pad_id
        return ops.where(padding, -math.inf, log_probs)

    def ends(self, token):
        """Whether each token is the eos: bool [*], of int [*]."""
        return token == self.settings.eos_id

    def reorder(self, parents):
        """Let each row continue another row of its source: int [R]."""
        for kept in self.caches or ():
            kept.reorder(parents)

    @staticmethod
    def top(scores, count):
        """The ``count`` highest of scores [B n], and their places."""
        # keras: ops.top_k gives equals in any order, on torch; this does not
        places = ops.argsort(-scores, axis=-1)[:, :count]
        return ops.take_along_axis(scores, places, axis=-1), places


class Greedy(Search):
    """The most likely token, one after the other."""

    def choose(self, log_probs, written):
        """The most likely token of log_probs [B V]; of equals, the first."""
        return ops.argmax(log_probs, axis=-1)

    def run(self):
        """Tokens, int [B 1 N], and their log p, float64 [B 1]."""
        settings, place = self.settings, ops.arange(self.length)
        first = ops.where(place == 0, settings.bos_id, self.pad_id)
        tokens = ops.tile(first, (len(self.memory), 1))
        scores = ops.zeros(len(tokens), "float64")
        finished = ops.zeros(len(tokens), "bool")
        for written in range(1, self.length):
            # [1] log_probs [B V]: log p of every token that may come next
            log_probs = tap(self, "log_probs", self.next(tokens, written))
            # [2] token [B]: the chosen one
            token = self.choose(log_probs, written)
            log_p = ops.take_along_axis(log_probs, token[:, None], axis=-1)
            # [3] scores [B]: the sum of log p of all tokens, up to the eos
            scores = scores + ops.where(finished, 0, log_p[:, 0])
            token = ops.where(finished, self.pad_id, token)
            # [4] tokens [B N]: the token at its place; padding after an eos
            tokens = ops.where(place == written, token[:, None], tokens)
            # [5] finished [B]: whether the eos is written
            finished = tap(
                self, "finished", finished | self.ends(token))
            if ops.all(finished):
                break
        return tokens[:, None], scores[:, None]


class Beam(Search):
    """Beam search: the W best hypotheses at once."""

    def run(self):
        """Tokens, int [B W N], and log p over the penalty, float64 [B W]."""
        settings, place = self.settings, ops.arange(self.length)
        vocab, w = self.model.config.target_vocab, settings.beam
        b = len(self.memory) // w
        first = ops.where(place == 0, settings.bos_id, self.pad_id)
        tokens = finished_tokens = ops.tile(first, (b, w, 1))
        finished = ops.full((b, w), -math.inf, "float64")
        # At first one hypothesis is alive: all W would be the same.
        alive = ops.where(ops.arange(w) == 0, 0.0, finished)
        for written in range(1, self.length):
            rows = ops.reshape(tokens, (b * w, -1))
            # [1] log_probs [R V]: log p of every token that may come next
            log_probs = self.next(rows, written)
            # [2] candidates [B *]: log p of each hypothesis with each token
            candidates = tap(self, "candidates", ops.reshape(
                alive[:, :, None] + ops.reshape(log_probs, (b, w, -1)),
                (b, -1)))
            # [3] scores [B *]: the best candidates', so that W stay  (R34)
            scores, which = self.select(candidates, finished)
            parents, token = which // vocab, which % vocab
            # [4] grown [B * N]: their tokens
            grown = ops.where(place == written, token[:, :, None],
                              follow(tokens, parents))
            ends = self.closed(token, written)
            # [5] finished [B W]: the best that end, over the penalty
            finished, finished_tokens = self.best(
                finished, finished_tokens, ops.where(
                    ends, scores / settings.penalty(written), -math.inf), grown)
            # [6] alive [B W]: the best of those that do not end
            alive, which = self.top(ops.where(ends, -math.inf, scores), w)
            tokens = follow(grown, which)
            parents = ops.take_along_axis(parents, which, axis=1)
            self.reorder(ops.reshape(
                parents + w * ops.arange(b)[:, None], (-1,)))
            # [7] done [B]: whether the length rule ends a row's search
            done = tap(self, "done", self.is_done(
                finished, alive, settings.bound(written)))
            if ops.all(done):
                break
            alive = ops.where(done[:, None], -math.inf, alive)
        return self.outcome(tokens, alive, finished_tokens, finished)

    def select(self, candidates, finished):
        """The best of candidates [B n], and their places: [B *]."""
        return self.top(candidates, self.settings.candidates)

    def closed(self, token, written):
        """Whether hypotheses end with a token [B n]: bool [B n]."""
        return self.ends(token) | (written == self.settings.max_tokens)

    def outcome(self, tokens, alive, finished_tokens, finished):
        """The answer: tokens [B W N] and scores [B W] of what has finished."""
        return finished_tokens, finished

    def best(self, scores, tokens, more_scores, more_tokens):
        """The W best of two sets of hypotheses, [B n] and [B n N] each."""
        scores = ops.concatenate([scores, more_scores], axis=1)
        tokens = ops.concatenate([tokens, more_tokens], axis=1)
        scores, which = self.top(
            tap(self, "contenders", scores), self.settings.beam)
        return scores, follow(tokens, which)

    def is_done(self, finished, alive, bound):
        """Whether the length rule ends a row's search: bool [B]."""
        # [8] hope [B]: the best score that one alive can reach
        hope = tap(self, "hope", alive[:, 0] / bound)
        # [9] worst [B]: the worst score of W finished ones; -∞ if fewer
        worst = tap(self, "worst", finished[:, -1])
        return worst >= hope


def follow(tokens, which):
    """Of each row the hypotheses ``which`` [B m]: [B n N] to [B m N]."""
    return ops.take_along_axis(tokens, which[:, :, None], axis=1)
