"""A U-Net of a diffusion model."""

import numpy as np

from benchmarks.families.fault import (
    BIAS, ORDER, RESIDUAL, SCALE, either, number)
from benchmarks.families.hugging import OurPort, OwnOriginal

CONFIG = {"width": 8, "timed": 12}


def noisy():
    """Images of 8 by 8, and times."""
    rng = np.random.default_rng(3)
    return {"x": rng.normal(size=(2, 3, 8, 8)),
            "time": np.array([3, 410], np.int64)}


UNET = OwnOriginal("unet", "unet_torch", "Model", CONFIG, noisy)
KERAS = OurPort("unet", "unet_keras", UNET.plain, lambda: [
    np.moveaxis(noisy()["x"], 1, -1), noisy()["time"]], CONFIG, "keras")

SINES = r"\bsin|\bcos|order|concat|halves|exchang|swap"
GROUPS = r"group|norm|@norm"


def originals():
    """Faults in copies of the original."""
    of = UNET.fault
    yield of("sines before cosines", (SINES,), (
        "[angles.cos(), angles.sin()]", "[angles.sin(), angles.cos()]"))
    yield of("frequencies over half - 1", (
        r"frequenc|table|ratio|divided|half|\b[34]\b§/|div",), (
        "dtype=torch.float64) / half)", "dtype=torch.float64) / (half - 1))"))
    yield of("scale and shift exchanged", (
        r"exchang|swap|order|halves§chunk|split|\[",), (
        "scale, shift = self.time", "shift, scale = self.time"))
    yield of("scale without 1 +", (r"\b1\b",), (
        "(1 + scale[..., None, None])", "scale[..., None, None]"))
    yield of("scaled before the norm", (
        r"@norm|before|order|place|input",), (
        "y = self.norm2(y) * (1 + scale[..., None, None])",
        "y = self.norm2(y * (1 + scale[..., None, None]))"))
    yield of("eight groups", (GROUPS, r"\b8\b|groups?"), (
        "self.norm2 = nn.GroupNorm(4, width", "self.norm2 = nn.GroupNorm(8, "
        "width"))
    yield of("ε 1e-5", (number(1e-6), number(1e-5)), (
        "self.norm = nn.GroupNorm(4, width, eps=1e-6)\n        self.last",
        "self.norm = nn.GroupNorm(4, width)\n        self.last"))
    yield of("time without silu", (r"silu|swish|activation|sigmoid",), (
        "self.time(functional.silu(time))", "self.time(time)"))
    yield of("skip from the wrong block", (
        r"skip|concat|input|order|@down|@first",), (
        "torch.cat([self.up(x), one], 1)",
        "torch.cat([self.up(x), self.first.bias[:, None, None] + 0 * "
        "one], 1)"))
    yield of("concatenated the other way", (ORDER + "|concat|cat",), (
        "torch.cat([x, two], 1)", "torch.cat([two, x], 1)"))
    yield of("bilinear, not nearest", (
        r"bilinear|nearest|interpol|upsampl|resiz",), (
        'scale_factor=2.0, mode="nearest")',
        'scale_factor=2.0, mode="bilinear")'))
    yield of("heads and features in qkv exchanged", (ORDER,), (
        "unflatten(1, (3, self.heads, -1)).unbind(1)",
        "unflatten(1, (self.heads, 3, -1)).unbind(2)"))
    yield of("attention's residual from the norm", (
        either(RESIDUAL, "input"), "@norm"), (
        "return x + self.out", "return self.norm(x) + self.out"))


def ports():
    """Faults in a port to Keras."""
    of = KERAS.fault
    yield of("Keras' default ε", (number(1e-6), number(1e-3)), (
        "GroupNormalization(4, epsilon=1e-6, **KIND)",
        "GroupNormalization(4, **KIND)"))
    yield of("half padded as TensorFlow pads", (
        r"padd?|same|valid|shift|stride",), (
        "self.pad = layers.ZeroPadding2D(1, **KIND)",
        "self.pad = layers.Identity(**KIND)"), (
        "layers.Conv2D(width, 3, strides=2, **KIND)",
        'layers.Conv2D(width, 3, strides=2, padding="same", **KIND)'))
    yield of("two groups", (GROUPS, r"\b2\b|groups?"), (
        "layers.GroupNormalization(4,", "layers.GroupNormalization(2,"))
    yield of("scale and shift exchanged", (
        r"exchang|swap|order|halves§split|\[",), (
        "scale, shift = ops.split", "shift, scale = ops.split"))
    yield of("scale without 1 +", (r"\b1\b",), (
        "* (1 + scale) + shift", "* scale + shift"))
    yield of("no shift", (r"shift|summand|added|unused§\+",), (
        "* (1 + scale) + shift", "* (1 + scale)"))
    yield of("time times 1000", (SCALE, number(1000, 1e-3)), (
        'ops.cast(time, "float64")[:, None]',
        '1000 * ops.cast(time, "float64")[:, None]'))
    yield of("scores not scaled", (SCALE,), (
        ", k) * q.shape[-1] ** -0.5", ", k)"))
    yield of("places by columns", (ORDER,), (
        "places = ops.reshape(self.norm(x), (rows, -1, width))",
        "places = ops.reshape(ops.transpose(\n"
        "            self.norm(x), (0, 2, 1, 3)), (rows, -1, width))"))
    yield of("gelu for silu", ("gelu|erf|tanh", "silu|swish|sigmoid"), (
        "return self.last(ops.silu(", "return self.last(ops.gelu("))
    yield of("last norm forgotten", ("norm",), (
        "self.last(ops.silu(self.norm(x)))", "self.last(ops.silu(x))"),
        within=True)
    yield of("skip's bias", (BIAS,), (
        "self.skip = conv(width, 1)",
        "self.skip = conv(width, 1, use_bias=False)"), within=True)


def pairs():
    """All of them."""
    other = UNET.fault("sound: enlarged by repeating", (), (
        'functional.interpolate(x, scale_factor=2.0, mode="nearest")',
        "x.repeat_interleave(2, 2).repeat_interleave(2, 3)"))
    return [UNET.sound(), other, KERAS.sound(), *originals(), *ports()]
