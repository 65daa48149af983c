import jax
import jax.numpy as jnp


def cross_entropy(logits, labels, pad_id):
    log_p = jax.nn.log_softmax(logits, axis=-1)
    at_label = jnp.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0]
    return float(-at_label.mean(where=labels != pad_id))
