"""Gradients: Keras has none of its own, so its backend's are asked for."""

import keras


def by_tape(function, variables):
    """What value_and_gradients returns, by TensorFlow."""
    import tensorflow as tf
    with tf.GradientTape() as tape:
        value = function()
    gradients = tape.gradient(value, [v.value for v in variables])
    # keras: TensorFlow gives an embedding's as the rows that were looked up
    return value, [tf.convert_to_tensor(g) for g in gradients]


def by_autograd(function, variables):
    """The same by PyTorch."""
    import torch
    value = function()
    return value, torch.autograd.grad(value, [v.value for v in variables])


def by_trace(function, variables):
    """The same by JAX."""
    import jax

    def of_values(values):
        with keras.StatelessScope(zip(variables, values)):
            return function()

    return jax.value_and_grad(of_values)([v.value for v in variables])


GRADIENTS = {"tensorflow": by_tape, "torch": by_autograd, "jax": by_trace}


def value_and_gradients(function, variables):
    """What function() returns, a scalar, and its gradient by each variable."""
    return GRADIENTS[keras.backend.backend()](function, variables)
