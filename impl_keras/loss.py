"""Cross-entropy over the tokens that are not padding."""

from keras import ops

from impl_keras.layer_norm import _average
from impl_keras.projection import log_softmax


def cross_entropy(logits, labels, pad_id, label_smoothing):
    """The mean loss of the labels that are not padding; 0 if all are (R23).

    Keras' SparseCategoricalCrossentropy knows no label smoothing.
    """
    log_probs = log_softmax(logits)
    right = ops.take_along_axis(log_probs, labels[..., None], axis=-1)[..., 0]
    spread = _average(log_probs)[..., 0]
    losses = -((1 - label_smoothing) * right + label_smoothing * spread)
    kept = labels != pad_id
    count = ops.cast(ops.maximum(ops.sum(kept), 1), logits.dtype)
    return ops.sum(ops.where(kept, losses, 0)) / count
