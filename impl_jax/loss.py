"""Cross-entropy over the tokens that are not padding."""

import math

import jax.numpy as jnp

from impl_jax.projection import log_softmax


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

    optax.softmax_cross_entropy of optax.smooth_labels is "uniform".
    """
    right, other, padding, negative_entropy = SMOOTHINGS[smoothing](
        label_smoothing, logits.shape[-1])
    log_probs = log_softmax(logits)
    at_label = jnp.take_along_axis(
        log_probs, labels[..., None], axis=-1)[..., 0]
    losses = negative_entropy - (
        (right - other) * at_label + other * jnp.sum(log_probs, axis=-1)
        + (padding - other) * log_probs[..., pad_id])
    kept = labels != pad_id
    count = jnp.maximum(jnp.sum(kept), 1).astype(logits.dtype)
    return jnp.sum(jnp.where(kept, losses, 0)) / count
