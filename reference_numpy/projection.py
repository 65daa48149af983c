"""The projection: from vectors back to a score for every token (§3.4).

    logits = x Eᵀ

E is the table of the embeddings. Where it is another matrix, or has a bias:
dialects/projection.py.
"""

import numpy as np


def log_softmax(x):
    """x - log Σ exp(x) over the last axis, shifted so nothing overflows.

    log_softmax(log_softmax(x)) = log_softmax(x), so the loss may apply it to
    log-probabilities as well (R16).
    """
    shifted = x - np.max(x, axis=-1, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))


class TiedProjection:
    """x Eᵀ, E being the embedding's table; no bias (§3.4, R13)."""

    def __init__(self, embedding):
        self.embedding = embedding

    def forward(self, x):
        """Map x [B T D] to logits."""
        c = {"inputs": (x,)}
        flat = x.reshape(-1, x.shape[-1]) @ self.embedding.table.T
        # [1] logits [B T V]: x Eᵀ  (§3.4, R13)
        logits = c["logits"] = flat.reshape(*x.shape[:-1], -1)
        return logits, c

    def backward(self, dlogits, c):
        """From dlogits [B T V]: dx and g, in which ``table`` is a part.

        The table's gradient has another part from each embedding.
        """
        (x,), table = c["inputs"], self.embedding.table
        flat = dlogits.reshape(-1, dlogits.shape[-1])
        # [1'] x, E: logits = x Eᵀ
        dx = (flat @ table).reshape(x.shape)
        dtable = flat.T @ x.reshape(-1, x.shape[-1])
        return dx, {"logits": dlogits, "table": dtable}
