import jax.numpy as jnp

ALONE = {"query": "query's bias missing", "value": "value's bias missing",
         "scores": "scores over √d_model"}


def norm(x):
    return jnp.linalg.norm(x.ravel())


def fault_of(sound, faulty):
    first = next(name for name in sound if norm(
        faulty[name] - sound[name]) > 1e-12 * norm(sound[name]))
    if first in ALONE:
        return ALONE[first]
    if first == "weights":
        hidden = sound["weights"] == 0
        if faulty["weights"][hidden].any():
            return "attention without its mask"
        return "softmax over queries"
    gap = faulty[first] - sound[first]  # a bias moves all rows alike
    if jnp.abs(gap - gap[:1, :1]).max() < 1e-9:
        return "output's bias missing"
    return "output kernel transposed"
