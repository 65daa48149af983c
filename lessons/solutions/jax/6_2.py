import jax.numpy as jnp


def norm_of(x, y, eps=1e-6):
    centered = x - x.mean(axis=-1, keepdims=True)
    makes = {
        "layer": centered / jnp.sqrt(x.var(axis=-1, keepdims=True) + eps),
        "std": centered / (x.std(axis=-1, ddof=1, keepdims=True) + eps),
        "rms": x / jnp.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)}
    return min(makes, key=lambda name: jnp.abs(makes[name] - y).max())
