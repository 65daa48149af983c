"""Cross-entropy over the tokens that are not padding."""

import jax.numpy as jnp

from impl_jax.projection import log_softmax


def cross_entropy(logits, labels, pad_id, label_smoothing):
    """The mean loss of the labels that are not padding; 0 if all are (R23)."""
    log_probs = log_softmax(logits)
    right = jnp.take_along_axis(log_probs, labels[..., None], axis=-1)[..., 0]
    spread = jnp.mean(log_probs, axis=-1)
    losses = -((1 - label_smoothing) * right + label_smoothing * spread)
    kept = labels != pad_id
    count = jnp.maximum(jnp.sum(kept), 1).astype(logits.dtype)
    return jnp.sum(jnp.where(kept, losses, 0)) / count
