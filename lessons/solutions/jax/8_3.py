import jax.numpy as jnp


def numerical_gradient(f, x, h=1e-5):
    steps = (h * jnp.eye(x.size)).reshape(-1, *x.shape)
    return jnp.array([(f(x + step) - f(x - step)) / (2 * h)
                      for step in steps]).reshape(x.shape)
