"""PyTorch, Flax NNX, Keras and MLX beside each other."""

import functools

import jax.numpy as jnp
import optax
from flax import nnx
from keras import layers, optimizers
from torch import nn
from torch.optim import SGD, Adam, AdamW, lr_scheduler

from benchmarks.training_steps.pair import fault, sound
from benchmarks.training_steps.ported import in_keras, in_mlx, in_nnx
from benchmarks.training_steps.torch_parts import (
    BiasedBatchNorm, adam, by_hand, looped, net, regression)


def of(kind, rate=1e-2, **settings):
    """A regression with one of torch's optimisers."""
    return regression(lambda p: kind(p, rate, **settings))


@fault("place of ε", at="weights")
def adam_to_keras():
    return of(Adam, eps=1e-7), in_keras(lambda: optimizers.Adam(1e-2))


@fault("weight decay", at="weights")
def adamw_to_optax():
    return of(AdamW), in_nnx(optax.adamw(1e-2))


@fault("bias correction", at="weights")
def adam_to_mlx():
    return of(Adam), in_mlx(lambda own: own.Adam(1e-2))


@fault("clipping of the gradient", at="clipped gradients")
def clipping_to_keras():
    return (regression(lambda p: SGD(p, 1e-2), clip=0.1),
            in_keras(lambda: optimizers.SGD(1e-2, clipnorm=0.1)))


@fault("variance kept with the other denominator", at="running statistics")
def batch_norm_to_nnx():
    def norm():
        return (nnx.BatchNorm(12, momentum=0.9, use_fast_variance=False,
                              rngs=nnx.Rngs(0), param_dtype=jnp.float64),)
    return (regression(lambda p: SGD(p, 1e-2),
                       model=lambda: net(nn.BatchNorm1d(12))),
            in_nnx(optax.sgd(1e-2), more=norm))


@fault("learning rate", at="learning rate")
def sgd_to_keras():
    return of(SGD, 1e-3), in_keras(lambda: optimizers.SGD())


@fault("schedule off by one step", at="learning rate")
def schedule_to_optax():
    return (regression(lambda p: Adam(p, 1e-2), schedule=lambda own:
                       lr_scheduler.LambdaLR(own, lambda i: (i + 1) / 4)),
            in_nnx(optax.adam(lambda count: 1e-2 * count / 4)))


@sound()
def adam_to_optax():
    return of(Adam), in_nnx(optax.adam(1e-2))


@sound()
def adamw_settings_to_optax():
    return (of(AdamW, weight_decay=0.1),
            in_nnx(optax.adamw(1e-2, weight_decay=0.1)))


@sound()
def momentum_to_optax():
    return (of(SGD, momentum=0.9, nesterov=True),
            in_nnx(optax.sgd(1e-2, momentum=0.9, nesterov=True)))


@sound(narrow=True)
def schedule_to_optax_rightly():
    return (regression(lambda p: Adam(p, 1e-2), schedule=lambda own:
                       lr_scheduler.LinearLR(own, 0.1, 1, 4)),
            in_nnx(optax.adam(optax.linear_schedule(1e-3, 1e-2, 4))))


@sound(narrow=True)
def adam_by_hand_to_keras():
    return (looped(by_hand(functools.partial(
        adam, eps=1e-7, form="before"))),
        in_keras(lambda: optimizers.Adam(1e-2)))


@sound(narrow=True)
def momentum_to_keras():
    return (of(SGD, momentum=0.9),
            in_keras(lambda: optimizers.SGD(1e-2, momentum=0.9)))


@sound(narrow=True)
def sgd_to_mlx():
    return of(SGD), in_mlx(lambda own: own.SGD(1e-2))


@sound(narrow=True)
def adam_to_mlx_rightly():
    return of(Adam), in_mlx(lambda own: own.Adam(
        1e-2, bias_correction=True))


@sound(narrow=True)
def nnx_to_keras():
    return (in_nnx(optax.sgd(1e-2)),
            in_keras(lambda: optimizers.SGD(1e-2)))


@sound(narrow=True)
def biased_norm_to_nnx():
    def norm():
        return (nnx.BatchNorm(12, momentum=0.9, use_fast_variance=False,
                              rngs=nnx.Rngs(0), param_dtype=jnp.float64),)
    return (regression(lambda p: SGD(p, 1e-2),
                       model=lambda: net(BiasedBatchNorm(12))),
            in_nnx(optax.sgd(1e-2), more=norm))


@sound(narrow=True)
def biased_norm_to_keras():
    def norm():
        return (layers.BatchNormalization(momentum=0.9, epsilon=1e-5,
                                          dtype="float64"),)
    return (regression(lambda p: SGD(p, 1e-2),
                       model=lambda: net(BiasedBatchNorm(12))),
            in_keras(lambda: optimizers.SGD(1e-2), more=norm))
