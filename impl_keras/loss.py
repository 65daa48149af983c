"""Cross-entropy over the tokens that are not padding.

    loss = mean over kept tokens of Σ q log q - Σ q log p

p is the softmax of the logits, and q what it should be (R22). Σ q log q is 0
unless ``smoothing`` is "kl".
"""

from keras import ops

from transformer_contract.smoothing import SMOOTHINGS
from impl_keras.projection import log_softmax


def cross_entropy(logits, labels, pad_id, label_smoothing, smoothing):
    """The mean loss of the labels that are not padding; 0 if all are (R23).

    Keras' CategoricalCrossentropy is "uniform"; its sparse form knows no
    label smoothing.
    """
    right, other, padding, negative_entropy = SMOOTHINGS[smoothing](
        label_smoothing, logits.shape[-1])
    # [1] log_probs [B T V]: log p
    log_probs = log_softmax(logits)
    at_label = ops.take_along_axis(
        log_probs, labels[..., None], axis=-1)[..., 0]
    # [2] q_log_p [B T]: Σ q log p over V  (R22)
    q_log_p = (
        (right - other) * at_label + other * ops.sum(log_probs, axis=-1)
        + (padding - other) * log_probs[..., pad_id])
    # [3] kept [B T]: the labels that are not padding
    kept = labels != pad_id
    # [4] count []: their number; 1 if there are none  (R23)
    count = ops.cast(ops.maximum(ops.sum(kept), 1), logits.dtype)
    # [5] loss []: the mean of Σ q log q - Σ q log p over those kept
    loss = ops.sum(ops.where(kept, negative_entropy - q_log_p, 0)) / count
    return loss
