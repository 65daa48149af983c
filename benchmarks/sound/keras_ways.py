"""Recurrent layers of Keras, and other ways to run and to build."""

import math

import keras
import tensorflow as tf
from keras import layers, ops

from benchmarks.sound.keras_parts import (
    Attention, Block, D, F, Mlp, Model, V, functional, gelu, norm)
from benchmarks.sound.pair import sound
from benchmarks.sound.weights import normal, tokens, twins

IDS, S = tokens(2, 7), 6


def tagger(rnn):
    """Embedding, a recurrent layer and a head."""
    return keras.Sequential([layers.Embedding(V, D), rnn, layers.Dense(3)])


class Loop(layers.Layer):
    """A loop over a cell; the last step's output."""

    def __init__(self, cell, states):
        super().__init__()
        self.cell, self.states = cell, states

    def call(self, x):
        states = [ops.zeros((x.shape[0], S), x.dtype)] * self.states
        for t in range(x.shape[1]):
            y, states = self.cell(x[:, t], states)
        return y


@sound
def keras_lstm_by_cells():
    """layers.LSTM in a, a loop over its cell in b."""
    return twins(tagger(layers.LSTM(S)), tagger(Loop(layers.LSTMCell(S), 2)),
                 IDS)


@sound
def keras_gru_by_cells():
    """layers.GRU in a, a loop over its cell in b."""
    return twins(tagger(layers.GRU(S)), tagger(Loop(layers.GRUCell(S), 1)),
                 IDS)


@sound
def keras_lstm_by_hand():
    """layers.LSTM in a, one product and four gates in b."""
    class Hand(layers.Layer):
        def __init__(self):
            super().__init__()
            self.kernel = self.add_weight(shape=(D, 4 * S), name="kernel")
            self.recurrent = self.add_weight(shape=(S, 4 * S),
                                             name="recurrent_kernel")
            self.bias = self.add_weight(shape=(4 * S,), name="bias")

        def call(self, x):
            h = c = ops.zeros((x.shape[0], S), x.dtype)
            for t in range(x.shape[1]):
                i, f, g, o = ops.split(
                    x[:, t] @ self.kernel + h @ self.recurrent + self.bias,
                    4, -1)
                c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
                h = ops.sigmoid(o) * ops.tanh(c)
            return h
    return twins(tagger(layers.LSTM(S)), tagger(Hand()), IDS)


@sound
def keras_bidirectional_as_two():
    """Bidirectional in a; two layers, one on flipped steps, in b."""
    class Two(layers.Layer):
        def __init__(self):
            super().__init__()
            self.one, self.two = layers.GRU(S), layers.GRU(S)

        def call(self, x):
            return ops.concatenate([self.one(x), self.two(ops.flip(x, 1))],
                                   -1)
    return twins(tagger(layers.Bidirectional(layers.GRU(S))), tagger(Two()),
                 IDS)


@sound
def keras_unrolled():
    """A while loop in a, unrolled in b."""
    return twins(tagger(layers.LSTM(S)), tagger(layers.LSTM(S, unroll=True)),
                 IDS)


@sound
def keras_time_distributed():
    """Dense on three axes in a, TimeDistributed in b."""
    class Timed(layers.Layer):
        def __init__(self):
            super().__init__()
            self.up = layers.TimeDistributed(layers.Dense(F, activation=gelu))
            self.down = layers.TimeDistributed(layers.Dense(D))

        def call(self, x):
            return self.down(self.up(x))
    return twins(Model(Block()), Model(Block(mlp=Timed())), IDS)


@tf.function
def first_of(x, kernel, bias):
    """The first of two layers, compiled to a graph."""
    return gelu(tf.linalg.matmul(x, kernel) + bias)


@sound
def keras_part_as_tf_function():
    """b's MLP runs a tf.function."""
    class Compiled(Mlp):
        def call(self, x):
            if not self.fc1.built:
                return super().call(x)
            return self.fc2(first_of(
                x, tf.convert_to_tensor(self.fc1.kernel),
                tf.convert_to_tensor(self.fc1.bias)))
    return twins(Model(Block()), Model(Block(mlp=Compiled())), IDS)


