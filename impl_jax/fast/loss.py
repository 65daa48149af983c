"""The loss with a gradient of its own, which keeps no second B·T·V scores.

Of log p it would keep all; here the gradient is made of the logits again.
"""

import functools

import jax
import jax.numpy as jnp

from transformer_contract.smoothing import SMOOTHINGS


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3, 4))
def cross_entropy(logits, labels, pad_id, label_smoothing, smoothing):
    """The mean loss of the labels that are not padding; see impl_jax.loss."""
    return forward(logits, labels, pad_id, label_smoothing, smoothing)[0]


def forward(logits, labels, pad_id, label_smoothing, smoothing):
    """The loss, and what its gradient is made of."""
    right, other, padding, negative_entropy = SMOOTHINGS[smoothing](
        label_smoothing, logits.shape[-1])
    highest = jnp.max(logits, axis=-1, keepdims=True)
    total = jnp.sum(jnp.exp(logits - highest), axis=-1, keepdims=True)
    at_label = jnp.take_along_axis(logits, labels[..., None], axis=-1)
    q_logits = (
        (right - other) * (at_label - highest)[..., 0]
        + other * jnp.sum(logits - highest, axis=-1)
        + (padding - other) * (logits[..., pad_id] - highest[..., 0]))
    kept = labels != pad_id
    share = kept / jnp.maximum(jnp.sum(kept), 1).astype(logits.dtype)
    losses = negative_entropy + jnp.log(total[..., 0]) - q_logits
    return jnp.sum(share * losses), (logits, highest, total, labels, share)


def backward(pad_id, label_smoothing, smoothing, kept, gradient):
    """The gradient by the logits, (p - q) where labels are kept."""
    logits, highest, total, labels, share = kept
    right, other, padding, _ = SMOOTHINGS[smoothing](
        label_smoothing, logits.shape[-1])
    token = jnp.arange(logits.shape[-1])
    q = (other + (right - other) * (token == labels[..., None])
         + (padding - other) * (token == pad_id)).astype(logits.dtype)
    share = gradient * share[..., None]
    return jnp.exp(logits - highest) * (share / total) - share * q, None


cross_entropy.defvjp(forward, backward)
