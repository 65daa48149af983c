import jax.numpy as jnp
from jax.scipy.linalg import block_diag


def shift(k, d_model):
    pair = jnp.arange(d_model // 2)
    angle = k / 10000.0 ** (2 * pair / d_model)
    sin, cos = jnp.sin(angle), jnp.cos(angle)
    blocks = jnp.stack([cos, sin, -sin, cos], axis=-1).reshape(-1, 2, 2)
    return block_diag(*blocks)