@sound
def keras_ops_or_tensorflow():
    """keras.ops in a, TensorFlow's own functions in b."""
    class Raw(Attention):
        def attend(self, q, k, v):
            scores = tf.linalg.matmul(q, k, transpose_b=True)
            scores /= tf.sqrt(tf.cast(q.shape[-1], q.dtype))
            mask = tf.linalg.band_part(tf.ones([q.shape[2]] * 2, q.dtype),
                                       -1, 0)
            weights = tf.nn.softmax(scores + (1 - mask) * -1e9)
            return tf.linalg.matmul(weights, v)
    return twins(Model(Block()), Model(Block(Raw())), IDS)


@sound
def keras_map_over_rows():
    """A batch at once in a, ops.vectorized_map in b."""
    class Rows(Mlp):
        def call(self, x):
            if not self.fc1.built:
                return super().call(x)
            return ops.vectorized_map(lambda row: gelu(
                row @ self.fc1.kernel + self.fc1.bias
            ) @ self.fc2.kernel + self.fc2.bias, x)
    return twins(Model(Block()), Model(Block(mlp=Rows())), IDS)


@sound
def keras_scan_or_loop():
    """A recurrence in a loop in a, by ops.scan in b."""
    class Decay(layers.Layer):
        def __init__(self, scan):
            super().__init__()
            self.rate, self.out, self.scan = layers.Dense(D), layers.Dense(
                3), scan

        def call(self, x):
            a = ops.sigmoid(self.rate(x))
            h = ops.zeros_like(x[:, 0])
            if self.scan:
                def step(h, each):
                    h = each[0] * h + each[1]
                    return h, h
                h, _ = ops.scan(step, h, (ops.swapaxes(a, 0, 1),
                                          ops.swapaxes(x, 0, 1)))
            else:
                for t in range(x.shape[1]):
                    h = a[:, t] * h + x[:, t]
            return self.out(h)
    return twins(Decay(False), Decay(True), normal(2, 5, D))


@sound
def keras_tuple_or_dictionary():
    """The outputs are a tuple in a, a dictionary in b."""
    class Finished(keras.Model):
        def __init__(self, named):
            super().__init__()
            self.inner, self.value, self.named = Model(Block()), layers.Dense(
                2), named

        def call(self, ids):
            logits = self.inner(ids)
            value = self.value(logits)
            return ({"logits": logits, "value": value} if self.named
                    else (logits, value))
    return twins(Finished(False), Finished(True), IDS)


@sound(dtype="float32 inside")
def keras_rescaling_or_product():
    """A Rescaling layer, whose factor is float32, in a; a product in b."""
    class Scaled(keras.Model):
        def __init__(self):
            super().__init__()
            self.table, self.block, self.fc = layers.Embedding(
                V, D), Block(), layers.Dense(3)

        def call(self, ids):
            return self.fc(self.block(self.table(ids) * math.sqrt(D)))
    return twins(keras.Sequential([
        layers.Embedding(V, D), layers.Rescaling(math.sqrt(D)), Block(),
        layers.Dense(3)]), Scaled(), IDS)


@sound
def keras_reversible_embedding():
    """ReversibleEmbedding in a; a product with the table in b."""
    class Tied(keras.Model):
        def __init__(self, library):
            super().__init__()
            self.embed = (layers.ReversibleEmbedding if library
                          else layers.Embedding)(V, D)
            self.block, self.norm, self.library = Block(), norm(), library

        def call(self, ids):
            x = self.norm(self.block(self.embed(ids)))
            if self.library:
                return self.embed(x, reverse=True)
            return ops.matmul(x, ops.transpose(self.embed.embeddings))
    return twins(Tied(True), Tied(False), IDS)


@sound
def keras_nested_models():
    """One functional model in a; models inside a model in b."""
    ids = keras.Input((7,), dtype="int64", batch_size=2)
    x = keras.Input((7, D), dtype="float64", batch_size=2)
    trunk = keras.Model(x, Block()(Block()(x)))
    embed = keras.Model(ids, layers.Embedding(V, D)(ids))
    head = keras.Sequential([norm(), layers.Dense(V, use_bias=False)])
    return twins(functional(Block(), Block()), keras.Model(
        ids, head(trunk(embed(ids)))), IDS)
