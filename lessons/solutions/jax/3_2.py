import jax.numpy as jnp


def softmax(scores):
    e = jnp.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
