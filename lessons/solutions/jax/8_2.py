import jax.numpy as jnp


def layer_norm_backward(doutput, x, eps):
    centered = x - x.mean(axis=-1, keepdims=True)
    root = jnp.sqrt(x.var(axis=-1, keepdims=True) + eps)
    along = (doutput * centered).mean(axis=-1, keepdims=True)
    dx = doutput / root - centered * along / root**3
    return dx - dx.mean(axis=-1, keepdims=True)
