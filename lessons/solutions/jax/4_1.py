import jax.numpy as jnp


def causal_mask(length):
    return jnp.tri(length, dtype=bool)[None, None]
