"""Compiled Keras models, beside themselves."""

import keras
from keras import layers
from keras.optimizers import SGD, Adam, AdamW

from benchmarks.training_steps.pair import fault, sound
from benchmarks.training_steps.ported import in_keras


def of(kind, *rate, **settings):
    """A compiled model with one of Keras' optimisers."""
    return in_keras(lambda: kind(*rate or (1e-2,), **settings))


@fault("ε", at="weights")
def eps():
    return of(Adam), of(Adam, epsilon=1e-3)


@fault("clipping of the gradient", at="clipped gradients")
def clipnorm():
    return of(Adam, global_clipnorm=0.1), of(Adam, clipnorm=0.1)


@fault("learning rate", at="learning rate")
def default_rate():
    return of(SGD), in_keras(lambda: SGD(0.1))


@fault("weight decay", at="weights")
def decay():
    return of(AdamW), of(AdamW, weight_decay=0.1)


@fault("parameters frozen", at="gradients")
def frozen():
    return of(Adam), in_keras(lambda: Adam(1e-2), frozen=True)


@fault("kind of the loss", at="loss")
def absolute_errors():
    return of(SGD), in_keras(lambda: SGD(1e-2), "mae")


@fault("momentum of the running statistics", at="running statistics")
def momentum_of_the_norm():
    def norm(momentum):
        return lambda: (layers.BatchNormalization(
            momentum=momentum, dtype="float64"),)
    return (in_keras(lambda: SGD(1e-2), more=norm(0.99)),
            in_keras(lambda: SGD(1e-2), more=norm(0.9)))


@sound()
def same():
    return of(Adam), of(Adam)


@sound()
def loss_as_an_object():
    return of(Adam), in_keras(lambda: Adam(1e-2),
                              keras.losses.MeanSquaredError())


@sound(narrow=True)
def adamw_without_decay():
    return of(Adam), of(AdamW, weight_decay=0.0)


@sound(steps=2)
def accumulated():
    def make():
        return in_keras(lambda: SGD(
            1e-2, gradient_accumulation_steps=2), accumulate=2)()
    return make, make
