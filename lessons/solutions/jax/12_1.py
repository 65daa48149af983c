import jax.numpy as jnp


def to_bfloat16(x):
    bits = x.view(jnp.uint32)
    last = (bits >> 16) & 1
    bits = bits + 0x7FFF + last
    return (bits & jnp.uint32(0xFFFF0000)).view(jnp.float32)
