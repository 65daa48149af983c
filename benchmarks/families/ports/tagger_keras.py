"""The tagger in Keras; its GRU has its gates in another order."""

import keras
import numpy as np
from keras import layers, ops

KIND = {"dtype": "float64"}


class Tagger(keras.Model):
    def __init__(self, c):
        super().__init__(**KIND)
        width = c["width"]
        self.words = layers.Embedding(29, width, **KIND)
        self.forth = layers.LSTM(width, return_sequences=True, **KIND)
        self.back = layers.LSTM(
            width, return_sequences=True, go_backwards=True, **KIND)
        self.gru = layers.GRU(width, return_sequences=True, **KIND)
        self.head = layers.Dense(7, **KIND)

    def call(self, ids):
        x = self.words(ids)
        x = ops.concatenate(
            [self.forth(x), ops.flip(self.back(x), axis=1)], -1)
        y = self.gru(x)
        return self.head(ops.concatenate([x, y], -1)), y[:, -1]


def reordered(x, *order):
    """Rows of gates in another order."""
    gates = np.split(x, len(order))
    return np.concatenate([gates[i] for i in order])


def build(arrays, config):
    """The model with torch's arrays."""
    model = Tagger(config)
    model(ops.zeros((1, 9), "int64"))
    model.words.set_weights([arrays["words.weight"]])
    model.head.set_weights([arrays["head.weight"].T, arrays["head.bias"]])
    for layer, end in ((model.forth, "l0"), (model.back, "l0_reverse")):
        layer.set_weights([
            arrays[f"lstm.weight_ih_{end}"].T,
            arrays[f"lstm.weight_hh_{end}"].T,
            arrays[f"lstm.bias_ih_{end}"] + arrays[f"lstm.bias_hh_{end}"]])
    one, two, three, four = (reordered(arrays[f"gru.{name}_l0"], 1, 0, 2)
                             for name in ("weight_ih", "weight_hh",
                                          "bias_ih", "bias_hh"))
    model.gru.set_weights([one.T, two.T, np.stack([three, four])])
    return model
