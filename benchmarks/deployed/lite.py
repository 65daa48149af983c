"""LiteRT files of a small Keras model, right or with one setting otherwise."""

import functools
import os
import pathlib
import tempfile

import numpy as np

from benchmarks.deployed.case import DeployedCase
from benchmarks.deployed.sides import asked

KIND, D, H = "litert", 16, 4

#: What is right.
USUAL = {"epsilon": 1e-5, "scale": 0.5, "axis": -1, "residual": True,
         "activation": "gelu", "factor": 1.0, "causal": False,
         "pool": "mean", "log": False, "bound": 9.0, "kernel": "same",
         "swap": False, "offset": 0.0}

#: Faults: what is otherwise, and an expression that the place has.
FAULTS = {
    "epsilon": {"epsilon": 1e-2}, "scale": {"scale": 0.25},
    "no scale": {"scale": 1.0}, "softmax over heads": {"axis": 1},
    "softmax over queries": {"axis": -2}, "no residual": {"residual": False},
    "tanh gelu": {"activation": "gelu_tanh"}, "relu": {"activation": "relu"},
    "silu": {"activation": "silu"}, "elu": {"activation": "elu"},
    "factor": {"factor": 0.5}, "causal": {"causal": True},
    "maximum": {"pool": "max"}, "first": {"pool": "first"},
    "last": {"pool": "last"}, "log softmax": {"log": True},
    "bound": {"bound": 0.1}, "causal padding": {"kernel": "causal"},
    "query for key": {"swap": True}, "offset": {"offset": 0.01},
    "small offset": {"offset": 1e-3}, "small epsilon": {"epsilon": 1e-3},
    "small factor": {"factor": 0.99}, "small scale": {"scale": 0.49},
    "leaky": {"activation": "leaky_relu"}}

#: The first layer that shows a fault, by what is otherwise.
PLACES = {
    "kernel": "conv", "epsilon": "norm1", "scale": r"\bo$", "axis": r"\bo$",
    "causal": r"\bo$", "swap": r"\bo$", "residual": "norm2",
    "activation": "inner|outer", "factor": "head", "offset": "head",
    "pool": "head", "log": "model", "bound": "model"}

#: Sound ways to set it.
SOUND = {"usual": {}, **{
    name: each for name, each in FAULTS.items()
    if name not in ("tanh gelu",)}, "causal, relu": {
        "causal": True, "activation": "relu"}}


def net(**s):
    """The model, built."""
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    import keras
    from keras import layers, ops
    s = USUAL | s

    class LiteNet(keras.Model):
        """A convolution, attention and a feed-forward layer."""

        def __init__(self):
            super().__init__()
            self.conv = layers.Conv1D(D, 3, padding=s["kernel"])
            self.norm1, self.norm2 = (
                layers.LayerNormalization(epsilon=s["epsilon"])
                for _ in range(2))
            self.q, self.k, self.v, self.o = (layers.Dense(D)
                                              for _ in range(4))
            self.inner, self.outer, self.head = (
                layers.Dense(2 * D), layers.Dense(D), layers.Dense(5))

        def call(self, x):
            x = self.conv(x)
            h = self.norm1(x)
            q, k, v = (ops.transpose(ops.reshape(
                each(h), (-1, x.shape[1], H, D // H)), (0, 2, 1, 3))
                for each in (self.q, self.k, self.v))
            if s["swap"]:
                q, k = k, q
            scores = ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))) * (
                s["scale"])
            if s["causal"]:
                scores = scores + np.triu(np.full(
                    (x.shape[1],) * 2, -1e9, "float32"), 1)
            y = ops.matmul(ops.softmax(scores, s["axis"]), v)
            y = self.o(ops.reshape(ops.transpose(
                y, (0, 2, 1, 3)), (-1, x.shape[1], D)))
            x = x + y if s["residual"] else y
            h = self.inner(self.norm2(x))
            h = (ops.gelu(h, approximate=s["activation"] == "gelu_tanh")
                 if "gelu" in s["activation"]
                 else getattr(ops, s["activation"])(h))
            x = x + self.outer(h) * s["factor"] + s["offset"]
            x = {"mean": lambda: ops.mean(x, 1), "max": lambda: ops.max(x, 1),
                 "first": lambda: x[:, 0], "last": lambda: x[:, -1]}[
                     s["pool"]]()
            x = self.head(x)
            x = ops.log_softmax(x) if s["log"] else x
            return ops.clip(x, -s["bound"], s["bound"])

    keras.utils.set_random_seed(0)
    model = LiteNet()
    model(inputs()[0])
    draw = np.random.default_rng(1)
    model.set_weights([
        draw.normal(0, 0.4, each.shape) if each.ndim > 1
        else draw.normal(1 if "gamma" in name else 0, 0.2, each.shape)
        for name, each in zip((w.path for w in model.weights),
                              model.get_weights())])
    return model


def inputs():
    """A sequence of vectors."""
    return (np.random.default_rng(2).normal(size=(2, 7, 6)).astype(
        "float32"),)


def live(**s):
    """The model as it is."""
    return net(**s), inputs(), {}


def converted(**s):
    """The path of its LiteRT file."""
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import (
        convert_variables_to_constants_v2)
    model = net(**s)

    @tf.function(input_signature=[tf.TensorSpec((2, 7, 6), tf.float32)])
    def run(x):
        return model(x)
    frozen = convert_variables_to_constants_v2(run.get_concrete_function())
    content = tf.lite.TFLiteConverter.from_concrete_functions(
        [frozen]).convert()
    path = pathlib.Path(tempfile.mkdtemp()) / "model.tflite"
    path.write_bytes(content)
    return path


def cases():
    """Every DeployedCase: of LiteRT inner outputs are seen, not operations,
    so that the first layer that shows a fault is told, and no cause."""
    for name, s in FAULTS.items():
        yield DeployedCase(KIND, f"LiteRT: {name}", functools.partial(
            asked, live, functools.partial(converted, **s), True), ".",
            PLACES[next(iter(s))])
    for name, s in SOUND.items():
        yield DeployedCase(KIND, f"LiteRT: {name}", functools.partial(
            asked, functools.partial(live, **s), functools.partial(
                converted, **s), True))
