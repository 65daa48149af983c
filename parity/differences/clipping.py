"""Known differences of optimisers: how gradients are clipped."""

import numpy as np

from parity.differences.asking import Effect, add, x64
from parity.differences.tensors import as_numpy, gap_of, jax_array, word


def _torch_clipped():
    import torch
    weights = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    weights.grad = torch.tensor([3.0, 4.0], dtype=torch.float64)
    torch.nn.utils.clip_grad_norm_([weights], 1.0)
    return weights.grad.norm().item()


def _tf_clipped():
    import tensorflow as tf
    clipped, _ = tf.clip_by_global_norm([np.array([3.0, 4.0])], 1.0)
    return float(np.linalg.norm(as_numpy(clipped[0])))


def _optax_clipped():
    import optax
    with x64(True):
        optimizer = optax.clip_by_global_norm(1.0)
        gradient = jax_array(np.array([3.0, 4.0]))
        return float(np.linalg.norm(as_numpy(optimizer.update(
            gradient, optimizer.init(gradient))[0])))


def _exactly_one(norm):
    return word(abs(norm - 1) < 1e-12, "1", "below 1")


add("norm_after_clipping", "optimiser",
    "The norm of a gradient clipped to 1: torch divides by the norm and 1e-6, "
    "so that it ends a little below.",
    {"torch": ("below 1", lambda: _exactly_one(_torch_clipped())),
     "tensorflow": ("1", lambda: _exactly_one(_tf_clipped())),
     "optax": ("1", lambda: _exactly_one(_optax_clipped()))},
    effect=Effect("torch's norm against 1", lambda: {
         "norm 5": 1 - _torch_clipped()}, hidden=("norm 5",),
         needs=("torch",)))


def _keras_clip_scope(**more):
    """Gradients 3 and 4 of two variables: clipped together or each."""
    import keras
    weights = [keras.Variable(np.zeros(1), dtype="float64") for _ in "12"]
    keras.optimizers.SGD(1.0, **more).apply(
        [keras.ops.convert_to_tensor(np.array([g])) for g in (3.0, 4.0)],
        weights)
    return tuple(float(-as_numpy(w)[0]) for w in weights)


def _torch_clip_scope():
    import torch
    weights = [torch.zeros(1, dtype=torch.float64, requires_grad=True)
               for _ in "12"]
    for weight, gradient in zip(weights, (3.0, 4.0)):
        weight.grad = torch.full((1,), gradient, dtype=torch.float64)
    torch.nn.utils.clip_grad_norm_(weights, 1.0)
    return tuple(w.grad.item() for w in weights)


add("clipping_scope", "optimiser",
    "Keras' clipnorm clips each variable's gradient by its own norm, which "
    "turns the whole; global_clipnorm clips all by one factor, as torch does. "
    "Here gradients 3 and 4 of two variables, clipped to 1.",
    {"torch clip_grad_norm_": ((0.6, 0.8), _torch_clip_scope),
     "keras clipnorm": ((1.0, 1.0), lambda: _keras_clip_scope(clipnorm=1.0)),
     "keras global_clipnorm": (
          (0.6, 0.8), lambda: _keras_clip_scope(global_clipnorm=1.0))},
    effect=Effect("each alone against all together", lambda: {
         "3 and 4": gap_of(_keras_clip_scope(clipnorm=1.0),
                           _keras_clip_scope(global_clipnorm=1.0))},
                  needs=("keras",)))
