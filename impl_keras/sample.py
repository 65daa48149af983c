"""Sampling: each next token is drawn by its probability."""

from keras import ops

from transformer_contract.trace import tap
from impl_keras import random
from impl_keras.search import Greedy


class Sample(Greedy):
    """Tokens drawn by their probability, one after the other."""

    def __init__(self, model, source, settings, rows):
        super().__init__(model, source, settings, rows)
        self.draws = uniforms(settings.seed, rows, self.length)

    def choose(self, log_probs, written):
        """A token for each row of log_probs [B V], drawn by p: [B]."""
        settings, place = self.settings, ops.arange(log_probs.shape[-1])
        # [1] scores [B V]: log p / temperature, the most likely first
        scores, which = self.top(
            log_probs / settings.temperature, log_probs.shape[-1])
        scores = tap(self, "scores", scores)
        e = ops.exp(scores - scores[:, :1])
        # [2] p [B V]: softmax of the scores
        p = tap(self, "p", e / ops.sum(e, axis=-1, keepdims=True))
        # [3] before [B V]: the sum of p over all more likely tokens
        before = ops.cumsum(p, axis=-1) - p
        # [4] whole [B 1]: of what top_p is a part; 1, or the first k's sum
        whole = self.whole(before + p)
        # [5] kept [B V]: the first k, of these as many as reach top_p
        kept = ((place < (settings.top_k or len(place)))
                & (before < settings.top_p * whole))
        # [6] reached [B V]: the sum of kept p, up to each token
        reached = ops.cumsum(ops.where(kept, p, 0), axis=-1)
        # [7] draw [B]: from 0 up to the whole sum
        draw = tap(self, "draw", self.draws[:, written]) * reached[:, -1]
        # [8] rank [B]: of the token into whose part of the sum it falls
        rank = ops.sum(reached <= draw[:, None], axis=-1)
        rank = ops.minimum(rank, ops.maximum(ops.sum(kept, axis=-1), 1) - 1)
        rank = tap(self, "rank", rank)
        return ops.take_along_axis(which, rank[:, None], axis=-1)[:, 0]

    def whole(self, reached):
        """What all p come to, which is 1, or those of the first k: [B 1]."""
        if not self.settings.top_p_of_top_k:
            return ops.ones_like(reached[:, :1])
        k = min(self.settings.top_k or reached.shape[-1], reached.shape[-1])
        return reached[:, k - 1:k]


def uniforms(seed, rows, length):
    """A number in [0, 1) for each token of each row: [B N]."""
    key = random.fold_in(random.key(seed), "sample")
    return ops.stack([
        random.uniform(random.fold_in(key, int(row)), (length,), 0.0, 1.0)
        for row in rows])
