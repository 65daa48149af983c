import jax
import jax.numpy as jnp


def smoothed_loss(logits, labels, pad_id, eps):
    log_p = jax.nn.log_softmax(logits, axis=-1)
    at_label = jnp.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0]
    each = -(1 - eps) * at_label - eps * log_p.mean(axis=-1)
    return float(each.mean(where=labels != pad_id))
