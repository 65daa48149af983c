"""Cross-entropy over the tokens that are not padding.

    loss = mean over kept tokens of Σ q log q - Σ q log p

p is the softmax of the logits, and q what it should be (R22). Σ q log q is 0
unless ``smoothing`` is "kl".
"""

import mlx.core as mx

from transformer_contract.smoothing import SMOOTHINGS
from impl_mlx.projection import log_softmax


def cross_entropy(logits, labels, pad_id, label_smoothing, smoothing):
    """The mean loss of the labels that are not padding; 0 if all are (R23).

    nn.losses.cross_entropy with weights equals "uniform", by a logsumexp that
    has float32's digits.
    """
    right, other, padding, negative_entropy = SMOOTHINGS[smoothing](
        label_smoothing, logits.shape[-1])
    # [1] log_probs [B T V]: log p
    log_probs = log_softmax(logits)
    at_label = mx.take_along_axis(
        log_probs, labels[..., None], axis=-1)[..., 0]
    # [2] q_log_p [B T]: Σ q log p over V  (R22)
    q_log_p = (
        (right - other) * at_label + other * mx.sum(log_probs, axis=-1)
        + (padding - other) * log_probs[..., pad_id])
    # [3] kept [B T]: the labels that are not padding
    kept = labels != pad_id
    # [4] count []: their number; 1 if there are none  (R23)
    count = mx.maximum(mx.sum(kept), 1).astype(logits.dtype)
    # [5] loss []: the mean of Σ q log q - Σ q log p over those kept
    loss = mx.sum(mx.where(kept, negative_entropy - q_log_p, 0)) / count
    return loss
