"""Cross-entropy over the tokens that are not padding.

    loss = mean over kept tokens of -Σ q log p

p is the softmax of the logits. Label smoothing (section 5.4; Szegedy et al.
2016, section 7) moves a share ε of q from the right token to others, and
systems disagree on which others (R22)::

    uniform   ε / V on each of all V tokens, the right one included
    others    ε / (V - 1) on each token but the right one
    kl        ε / (V - 2) on each token but the right one and padding, and the
              loss is the divergence Σ q (log q - log p)
"""

import math

import numpy as np

from reference_numpy.projection import log_softmax


def uniform(label_smoothing, vocab):
    """q of the right token, of another, of padding; and Σ q log q or 0."""
    other = label_smoothing / vocab
    return 1 - label_smoothing + other, other, other, 0.0


def others(label_smoothing, vocab):
    """The same four numbers, for "others"."""
    other = label_smoothing / (vocab - 1)
    return 1 - label_smoothing, other, other, 0.0


def kl(label_smoothing, vocab):
    """The same four numbers, for "kl"; 0 log 0 is 0."""
    right, other = 1 - label_smoothing, label_smoothing / (vocab - 2)
    negative_entropy = right * math.log(right) + (
        label_smoothing * math.log(other) if other else 0.0)
    return right, other, 0.0, negative_entropy


SMOOTHINGS = {"uniform": uniform, "others": others, "kl": kl}


def cross_entropy(logits, labels, pad_id, label_smoothing, smoothing):
    """The mean loss of the labels that are not padding; 0 if all are (R23).

    Args:
        logits: [B T V], or log-probabilities.
        labels: int [B T], the tokens to predict.
        pad_id: the label that does not count.
        label_smoothing: ε, in [0, 1).
        smoothing: a key of SMOOTHINGS.

    Returns:
        A scalar array of the logits' dtype.
    """
    right, other, padding, negative_entropy = SMOOTHINGS[smoothing](
        label_smoothing, logits.shape[-1])
    log_probs = log_softmax(logits)
    at_label = np.take_along_axis(log_probs, labels[..., None], axis=-1)[..., 0]
    losses = negative_entropy - (
        (right - other) * at_label + other * np.sum(log_probs, axis=-1)
        + (padding - other) * log_probs[..., pad_id])
    kept = labels != pad_id
    count = np.maximum(np.sum(kept), 1).astype(logits.dtype)
    return np.sum(np.where(kept, losses, 0)) / count


def cross_entropy_backward(logits, labels, pad_id, label_smoothing, smoothing):
    """The gradient of cross_entropy with respect to the logits: [B T V].

    It is p - q over the number of kept tokens: what the model says too much.
    Where labels are padding it is 0.
    """
    right, other, padding, _ = SMOOTHINGS[smoothing](
        label_smoothing, logits.shape[-1])
    p = np.exp(log_softmax(logits))
    q = np.full_like(p, other)
    q[..., pad_id] = padding
    np.put_along_axis(q, labels[..., None], right, axis=-1)
    kept = (labels != pad_id)[..., None]
    return np.where(kept, p - q, 0) / max(int(np.sum(kept)), 1)
