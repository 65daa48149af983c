"""Cross-entropy over the tokens that are not padding.

    loss = mean over kept tokens of -Σ q log p

p is the softmax of the logits; q puts 1 - ε on the right token and spreads ε
evenly over all V tokens, the right one included (label smoothing as in
Szegedy et al. 2016, section 7, which the paper's section 5.4 cites; R22).
"""

import numpy as np

from reference_numpy.projection import log_softmax


def cross_entropy(logits, labels, pad_id, label_smoothing):
    """The mean loss of the labels that are not padding; 0 if all are (R23).

    Args:
        logits: [B T V], or log-probabilities.
        labels: int [B T], the tokens to predict.
        pad_id: the label that does not count.
        label_smoothing: ε, in [0, 1).

    Returns:
        A scalar array of the logits' dtype.
    """
    log_probs = log_softmax(logits)
    right = np.take_along_axis(log_probs, labels[..., None], axis=-1)[..., 0]
    spread = np.mean(log_probs, axis=-1)
    losses = -((1 - label_smoothing) * right + label_smoothing * spread)
    kept = labels != pad_id
    count = np.maximum(np.sum(kept), 1).astype(logits.dtype)
    return np.sum(np.where(kept, losses, 0)) / count


def cross_entropy_backward(logits, labels, pad_id, label_smoothing):
    """The gradient of cross_entropy with respect to the logits: [B T V].

    It is p - q over the number of kept tokens: what the model says too much.
    Where labels are padding it is 0.
    """
    p = np.exp(log_softmax(logits))
    q = np.full_like(p, label_smoothing / logits.shape[-1])
    at_label = np.take_along_axis(q, labels[..., None], axis=-1)
    np.put_along_axis(
        q, labels[..., None], at_label + (1 - label_smoothing), axis=-1)
    kept = (labels != pad_id)[..., None]
    return np.where(kept, p - q, 0) / max(int(np.sum(kept)), 1)
