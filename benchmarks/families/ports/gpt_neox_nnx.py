"""GPT-NeoX in Flax NNX: parallel residuals, partial rotary, packed heads."""

import jax
import jax.numpy as jnp
from flax import nnx

from benchmarks.families.drawing import into_nnx

jax.config.update("jax_enable_x64", True)
KIND = {"param_dtype": jnp.float64}


def rotate(x, part):
    """Rotary positions of the first numbers of each head [B H T K]."""
    size = int(x.shape[-1] * part)
    frequencies = 1 / 10000 ** (jnp.arange(0, size, 2) / size)
    angles = jnp.arange(x.shape[2])[:, None] * frequencies
    cos = jnp.cos(jnp.concatenate([angles, angles], -1))
    sin = jnp.sin(jnp.concatenate([angles, angles], -1))
    turned, kept = x[..., :size], x[..., size:]
    one, two = jnp.split(turned, 2, -1)
    turned = turned * cos + jnp.concatenate([-two, one], -1) * sin
    return jnp.concatenate([turned, kept], -1)


class Attention(nnx.Module):
    def __init__(self, c, rngs):
        width = c["hidden_size"]
        self.query_key_value = nnx.Linear(
            width, 3 * width, rngs=rngs, **KIND)
        self.dense = nnx.Linear(width, width, rngs=rngs, **KIND)
        self.heads, self.part = c["num_attention_heads"], 0.5

    def __call__(self, x, kept):
        rows, length, width = x.shape
        packed = self.query_key_value(x).reshape(rows, length, self.heads, -1)
        q, k, v = jnp.split(packed.transpose(0, 2, 1, 3), 3, -1)
        q, k = rotate(q, self.part), rotate(k, self.part)
        scores = q @ k.transpose(0, 1, 3, 2) * q.shape[-1] ** -0.5
        weights = jax.nn.softmax(jnp.where(kept, scores, -1e30), -1)
        y = (weights @ v).transpose(0, 2, 1, 3).reshape(rows, length, width)
        return self.dense(y)


class MLP(nnx.Module):
    def __init__(self, c, rngs):
        wide = c["hidden_size"], c["intermediate_size"]
        self.dense_h_to_4h = nnx.Linear(*wide, rngs=rngs, **KIND)
        self.dense_4h_to_h = nnx.Linear(*wide[::-1], rngs=rngs, **KIND)

    def __call__(self, x):
        x = jax.nn.gelu(self.dense_h_to_4h(x), approximate=False)
        return self.dense_4h_to_h(x)


def norm(c, rngs):
    """A layer norm."""
    return nnx.LayerNorm(c["hidden_size"], epsilon=1e-5, rngs=rngs,
                         use_fast_variance=False, **KIND)


class Layer(nnx.Module):
    def __init__(self, c, rngs):
        self.input_layernorm = norm(c, rngs)
        self.post_attention_layernorm = norm(c, rngs)
        self.attention = Attention(c, rngs)
        self.mlp = MLP(c, rngs)

    def __call__(self, x, kept):
        y = self.attention(self.input_layernorm(x), kept)
        z = self.mlp(self.post_attention_layernorm(x))
        return x + y + z


class GPTNeoX(nnx.Module):
    def __init__(self, c, rngs):
        self.embed_in = nnx.Embed(
            c["vocab_size"], c["hidden_size"], rngs=rngs, **KIND)
        self.layers = nnx.List([
            Layer(c, rngs) for _ in range(c["num_hidden_layers"])])
        self.final_layer_norm = norm(c, rngs)
        self.lm_head = nnx.Linear(
            c["hidden_size"], c["vocab_size"], use_bias=False, rngs=rngs,
            **KIND)

    def __call__(self, ids, mask):
        length = ids.shape[1]
        kept = jnp.tril(jnp.ones((length, length), bool)) & (
            mask[:, None, None] > 0)
        x = self.embed_in(ids)
        for layer in self.layers:
            x = layer(x, kept)
        return self.lm_head(self.final_layer_norm(x))


def build(arrays, config):
    """The model with torch's arrays."""
    return into_nnx(GPTNeoX(config, nnx.Rngs(0)), arrays, [
        (r"^gpt_neox\.", "")])
