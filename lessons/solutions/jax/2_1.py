import jax.numpy as jnp


def positions(length, d_model):
    pair = jnp.arange(d_model // 2)
    angle = jnp.arange(length)[:, None] / 10000.0 ** (2 * pair / d_model)
    table = jnp.stack([jnp.sin(angle), jnp.cos(angle)], axis=-1)
    return table.reshape(length, d_model)
