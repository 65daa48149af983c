"""Search: from a source to its target, token by token (sections 3.1, 6.1).

For each token a search asks the model what comes next. Without a cache the
model reads the whole target every time, which defines the answer; with one it
reads the last token and the cached keys and values of those before (cache.py),
which gives the same answer. Sampling is a search too, in sample.py.
"""

import numpy as np

from transformer_contract.trace import tap
from reference_numpy import cache
from reference_numpy.masks import causal_mask, padding_mask
from reference_numpy.projection import log_softmax


class Search:
    """What all searches share: a model and the memory of its sources.

    A source has W hypotheses (1 without a beam). They are rows of one batch,
    R = B · W, and a row has N = 1 + max_tokens places for its tokens.

    Attributes:
        memory, source_mask: [R S D] and [R 1 1 S].
        caches: one for each decoder layer, or None.
    """

    def __init__(self, model, source, settings, rows):
        """Encode sources, int [B S].

        ``settings`` is a GenerationConfig; ``rows``, int [B], the numbers from
        which samples follow.
        """
        self.model, self.settings, self.rows = model, settings, rows
        self.pad_id, self.length = model.config.pad_id, 1 + settings.max_tokens
        source_mask = padding_mask(source, self.pad_id)
        memory, _ = model.encode(source, source_mask)
        self.memory = np.repeat(memory, settings.width, axis=0)
        self.source_mask = np.repeat(source_mask, settings.width, axis=0)
        self.caches = self.new_caches(source) if settings.cached else None

    def new_caches(self, source):
        """An empty cache for each decoder layer; None where none serves."""
        return cache.new_caches(
            self.model, len(self.memory), self.settings.max_tokens)

    def next(self, tokens, written):
        """log p of the token after the first ``written`` of tokens [R N].

        float64 [R V]. All written tokens are attended to, even a bos whose id
        is pad_id; the causal mask hides the others.
        """
        read, last = tokens[:, :-1], slice(written - 1, written)
        mask = np.tile(causal_mask(read.shape[1]), (len(read), 1, 1, 1))
        if self.caches is None:
            decoded, _ = self.model.decode(
                read, self.memory, self.source_mask, mask, None)
            decoded = decoded[:, last]
        else:
            decoded, _ = self.model.decode(
                read[:, last], self.memory, self.source_mask,
                mask[:, :, last], self.caches)
        return self.answer(decoded)

    def answer(self, decoded):
        """log p of the token after decoded [R 1 D]: float64 [R V].

        Padding is no answer (R31).
        """
        output, _ = self.model.project(decoded)
        log_probs = log_softmax(output[:, 0]).astype(np.float64)
        padding = np.arange(log_probs.shape[-1]) == self.pad_id
        return np.where(padding, -np.inf, log_probs)

    def ends(self, token):
        """Whether each token is the eos: bool [*], of int [*]."""
        return token == self.settings.eos_id

    def reorder(self, parents):
        """Let each row continue another row of its source: int [R]."""
        for kept in self.caches or ():
            kept.reorder(parents)

    @staticmethod
    def top(scores, count):
        """The ``count`` highest of scores [B n], and their places: [B count].

        Of equals the first comes first.
        """
        places = np.argsort(-scores, axis=-1, kind="stable")[:, :count]
        return np.take_along_axis(scores, places, axis=-1), places


class Greedy(Search):
    """The most likely token, one after the other."""

    def choose(self, log_probs, written):
        """The most likely token of log_probs [B V]; of equals, the first."""
        return np.argmax(log_probs, axis=-1)

    def run(self):
        """Find a target for each source.

        Returns:
            Tokens, int [B 1 N], with their bos and, where they finish, their
            eos, then padding; and log p, float64 [B 1]: each token's, summed
            up to the eos.
        """
        settings, place = self.settings, np.arange(self.length)
        first = np.where(place == 0, settings.bos_id, self.pad_id)
        tokens = np.tile(first, (len(self.memory), 1))
        scores = np.zeros(len(tokens))
        finished = np.zeros(len(tokens), bool)
        for written in range(1, self.length):
            # [1] log_probs [B V]: log p of every token that may come next
            log_probs = tap(self, "log_probs", self.next(tokens, written))
            # [2] token [B]: the chosen one
            token = self.choose(log_probs, written)
            log_p = np.take_along_axis(log_probs, token[:, None], axis=-1)
            # [3] scores [B]: the sum of log p of all tokens, up to the eos
            scores = scores + np.where(finished, 0, log_p[:, 0])
            token = np.where(finished, self.pad_id, token)
            # [4] tokens [B N]: the token at its place; padding after an eos
            tokens = np.where(place == written, token[:, None], tokens)
            # [5] finished [B]: whether the eos is written
            finished = tap(
                self, "finished", finished | self.ends(token))
            if np.all(finished):
                break
        return tokens[:, None], scores[:, None]


