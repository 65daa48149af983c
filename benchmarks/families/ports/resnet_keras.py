"""ResNet with basic layers in Keras, channels last, padded as torch pads."""

import keras
from keras import layers

from benchmarks.families.drawing import into_keras

KIND = {"dtype": "float64"}


class ConvNorm(layers.Layer):
    """A convolution without bias, and a batch norm."""

    def __init__(self, width, size, stride, active=True):
        super().__init__(**KIND)
        self.pad = layers.ZeroPadding2D(size // 2, **KIND)
        self.convolution = layers.Conv2D(
            width, size, strides=stride, use_bias=False, **KIND)
        self.normalization = layers.BatchNormalization(
            epsilon=1e-5, **KIND)
        self.active = active

    def call(self, x):
        x = self.normalization(self.convolution(self.pad(x)))
        return keras.ops.relu(x) if self.active else x


class Basic(layers.Layer):
    """Two convolutions and what is left of the input."""

    def __init__(self, given, width, stride):
        super().__init__(**KIND)
        self.layer = [ConvNorm(width, 3, stride),
                      ConvNorm(width, 3, 1, active=False)]
        self.shortcut = None
        if given != width or stride != 1:
            self.shortcut = ConvNorm(width, 1, stride, active=False)

    def call(self, x):
        y = self.layer[1](self.layer[0](x))
        if self.shortcut is not None:
            x = self.shortcut(x)
        return keras.ops.relu(x + y)


class ResNet(keras.Model):
    def __init__(self, c):
        super().__init__(**KIND)
        self.stem = ConvNorm(c["embedding_size"], 7, 2)
        self.pool_pad = layers.ZeroPadding2D(1, **KIND)
        self.pool = layers.MaxPooling2D(3, 2, **KIND)
        self.blocks, given = [], c["embedding_size"]
        for stage, (width, depth) in enumerate(
                zip(c["hidden_sizes"], c["depths"])):
            for i in range(depth):
                stride = 2 if stage and not i else 1
                self.blocks.append(Basic(given, width, stride))
                given = width
        self.head = layers.Dense(c["num_labels"], **KIND)

    def call(self, x):
        x = self.pool(self.pool_pad(self.stem(x)))
        for block in self.blocks:
            x = block(x)
        return self.head(keras.ops.mean(x, (1, 2)))


#: The library's parts -> ours, of stages with one and with two layers.
NAMES = [(r"^resnet\.", ""), (r"^embedder.embedder", "stem"),
         (r"^encoder.stages.0.layers.0", "blocks.0"),
         (r"^encoder.stages.1.layers.0", "blocks.1"),
         (r"^encoder.stages.1.layers.1", "blocks.2"),
         (r"^classifier.1", "head")]


def build(arrays, config):
    """The model with torch's arrays."""
    model = ResNet(config)
    model(keras.ops.zeros((1, 20, 20, 3), "float64"))
    return into_keras(model, arrays, NAMES)
