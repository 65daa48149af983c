import jax.numpy as jnp


def rotate(x):
    length, width = x.shape
    pair = jnp.arange(width // 2)
    angle = jnp.arange(length)[:, None] / 10000.0 ** (2 * pair / width)
    sin, cos = jnp.sin(angle), jnp.cos(angle)
    even, odd = x[:, 0::2], x[:, 1::2]
    return jnp.stack([even * cos - odd * sin, even * sin + odd * cos],
                     axis=-1).reshape(x.shape)
