import jax
import jax.numpy as jnp
import mine_torch
from flax import nnx


class Block(nnx.Module):
    def __init__(self, rngs, d=32):
        self.norm = nnx.LayerNorm(d, rngs=rngs)
        self.fc1 = nnx.Linear(d, 4 * d, rngs=rngs)
        self.fc2 = nnx.Linear(4 * d, d, rngs=rngs)

    def __call__(self, x):
        return x + self.fc2(jax.nn.gelu(self.fc1(self.norm(x))))


def make():
    original, x = mine_torch.make()
    port = Block(nnx.Rngs(0))
    for name in ("fc1", "fc2"):
        there, here = getattr(original, name), getattr(port, name)
        here.kernel[...] = jnp.asarray(there.weight.detach().numpy().T)
        here.bias[...] = jnp.asarray(there.bias.detach().numpy())
    return port, jnp.asarray(x.numpy())
