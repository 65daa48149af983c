"""Keys of impl_jax.random by JAX's own Threefry, which compiles fast.

Of keys of keys, written out, XLA makes one expression, which repeats parts of
itself again and again: half a minute to compile. JAX's primitive has a loop.
Bits are drawn by the rounds as written out, which run faster.
"""

import zlib

import jax.numpy as jnp
from jax.extend.random import threefry2x32_p


def threefry2x32(key, x0, x1):
    """See impl_jax.random."""
    return threefry2x32_p.bind(*jnp.broadcast_arrays(*key, x0, x1))


def fold_in(parent, number):
    """The key of a number under ``parent``."""
    return jnp.stack(threefry2x32(parent, jnp.uint32(0), jnp.uint32(number)))


def fold_in_each(parent, names):
    """The keys of several names under ``parent``: [n 2]."""
    x1 = jnp.array([zlib.crc32(name.encode()) for name in names], jnp.uint32)
    return jnp.stack(threefry2x32(parent, jnp.zeros_like(x1), x1), axis=-1)

