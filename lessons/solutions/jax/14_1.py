import jax.numpy as jnp


def torch_mask(mask, heads):
    return ~jnp.repeat(mask[:, 0], heads, axis=0)
