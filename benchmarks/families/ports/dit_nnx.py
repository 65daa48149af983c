"""The DiT in Flax NNX, channels last."""

import jax
import jax.numpy as jnp
from flax import nnx

from benchmarks.families.drawing import into_nnx

jax.config.update("jax_enable_x64", True)
KIND = {"param_dtype": jnp.float64}


def sines(angles, first, then):
    """Two functions of angles, one behind the other."""
    return jnp.concatenate([first(angles), then(angles)], -1)


def table(grid, width):
    """Sines of columns, then of rows."""
    quarter = width // 4
    omega = 10000.0 ** -(jnp.arange(quarter) / quarter)
    rows, columns = jnp.meshgrid(
        jnp.arange(grid), jnp.arange(grid), indexing="ij")
    return jnp.concatenate([
        sines(place.reshape(-1)[:, None] * omega, jnp.sin, jnp.cos)
        for place in (columns, rows)], -1)


class Norm(nnx.Module):
    """A layer norm that is scaled and shifted."""

    def __call__(self, x, scale, shift):
        mean = x.mean(-1, keepdims=True)
        x = (x - mean) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-6)
        return x * (1 + scale) + shift


class Attention(nnx.Module):
    def __init__(self, width, heads, rngs):
        self.heads = heads
        self.qkv = nnx.Linear(width, 3 * width, rngs=rngs, **KIND)
        self.proj = nnx.Linear(width, width, rngs=rngs, **KIND)

    def __call__(self, x):
        packed = self.qkv(x).reshape(*x.shape[:2], 3, self.heads, -1)
        q, k, v = jnp.moveaxis(packed, 2, 0)
        scores = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
        y = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(scores, -1), v)
        return self.proj(y.reshape(x.shape))


class Block(nnx.Module):
    def __init__(self, width, heads, rngs):
        kind = {"rngs": rngs, **KIND}
        self.norm1, self.norm2 = Norm(), Norm()
        self.attention = Attention(width, heads, rngs)
        self.fc1 = nnx.Linear(width, 4 * width, **kind)
        self.fc2 = nnx.Linear(4 * width, width, **kind)
        self.ada = nnx.Linear(width, 6 * width, **kind)

    def __call__(self, x, c):
        shift1, scale1, gate1, shift2, scale2, gate2 = jnp.split(
            self.ada(jax.nn.silu(c))[:, None], 6, -1)
        x = x + gate1 * self.attention(self.norm1(x, scale1, shift1))
        y = jax.nn.gelu(self.fc1(self.norm2(x, scale2, shift2)))
        return x + gate2 * self.fc2(y)


class DiT(nnx.Module):
    def __init__(self, c, rngs):
        width, kind = c["width"], {"rngs": rngs, **KIND}
        self.patch = nnx.Conv(4, width, (2, 2), (2, 2), **kind)
        self.time1 = nnx.Linear(32, width, **kind)
        self.time2 = nnx.Linear(width, width, **kind)
        self.label = nnx.Embed(11, width, **kind)
        self.blocks = nnx.List([Block(width, 4, rngs) for _ in range(2)])
        self.norm = Norm()
        self.ada = nnx.Linear(width, 2 * width, **kind)
        self.last = nnx.Linear(width, 2 * 2 * 4, **kind)

    def __call__(self, x, time, label):
        x = self.patch(x)
        rows, grid, _, width = x.shape
        x = x.reshape(rows, -1, width) + table(grid, width)
        omega = 10000.0 ** -(jnp.arange(16) / 16)
        time = sines(time[:, None] * omega, jnp.cos, jnp.sin)
        time = self.time2(jax.nn.silu(self.time1(time)))
        c = time + self.label(label)
        for block in self.blocks:
            x = block(x, c)
        shift, scale = jnp.split(self.ada(jax.nn.silu(c))[:, None], 2, -1)
        x = self.last(self.norm(x, scale, shift))
        x = x.reshape(rows, grid, grid, 2, 2, 4).swapaxes(2, 3)
        return x.reshape(rows, 2 * grid, 2 * grid, 4)


def build(arrays, config):
    """The model with torch's arrays."""
    return into_nnx(DiT(config, nnx.Rngs(0)), arrays, [
        (r"(blocks.\d).(qkv|proj)", r"\1.attention.\2")])
