"""ResNet, with its batch norms."""

import numpy as np

from benchmarks.families.fault import BIAS, RESIDUAL, number
from benchmarks.families.hugging import Original, OurPort, image

CONFIG = {"embedding_size": 8, "hidden_sizes": [8, 12], "depths": [1, 2],
          "layer_type": "basic", "num_labels": 5}
PIXELS = image(2, 3, 20, 20)
RESNET = Original("resnet", "resnet", "ResNetForImageClassification", (
    "ResNetConfig", CONFIG), PIXELS)
KERAS = OurPort("resnet", "resnet_keras", RESNET.plain, lambda: [np.moveaxis(
    PIXELS()["pixel_values"], 1, -1)], CONFIG, "keras")

PAD = r"padd?|same|valid|border|shift|stride"


def copies():
    """Faults in copies of the library's own file."""
    of = RESNET.fault
    yield of("batch norm ε 1e-3", (number(1e-5), number(1e-3)), (
        "self.normalization = nn.BatchNorm2d(out_channels)\n        "
        "self.activation",
        "self.normalization = nn.BatchNorm2d(out_channels, eps=1e-3)\n"
        "        self.activation"))
    yield of("statistics of the batch", (
        r"batch|training|running|statistic|\bmean",), (
        "hidden_states = self.normalization(hidden_states)",
        "hidden_states = nn.functional.batch_norm(hidden_states, None, None,\n"
        "            self.normalization.weight, self.normalization.bias, True)"
    ))
    yield of("residual behind the activation", (
        RESIDUAL, r"activation|relu|order|before|behind|after|place"), (
        "        hidden_state += residual\n"
        "        hidden_state = self.activation(hidden_state)",
        "        hidden_state = self.activation(hidden_state)\n"
        "        hidden_state = hidden_state + residual",
        "class ResNetBasicLayer"))
    yield of("second activation twice", ("activation|relu|max",), (
        "ResNetConvLayer(out_channels, out_channels, activation=None)",
        "ResNetConvLayer(out_channels, out_channels, activation=activation)"))
    yield of("max pool without padding", (PAD,), (
        "nn.MaxPool2d(kernel_size=3, stride=2, padding=1)",
        "nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True)"))
    yield of("max instead of mean at the end", (r"\bmax|mean|average|pool",
                                                r"\bmax|\bmean|average"), (
        "self.pooler = nn.AdaptiveAvgPool2d((1, 1))",
        "self.pooler = nn.AdaptiveMaxPool2d((1, 1))"))


def ports():
    """Faults in a port to Keras."""
    of = KERAS.fault
    yield of("batch norm's default ε", (number(1e-5), number(1e-3)), (
        "layers.BatchNormalization(\n            epsilon=1e-5, **KIND)",
        "layers.BatchNormalization(**KIND)"))
    yield of("padded as TensorFlow pads", (PAD,), (
        "self.pad = layers.ZeroPadding2D(size // 2, **KIND)",
        "self.pad = layers.Identity(**KIND)"), (
        "width, size, strides=stride, use_bias=False, **KIND)",
        'width, size, strides=stride, use_bias=False, padding="same", '
        "**KIND)"))
    yield of("max pool padded as TensorFlow pads", (PAD,), (
        "self.pool_pad = layers.ZeroPadding2D(1, **KIND)",
        "self.pool_pad = layers.Identity(**KIND)"), (
        "layers.MaxPooling2D(3, 2, **KIND)",
        'layers.MaxPooling2D(3, 2, padding="same", **KIND)'))
    yield of("running variance is the deviation", (
        r"variance|running|moving|square|√|sqrt|different",), change=(
        lambda arrays: {name: np.sqrt(x) if "running_var" in name else x
                        for name, x in arrays.items()}), at="normalization")
    yield of("kernels' axes exchanged", (
        r"transpos|order|axes|exchang|swap|kernel",), change=(
        lambda arrays: {
            name: x.swapaxes(2, 3) if x.ndim == 4 else x
            for name, x in arrays.items()}), at="convolution")
    yield of("stride in the second convolution", (r"stride|order|place",), (
        "ConvNorm(width, 3, stride),\n                      "
        "ConvNorm(width, 3, 1, active=False)]",
        "ConvNorm(width, 3, 1),\n                      "
        "ConvNorm(width, 3, stride, active=False)]"))
    yield of("no residual", (RESIDUAL,), (
        "return keras.ops.relu(x + y)", "return keras.ops.relu(y)"))
    yield of("images not turned to channels last", (
        r"transpos|order|axes|layout|channel|reshape",), (
        "    def call(self, x):\n        x = self.pool(",
        "    def call(self, x):\n        x = keras.ops.transpose(x, "
        "(0, 2, 1, 3))\n        x = self.pool("))
    yield of("head's bias forgotten", (BIAS,), (
        'layers.Dense(c["num_labels"], **KIND)',
        'layers.Dense(c["num_labels"], use_bias=False, **KIND)'), within=True)
    yield of("ε 1e-3", (number(1e-5), number(1e-3)), (
        "epsilon=1e-5", "epsilon=1e-3"), within=True)


def pairs():
    """All of them."""
    return [RESNET.sound(), KERAS.sound(), *copies(), *ports()]
