"""Mamba in Flax NNX: a causal convolution, and a scan over places."""

import jax
import jax.numpy as jnp
from flax import nnx

from benchmarks.families.drawing import into_nnx

jax.config.update("jax_enable_x64", True)
KIND = {"param_dtype": jnp.float64}


class RMSNorm(nnx.Module):
    def __init__(self, width):
        self.scale = nnx.Param(jnp.ones(width))

    def __call__(self, x):
        mean = jnp.mean(x * x, -1, keepdims=True)
        return x / jnp.sqrt(mean + 1e-5) * self.scale[...]


class Mixer(nnx.Module):
    def __init__(self, c, rngs):
        width, inner = c["hidden_size"], 2 * c["hidden_size"]
        self.state, self.rank = c["state_size"], c["time_step_rank"]
        kind = {"rngs": rngs, **KIND}
        self.in_proj = nnx.Linear(width, 2 * inner, use_bias=False, **kind)
        self.conv1d = nnx.Conv(
            inner, inner, (4,), padding="CAUSAL",
            feature_group_count=inner, **kind)
        self.x_proj = nnx.Linear(
            inner, self.rank + 2 * self.state, use_bias=False, **kind)
        self.dt_proj = nnx.Linear(self.rank, inner, **kind)
        self.A_log = nnx.Param(jnp.zeros((inner, self.state)))
        self.D = nnx.Param(jnp.ones(inner))
        self.out_proj = nnx.Linear(inner, width, use_bias=False, **kind)

    def __call__(self, x):
        x, gate = jnp.split(self.in_proj(x), 2, -1)
        x = jax.nn.silu(self.conv1d(x))
        step, b, c = jnp.split(
            self.x_proj(x), [self.rank, self.rank + self.state], -1)
        step = jax.nn.softplus(self.dt_proj(step))
        decay = jnp.exp(step[..., None] * -jnp.exp(self.A_log[...]))
        added = (step * x)[..., None] * b[:, :, None]

        def one(state, given):
            decay, added, c = given
            state = decay * state + added
            return state, jnp.einsum("bds,bs->bd", state, c)
        first = jnp.zeros_like(added[:, 0])
        _, y = jax.lax.scan(one, first, (
            decay.swapaxes(0, 1), added.swapaxes(0, 1), c.swapaxes(0, 1)))
        y = y.swapaxes(0, 1) + x * self.D[...]
        return self.out_proj(y * jax.nn.silu(gate))


class Block(nnx.Module):
    def __init__(self, c, rngs):
        self.norm = RMSNorm(c["hidden_size"])
        self.mixer = Mixer(c, rngs)

    def __call__(self, x):
        return x + self.mixer(self.norm(x))


class Mamba(nnx.Module):
    def __init__(self, c, rngs):
        self.embeddings = nnx.Embed(
            c["vocab_size"], c["hidden_size"], rngs=rngs, **KIND)
        self.layers = nnx.List([
            Block(c, rngs) for _ in range(c["num_hidden_layers"])])
        self.norm_f = RMSNorm(c["hidden_size"])

    def __call__(self, ids):
        x = self.embeddings(ids)
        for layer in self.layers:
            x = layer(x)
        return self.norm_f(x)


def build(arrays, config):
    """The model with torch's arrays."""
    return into_nnx(Mamba(config, nnx.Rngs(0)), arrays)
