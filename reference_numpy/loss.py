"""Cross-entropy over the tokens that are not padding.

    loss = mean over kept tokens of -Σ q log p

p is the softmax of the logits, and q what it should be: without label smoothing
1 for the right token and 0 for all others. With it q follows one of three
conventions (the contract's ``smoothing``, R22), in each of which it has one
value for the right token, one for padding and one for every other. The
convention "kl" adds Σ q log q, which is 0 in the other two.
"""

import numpy as np

from transformer_contract.smoothing import SMOOTHINGS
from reference_numpy.projection import log_softmax


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
    # [1] log_probs [B T V]: log p
    log_probs = log_softmax(logits)
    at_label = np.take_along_axis(log_probs, labels[..., None], axis=-1)[..., 0]
    # [2] q_log_p [B T]: Σ q log p over V  (R22)
    q_log_p = (
        (right - other) * at_label + other * np.sum(log_probs, axis=-1)
        + (padding - other) * log_probs[..., pad_id])
    # [3] kept [B T]: the labels that are not padding
    kept = labels != pad_id
    # [4] count []: their number; 1 if there are none  (R23)
    count = np.maximum(np.sum(kept), 1).astype(logits.dtype)
    # [5] loss []: the mean of Σ q log q - Σ q log p over those kept
    loss = np.sum(np.where(kept, negative_entropy - q_log_p, 0)) / count
    return loss


def cross_entropy_backward(logits, labels, pad_id, label_smoothing, smoothing):
    """The gradient of cross_entropy with respect to the logits: [B T V].

    It is p - q over the number of kept tokens: positive where the model puts
    too much probability. Where labels are padding it is 0.
    """
    right, other, padding, _ = SMOOTHINGS[smoothing](
        label_smoothing, logits.shape[-1])
    p = np.exp(log_softmax(logits))
    q = np.full_like(p, other)
    q[..., pad_id] = padding
    np.put_along_axis(q, labels[..., None], right, axis=-1)
    kept = (labels != pad_id)[..., None]
    # [5'] logits: loss = the mean of Σ q log q - Σ q log p over those kept
    return np.where(kept, p - q, 0) / max(int(np.sum(kept)), 1)
