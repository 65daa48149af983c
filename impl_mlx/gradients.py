"""Gradients by a model's weights: MLX differentiates functions of arrays."""

import contextlib

import mlx.core as mx

from impl_mlx.parameters import leaves


def weights_of(model):
    """The arrays of a model's weights, in the order of ``leaves``."""
    return [weight.get() for weight in leaves(model)]


def set_weights(model, weights):
    """Put arrays into the places of a model's weights."""
    for old, weight in zip(leaves(model), weights):
        old.set(weight)


@contextlib.contextmanager
def standing_in(model, weights):
    """A model with other weights, for the duration of a ``with`` block."""
    before = weights_of(model)
    set_weights(model, weights)
    try:
        yield
    finally:
        set_weights(model, before)


def value_and_gradients(model, function):
    """What function() returns, a scalar, and its gradient by every weight.

    As nn.value_and_grad, but in the order of ``leaves``.
    """
    def of_weights(weights):
        with standing_in(model, weights):
            return function()

    return mx.value_and_grad(of_weights)(weights_of(model))
