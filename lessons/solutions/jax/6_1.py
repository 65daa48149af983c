import jax.numpy as jnp


def layer_norm(x, scale, bias, eps):
    centered = x - x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return centered / jnp.sqrt(variance + eps) * scale + bias