class Beam(Search):
    """Beam search: the W best hypotheses at once.

    Wu et al. 2016, section 7; the paper's section 6.1. In each step the best
    2W continuations of all hypotheses alive are chosen, so that W remain even
    if all others end. Those that end compete with those finished before, by
    log p over the length penalty; the best of the others stay alive. At the
    greatest length all end. A row that is done no longer changes (R33, R34).
    """

    def run(self):
        """Find W targets for each source, the best first.

        Returns:
            Tokens, int [B W N], as Greedy's; and their log p over the penalty,
            float64 [B W], -∞ where there are fewer than W.
        """
        settings, place = self.settings, np.arange(self.length)
        vocab, w = self.model.config.target_vocab, settings.beam
        b = len(self.memory) // w
        first = np.where(place == 0, settings.bos_id, self.pad_id)
        tokens = finished_tokens = np.tile(first, (b, w, 1))
        finished = np.full((b, w), -np.inf)
        # At first one hypothesis is alive: all W would be the same.
        alive = np.where(np.arange(w) == 0, 0.0, finished)
        for written in range(1, self.length):
            rows = tokens.reshape(b * w, -1)
            # [1] log_probs [R V]: log p of every token that may come next
            log_probs = self.next(rows, written)
            # [2] candidates [B *]: log p of each hypothesis with each token
            candidates = tap(self, "candidates", (
                alive[:, :, None] + log_probs.reshape(b, w, -1)
            ).reshape(b, -1))
            # [3] scores [B *]: the best candidates', so that W stay  (R34)
            scores, which = self.select(candidates, finished)
            parents, token = which // vocab, which % vocab
            # [4] grown [B * N]: their tokens
            grown = np.where(place == written, token[:, :, None],
                             follow(tokens, parents))
            ends = self.closed(token, written)
            # [5] finished [B W]: the best that end, over the penalty
            finished, finished_tokens = self.best(
                finished, finished_tokens, np.where(
                    ends, scores / settings.penalty(written), -np.inf), grown)
            # [6] alive [B W]: the best of those that do not end
            alive, which = self.top(np.where(ends, -np.inf, scores), w)
            tokens = follow(grown, which)
            parents = np.take_along_axis(parents, which, axis=1)
            self.reorder((parents + w * np.arange(b)[:, None]).reshape(-1))
            # [7] done [B]: whether the length rule ends a row's search
            done = tap(self, "done", self.is_done(
                finished, alive, settings.bound(written)))
            if np.all(done):
                break
            alive = np.where(done[:, None], -np.inf, alive)
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
        scores = np.concatenate([scores, more_scores], axis=1)
        tokens = np.concatenate([tokens, more_tokens], axis=1)
        scores, which = self.top(
            tap(self, "contenders", scores), self.settings.beam)
        return scores, follow(tokens, which)

    def is_done(self, finished, alive, bound):
        """Whether the length rule ends a row's search: bool [B].

        ``finished`` and ``alive`` are scores [B W], the best first.
        """
        # [8] hope [B]: the best score that one alive can reach
        hope = tap(self, "hope", alive[:, 0] / bound)
        # [9] worst [B]: the worst score of W finished ones; -∞ if fewer
        worst = tap(self, "worst", finished[:, -1])
        return worst >= hope


def follow(tokens, which):
    """Of each row the hypotheses ``which`` [B m]: [B n N] to [B m N]."""
    return np.take_along_axis(tokens, which[:, :, None], axis=1)
