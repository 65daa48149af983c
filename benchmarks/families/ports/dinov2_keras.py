"""DINOv2 in Keras, for images of 12 by 12 in patches of 4."""

import keras
from keras import layers, ops

from benchmarks.families.drawing import into_keras

KIND = {"dtype": "float64"}


def norm():
    """A layer norm."""
    return layers.LayerNormalization(epsilon=1e-6, **KIND)


class Attention(layers.Layer):
    def __init__(self, width, heads):
        super().__init__(**KIND)
        self.heads = heads
        self.q_proj = layers.Dense(width, **KIND)
        self.k_proj = layers.Dense(width, **KIND)
        self.v_proj = layers.Dense(width, **KIND)
        self.o_proj = layers.Dense(width, **KIND)

    def call(self, x):
        def split(y):
            y = ops.reshape(y, (*x.shape[:2], self.heads, -1))
            return ops.transpose(y, (0, 2, 1, 3))
        q, k, v = (split(part(x)) for part in (
            self.q_proj, self.k_proj, self.v_proj))
        scores = q @ ops.transpose(k, (0, 1, 3, 2)) * q.shape[-1] ** -0.5
        y = ops.softmax(scores, axis=-1) @ v
        y = ops.reshape(ops.transpose(y, (0, 2, 1, 3)), x.shape)
        return self.o_proj(y)


class Block(layers.Layer):
    def __init__(self, c):
        super().__init__(**KIND)
        width = c["hidden_size"]
        self.norm1, self.norm2 = norm(), norm()
        self.attention = Attention(width, c["num_attention_heads"])
        self.fc1 = layers.Dense(4 * width, **KIND)
        self.fc2 = layers.Dense(width, **KIND)
        self.scale1 = self.add_weight(shape=(width,), name="scale1")
        self.scale2 = self.add_weight(shape=(width,), name="scale2")

    def call(self, x):
        x = x + self.scale1 * self.attention(self.norm1(x))
        y = self.fc2(ops.gelu(self.fc1(self.norm2(x)), approximate=False))
        return x + self.scale2 * y


class Dinov2(keras.Model):
    def __init__(self, c):
        super().__init__(**KIND)
        width = c["hidden_size"]
        self.patches = layers.Conv2D(width, 4, strides=4, **KIND)
        self.cls_token = self.add_weight(shape=(1, 1, width), name="cls")
        self.places = self.add_weight(shape=(1, 10, width), name="places")
        self.blocks = [Block(c) for _ in range(c["num_hidden_layers"])]
        self.norm = norm()
        self.head = layers.Dense(c["num_labels"], **KIND)

    def call(self, x):
        x = self.patches(x)
        x = ops.reshape(x, (x.shape[0], -1, x.shape[-1]))
        first = ops.broadcast_to(self.cls_token, (x.shape[0], 1, x.shape[-1]))
        x = ops.concatenate([first, x], axis=1) + self.places
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        mean = ops.mean(x[:, 1:], axis=1)
        return self.head(ops.concatenate([x[:, 0], mean], axis=-1))


#: The library's parts -> ours.
NAMES = [(r"^dinov2\.", ""), ("embeddings.patch_embeddings.projection",
                              "patches"),
         ("embeddings.cls_token", "cls_token"),
         ("embeddings.position_embeddings", "places"),
         ("encoder.layer.", "blocks."), (r"mlp\.", ""),
         (r"layer_scale(.).lambda1", r"scale\1"), (r"^layernorm", "norm"),
         ("classifier", "head")]


def build(arrays, config):
    """The model with torch's arrays."""
    model = Dinov2(config)
    model(ops.zeros((1, 12, 12, 3), "float64"))
    return into_keras(model, arrays, NAMES)
