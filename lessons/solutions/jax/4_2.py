import jax
import jax.numpy as jnp


def masked_softmax(scores, mask):
    hidden = jnp.where(mask, scores, jnp.finfo(scores.dtype).min)
    return jnp.where(mask, jax.nn.softmax(hidden, axis=-1), 0)
