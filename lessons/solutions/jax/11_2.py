import jax.numpy as jnp


def best(alive, log_probs, count):
    candidates = (alive[:, None] + log_probs).ravel()
    places = jnp.argsort(-candidates, stable=True)[:count]
    parents, tokens = jnp.divmod(places, log_probs.shape[1])
    return candidates[places], parents, tokens
