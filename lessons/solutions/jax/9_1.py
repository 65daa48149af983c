import jax.numpy as jnp


def adam(weight, gradient, m, v, step, learning_rate, beta1, beta2, eps):
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient * gradient
    m_hat, v_hat = m / (1 - beta1**step), v / (1 - beta2**step)
    return weight - learning_rate * m_hat / (jnp.sqrt(v_hat) + eps), m, v
