"""Qwen3 in Flax NNX: norms of queries and keys per head, then rotary."""

import jax
import jax.numpy as jnp
from flax import nnx

from benchmarks.families.drawing import into_nnx

jax.config.update("jax_enable_x64", True)
KIND = {"param_dtype": jnp.float64}


def rotate(x, theta):
    """Rotary positions of [B T H K], in halves."""
    half = x.shape[-1] // 2
    frequencies = theta ** -(jnp.arange(half) / half)
    angles = jnp.arange(x.shape[1])[:, None] * frequencies
    cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
    one, two = x[..., :half], x[..., half:]
    return jnp.concatenate(
        [one * cos - two * sin, two * cos + one * sin], -1)


class RMSNorm(nnx.Module):
    def __init__(self, width, rngs):
        self.scale = nnx.Param(jnp.ones(width))

    def __call__(self, x):
        mean = jnp.mean(x * x, -1, keepdims=True)
        return x * jax.lax.rsqrt(mean + 1e-6) * self.scale[...]


class Attention(nnx.Module):
    def __init__(self, c, rngs):
        kind = {"use_bias": False, "rngs": rngs, **KIND}
        width = c["num_attention_heads"] * c["head_dim"]
        groups = c["num_key_value_heads"] * c["head_dim"]
        self.q_proj = nnx.Linear(c["hidden_size"], width, **kind)
        self.k_proj = nnx.Linear(c["hidden_size"], groups, **kind)
        self.v_proj = nnx.Linear(c["hidden_size"], groups, **kind)
        self.o_proj = nnx.Linear(width, c["hidden_size"], **kind)
        self.q_norm = RMSNorm(c["head_dim"], rngs)
        self.k_norm = RMSNorm(c["head_dim"], rngs)
        self.size, self.theta = c["head_dim"], c["theta"]

    def __call__(self, x, kept):
        def heads(y):
            return y.reshape(*x.shape[:2], -1, self.size)
        q = rotate(self.q_norm(heads(self.q_proj(x))), self.theta)
        k = rotate(self.k_norm(heads(self.k_proj(x))), self.theta)
        v = heads(self.v_proj(x))
        shared = q.shape[2] // k.shape[2]
        k, v = jnp.repeat(k, shared, 2), jnp.repeat(v, shared, 2)
        scores = jnp.einsum("bthk,bshk->bhts", q, k) / self.size**0.5
        scores = jnp.where(kept, scores, -1e30)
        weights = jax.nn.softmax(scores, axis=-1)
        y = jnp.einsum("bhts,bshk->bthk", weights, v)
        return self.o_proj(y.reshape(*x.shape[:2], -1))


class MLP(nnx.Module):
    def __init__(self, c, rngs):
        kind = {"use_bias": False, "rngs": rngs, **KIND}
        wide = c["hidden_size"], c["intermediate_size"]
        self.gate_proj = nnx.Linear(*wide, **kind)
        self.up_proj = nnx.Linear(*wide, **kind)
        self.down_proj = nnx.Linear(*wide[::-1], **kind)

    def __call__(self, x):
        return self.down_proj(jax.nn.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nnx.Module):
    def __init__(self, c, rngs):
        self.input_layernorm = RMSNorm(c["hidden_size"], rngs)
        self.self_attn = Attention(c, rngs)
        self.post_attention_layernorm = RMSNorm(c["hidden_size"], rngs)
        self.mlp = MLP(c, rngs)

    def __call__(self, x, kept):
        x = x + self.self_attn(self.input_layernorm(x), kept)
        return x + self.mlp(self.post_attention_layernorm(x))


class Qwen3(nnx.Module):
    def __init__(self, c, rngs):
        self.embed_tokens = nnx.Embed(
            c["vocab_size"], c["hidden_size"], rngs=rngs, **KIND)
        self.layers = nnx.List([
            Layer(c, rngs) for _ in range(c["num_hidden_layers"])])
        self.norm = RMSNorm(c["hidden_size"], rngs)
        self.lm_head = nnx.Linear(
            c["hidden_size"], c["vocab_size"], use_bias=False, rngs=rngs,
            **KIND)

    def __call__(self, ids, mask):
        length = ids.shape[1]
        kept = jnp.tril(jnp.ones((length, length), bool))[None, None]
        kept = kept & (mask[:, None, None] > 0)
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x, kept)
        return self.lm_head(self.norm(x))


def build(arrays, config):
    """The model with torch's arrays."""
    return into_nnx(Qwen3(config, nnx.Rngs(0)), arrays, [(r"^model\.", "")])
