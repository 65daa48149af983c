import jax.numpy as jnp


def packed(query, key, value, query_bias, key_bias, value_bias):
    return (jnp.concatenate([query.T, key.T, value.T]),
            jnp.concatenate([query_bias, key_bias, value_bias]))
