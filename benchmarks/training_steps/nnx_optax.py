"""Flax NNX with Optax, beside itself."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from benchmarks.training_steps.pair import fault, sound
from benchmarks.training_steps.ported import in_nnx, squares


def warm(first):
    """Adam whose rate grows by its step, counted from ``first``."""
    return optax.adam(lambda count: 1e-2 * (count + first) / 4)


def looped(tx, compiled=True):
    """The user's own compiled step in a loop."""
    def make():
        training = in_nnx(tx)()
        model = training.model
        optimizer = nnx.Optimizer(model, tx, wrt=nnx.Param)

        def train_step(model, optimizer, x, target):
            loss, gradients = nnx.value_and_grad(
                lambda model: squares(model(x), target))(model)
            optimizer.update(model, gradients)
            return loss
        step = nnx.jit(train_step) if compiled else train_step

        def loop():
            for x, target in training.batches:
                step(model, optimizer, x, target)
        return model, loop
    return make


@fault("ε", at="weights")
def eps():
    return in_nnx(optax.adam(1e-2)), in_nnx(optax.adam(1e-2, eps=1e-7))


@fault("place of ε", at="weights")
def eps_root():
    return (in_nnx(optax.adam(1e-2)),
            in_nnx(optax.adam(1e-2, eps=0.0, eps_root=1e-8)))


@fault("kind of weight decay", at="moments")
def decay_before_adam():
    return in_nnx(optax.adamw(1e-2, weight_decay=0.1)), in_nnx(optax.chain(
        optax.add_decayed_weights(0.1), optax.adam(1e-2)))


@fault("weight decay", at="weights")
def decay_of_biases():
    def kernels(params):
        return jax.tree.map(lambda array: array.ndim > 1, params)
    return (in_nnx(optax.adamw(1e-2, weight_decay=0.1, mask=kernels)),
            in_nnx(optax.adamw(1e-2, weight_decay=0.1)))


@fault("schedule off by one step", at="learning rate")
def schedule():
    return in_nnx(warm(1)), in_nnx(warm(2))


@fault("clipping of the gradient", at="clipped gradients")
def clip_by_value():
    return (in_nnx(optax.chain(optax.clip_by_global_norm(0.1),
                               optax.adam(1e-2))),
            in_nnx(optax.chain(optax.clip(0.1), optax.adam(1e-2))))


@fault("dropout", at="loss")
def dropout():
    def dropping(rate):
        return lambda: (nnx.Dropout(rate, rngs=nnx.Rngs(1)),)
    return (in_nnx(optax.sgd(1e-2), more=dropping(0.0)),
            in_nnx(optax.sgd(1e-2), more=dropping(0.3)))


@fault("mean of the loss", at="loss")
def sum_of_squares():
    return in_nnx(optax.sgd(1e-3)), in_nnx(
        optax.sgd(1e-3), lambda y, t: jnp.sum((y - t)**2))


@sound()
def adam_from_its_parts():
    return in_nnx(optax.adam(1e-2)), in_nnx(optax.chain(
        optax.scale_by_adam(), optax.scale(-1e-2)))


@sound()
def loop_of_a_compiled_step():
    return in_nnx(optax.adam(1e-2)), looped(optax.adam(1e-2))


@sound()
def compiled_or_not():
    return looped(optax.sgd(1e-2, 0.9)), looped(optax.sgd(1e-2, 0.9), False)


@sound(steps=2, narrow=True)
def multi_steps():
    def twice():
        training = in_nnx(optax.MultiSteps(
            optax.adam(1e-2), 2).gradient_transformation())()
        training.accumulate = 2
        return training

    def joined():
        training = in_nnx(optax.adam(1e-2))()
        training.accumulate = 2
        return training
    return joined, twice


@sound()
def loss_of_the_model():
    def make():
        training = in_nnx(optax.adam(1e-2))()
        training.loss = lambda model, x, t: squares(model(x), t)
        return training
    return in_nnx(optax.adam(1e-2)), make
