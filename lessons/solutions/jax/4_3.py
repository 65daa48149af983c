import jax.numpy as jnp


def first_leak(run, tokens):
    before = run(tokens)
    later = jnp.arange(len(tokens))
    for place in range(len(tokens)):
        after = run(jnp.where(later > place, (tokens + 1) % 20, tokens))
        if jnp.abs(after[place] - before[place]).max() > 1e-9:
            return place
    return -1
