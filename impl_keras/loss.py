"""Cross-entropy over the tokens that are not padding."""

import math

from keras import ops

from impl_keras.projection import log_softmax


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

    Keras' CategoricalCrossentropy is "uniform"; its sparse form knows no
    label smoothing.
    """
    right, other, padding, negative_entropy = SMOOTHINGS[smoothing](
        label_smoothing, logits.shape[-1])
    log_probs = log_softmax(logits)
    at_label = ops.take_along_axis(
        log_probs, labels[..., None], axis=-1)[..., 0]
    losses = negative_entropy - (
        (right - other) * at_label + other * ops.sum(log_probs, axis=-1)
        + (padding - other) * log_probs[..., pad_id])
    kept = labels != pad_id
    count = ops.cast(ops.maximum(ops.sum(kept), 1), logits.dtype)
    return ops.sum(ops.where(kept, losses, 0)) / count
