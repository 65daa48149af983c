"""ESM 2 in Flax NNX: pre-norm, rotary, masked tokens scaled."""

import jax
import jax.numpy as jnp
from flax import nnx

from benchmarks.families.drawing import into_nnx

jax.config.update("jax_enable_x64", True)
KIND = {"param_dtype": jnp.float64}


def norm(c, rngs):
    """A layer norm."""
    return nnx.LayerNorm(c["hidden_size"], epsilon=1e-5, rngs=rngs,
                         use_fast_variance=False, **KIND)


def rotate(x):
    """Rotary positions of [B H T K], in halves."""
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[2])[:, None] * (
        10000.0 ** (-jnp.arange(half) / half))
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    one, two = x[..., :half], x[..., half:]
    return jnp.concatenate(
        [one * cos - two * sin, two * cos + one * sin], -1)


class Attention(nnx.Module):
    def __init__(self, c, rngs):
        width, self.heads = c["hidden_size"], c["num_attention_heads"]
        kind = {"rngs": rngs, **KIND}
        self.query = nnx.Linear(width, width, **kind)
        self.key = nnx.Linear(width, width, **kind)
        self.value = nnx.Linear(width, width, **kind)
        self.out = nnx.Linear(width, width, **kind)

    def __call__(self, x, kept):
        def split(y):
            return y.reshape(*x.shape[:2], self.heads, -1).swapaxes(1, 2)
        q, k, v = (split(part(x)) for part in (
            self.query, self.key, self.value))
        q = rotate(q * q.shape[-1] ** -0.5)
        scores = jnp.where(kept, q @ rotate(k).swapaxes(-1, -2), -1e30)
        y = jax.nn.softmax(scores, -1) @ v
        return self.out(y.swapaxes(1, 2).reshape(x.shape))


class Layer(nnx.Module):
    def __init__(self, c, rngs):
        wide = c["hidden_size"], c["intermediate_size"]
        self.norm1, self.norm2 = norm(c, rngs), norm(c, rngs)
        self.attention = Attention(c, rngs)
        self.fc1 = nnx.Linear(*wide, rngs=rngs, **KIND)
        self.fc2 = nnx.Linear(*wide[::-1], rngs=rngs, **KIND)

    def __call__(self, x, kept):
        x = x + self.attention(self.norm1(x), kept)
        y = jax.nn.gelu(self.fc1(self.norm2(x)), approximate=False)
        return x + self.fc2(y)


class Esm(nnx.Module):
    def __init__(self, c, rngs):
        self.words = nnx.Embed(
            c["vocab_size"], c["hidden_size"], rngs=rngs, **KIND)
        self.layers = nnx.List([
            Layer(c, rngs) for _ in range(c["num_hidden_layers"])])
        self.norm = norm(c, rngs)
        self.masked = c["mask_token_id"]

    def __call__(self, ids, mask):
        hidden = (ids == self.masked)
        x = jnp.where(hidden[..., None], 0.0, self.words(ids))
        share = hidden.sum(-1) / mask.sum(-1)
        x = x * (1 - 0.15 * 0.8) / (1 - share)[:, None, None]
        x = x * mask[..., None]
        kept = mask[:, None, None] > 0
        for layer in self.layers:
            x = layer(x, kept)
        return self.norm(x)


#: The library's parts -> ours.
NAMES = [("embeddings.word_embeddings", "words"),
         ("encoder.layer", "layers"), ("attention.LayerNorm", "norm1"),
         ("attention.self", "attention"),
         ("attention.output.dense", "attention.out"),
         ("LayerNorm", "norm2"), ("intermediate.dense", "fc1"),
         (r"(\d).output.dense", r"\1.fc2"),
         ("encoder.emb_layer_norm_after", "norm")]


def build(arrays, config):
    """The model with torch's arrays."""
    return into_nnx(Esm(config, nnx.Rngs(0)), arrays, NAMES)
