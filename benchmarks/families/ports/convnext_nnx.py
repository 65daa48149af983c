"""ConvNeXt in Flax NNX, channels last."""

import jax
import jax.numpy as jnp
from flax import nnx

from benchmarks.families.drawing import into_nnx

jax.config.update("jax_enable_x64", True)
KIND = {"param_dtype": jnp.float64}


def norm(width, rngs, epsilon=1e-6):
    """A layer norm over channels."""
    return nnx.LayerNorm(width, epsilon=epsilon, rngs=rngs,
                         use_fast_variance=False, **KIND)


class Block(nnx.Module):
    def __init__(self, width, rngs):
        self.dwconv = nnx.Conv(
            width, width, (7, 7), padding=3, feature_group_count=width,
            rngs=rngs, **KIND)
        self.layernorm = norm(width, rngs)
        self.pwconv1 = nnx.Linear(width, 4 * width, rngs=rngs, **KIND)
        self.pwconv2 = nnx.Linear(4 * width, width, rngs=rngs, **KIND)
        self.layer_scale_parameter = nnx.Param(jnp.ones(width))

    def __call__(self, x):
        y = self.layernorm(self.dwconv(x))
        y = jax.nn.gelu(self.pwconv1(y), approximate=False)
        return x + self.layer_scale_parameter[...] * self.pwconv2(y)


class Down(nnx.Module):
    def __init__(self, given, width, size, rngs):
        self.norm = norm(given, rngs)
        self.conv = nnx.Conv(given, width, (size, size), (size, size),
                             padding="VALID", rngs=rngs, **KIND)

    def __call__(self, x):
        return self.conv(self.norm(x))


class ConvNext(nnx.Module):
    def __init__(self, c, rngs):
        one, two = c["hidden_sizes"]
        self.patches = nnx.Conv(3, one, (2, 2), (2, 2), rngs=rngs, **KIND)
        self.norm0 = norm(one, rngs)
        self.stage0 = nnx.List([Block(one, rngs)])
        self.down = Down(one, two, 2, rngs)
        self.stage1 = nnx.List([Block(two, rngs), Block(two, rngs)])
        self.norm1 = norm(two, rngs, 1e-12)
        self.head = nnx.Linear(two, c["num_labels"], rngs=rngs, **KIND)

    def __call__(self, x):
        x = self.norm0(self.patches(x))
        for block in self.stage0:
            x = block(x)
        x = self.down(x)
        for block in self.stage1:
            x = block(x)
        return self.head(self.norm1(x.mean((1, 2))))


#: The library's parts -> ours.
NAMES = [(r"^convnext\.", ""), ("embeddings.patch_embeddings", "patches"),
         ("embeddings.layernorm", "norm0"),
         (r"encoder.stages.(\d).layers", r"stage\1"),
         ("encoder.stages.1.downsampling_layer.0", "down.norm"),
         ("encoder.stages.1.downsampling_layer.1", "down.conv"),
         (r"^layernorm", "norm1"), ("classifier", "head")]


def build(arrays, config):
    """The model with torch's arrays."""
    return into_nnx(ConvNext(config, nnx.Rngs(0)), arrays, NAMES)
