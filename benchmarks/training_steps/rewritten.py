"""Sound trainings that are written in two ways: nothing may be said."""

import jax
import optax
import torch
from flax import nnx
from keras import losses as keras_losses
from keras import optimizers
from torch import nn
from torch.optim import SGD, Adagrad, Adam, AdamW, lr_scheduler

from benchmarks.training_steps.pair import sound
from benchmarks.training_steps.ported import in_keras, in_nnx, squares
from benchmarks.training_steps.torch_losses import entropy
from benchmarks.training_steps.torch_parts import (
    Tagger, batches, by_hand, fn, looped, net, regression, tagging, tensors,
    texts)
from parity.training.form import Training


def of(kind, rate=1e-2, loss=None, **settings):
    """A regression with one of torch's optimisers."""
    return regression(lambda p: kind(p, rate, **settings), loss)


def loop(body, kind=Adam, **settings):
    """A loop of one's own.

    Args:
        body: a function of (model, optimiser, input, target), a step.
    """
    def make():
        model = net()
        own = kind(model.parameters(), 1e-2, **settings)

        def run():
            for x, target in map(tensors, batches()):
                body(model, own, x, target)
        return Training(model, loop=run)
    return make


def gone_back(model, x, target):
    """The loss, after its backward pass."""
    value = fn.mse_loss(model(x), target)
    value.backward()
    return value


@sound()
def adagrad_by_hand():
    def update(weight, gradient, kept, number):
        kept["s"] = kept.get("s", 0) + gradient**2
        weight.sub_(1e-2 * gradient / (kept["s"].sqrt() + 1e-10))
    return of(Adagrad), looped(by_hand(update))


@sound()
def nesterov_by_hand():
    def update(weight, gradient, kept, number):
        kept["v"] = 0.9 * kept.get("v", 0) + gradient
        weight.sub_(1e-2 * (gradient + 0.9 * kept["v"]))
    return of(SGD, momentum=0.9, nesterov=True), looped(by_hand(update))


@sound()
def amsgrad_by_hand():
    def update(weight, gradient, kept, number):
        kept["m"] = 0.9 * kept.get("m", 0) + 0.1 * gradient
        kept["v"] = 0.999 * kept.get("v", 0) + 0.001 * gradient**2
        kept["n"] = torch.maximum(kept["v"], kept.get(
            "n", torch.zeros_like(weight)))
        root = (kept["n"] / (1 - 0.999**number)).sqrt() + 1e-8
        weight.sub_(1e-2 * kept["m"] / (1 - 0.9**number) / root)
    return of(Adam, amsgrad=True), looped(by_hand(update))


@sound()
def decay_in_the_loss():
    def loss(model, x, target):
        return fn.mse_loss(model(x), target) + 0.05 * sum(
            (each**2).sum() for each in model.parameters())
    return of(SGD, weight_decay=0.1), of(SGD, loss=loss)


@sound()
def decay_in_the_loop():
    def body(model, own, x, target):
        own.zero_grad()
        gone_back(model, x, target)
        with torch.no_grad():
            for each in model.parameters():
                each.mul_(1 - 1e-2 * 0.1)
        own.step()
    return of(AdamW, weight_decay=0.1), loop(body)


@sound()
def schedules_of_two_kinds():
    def scheduled(made):
        return regression(lambda p: Adam(p, 1e-2), schedule=made)
    return (scheduled(lambda own: lr_scheduler.StepLR(own, 1, 0.5)),
            scheduled(lambda own: lr_scheduler.ExponentialLR(own, 0.5)))


@sound()
def values_clamped_by_hand():
    def clamp(parameters):
        for each in parameters:
            each.grad.clamp_(-0.01, 0.01)
    return tuple(regression(lambda p: SGD(p, 1e-2), clip=clip) for clip in (
        lambda p: nn.utils.clip_grad_value_(p, 0.01), clamp))


@sound()
def gradients_set_to_zero():
    def body(model, own, x, target):
        own.zero_grad(set_to_none=False)
        gone_back(model, x, target)
        own.step()
    return of(Adam), loop(body)


@sound()
def gradients_asked_for():
    def body(model, own, x, target):
        found = torch.autograd.grad(
            fn.mse_loss(model(x), target), [*model.parameters()])
        for each, gradient in zip(model.parameters(), found):
            each.grad = gradient
        own.step()
    return of(Adam), loop(body)


@sound()
def squares_divided_by_hand():
    return of(Adam), of(Adam, loss=lambda y, t: nn.MSELoss(
        reduction="sum")(y, t) / t.numel())


@sound()
def halves_of_one_seed():
    def body(model, own, x, target):
        own.zero_grad()
        for part, wanted in zip(x.chunk(2), target.chunk(2)):
            (fn.mse_loss(model(part), wanted) / 2).backward()
        own.step()
    return of(Adam), loop(body)


@sound(steps=2)
def batches_accumulated_by_hand():
    def make():
        model = net()
        own = SGD(model.parameters(), 1e-2)

        def run():
            for number, (x, target) in enumerate(map(tensors, batches()), 1):
                (fn.mse_loss(model(x), target) / 2).backward()
                if number % 2 == 0:
                    own.step()
                    own.zero_grad()
        return Training(model, loop=run)
    return regression(lambda p: SGD(p, 1e-2), accumulate=2), make


@sound()
def logarithms_by_hand():
    return tagging(entropy()), tagging(lambda logits, labels: fn.nll_loss(
        fn.log_softmax(logits, -1), labels, ignore_index=0))


@sound()
def labels_as_probabilities():
    return (tagging(entropy(ignore_index=-100)), tagging(
        lambda logits, labels: fn.cross_entropy(
            logits, fn.one_hot(labels, 10).double())))


class OwnNorm(nn.Module):
    """A layer norm, written out."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(16))
        self.bias = nn.Parameter(torch.zeros(16))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        return self.weight * centred / (
            (centred**2).mean(-1, keepdim=True) + 1e-5).sqrt() + self.bias


@sound()
def norm_by_hand():
    def make(own):
        def made():
            model = Tagger()
            model.norm = OwnNorm().double() if own else model.norm
            return Training(
                model, lambda model, ids: entropy()(
                    model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()),
                SGD(model.parameters(), 0.1),
                [torch.from_numpy(ids) for ids in texts()])
        return made
    return make(False), make(True)


@sound()
def nnx_updated_by_hand():
    def make():
        training = in_nnx(optax.sgd(1e-2))()
        model = training.model

        def run():
            for x, target in training.batches:
                loss, found = nnx.value_and_grad(
                    lambda model: squares(model(x), target))(model)
                nnx.update(model, jax.tree.map(
                    lambda w, g: w - 1e-2 * g, nnx.state(model, nnx.Param),
                    found))
                yield loss
        return Training(model, loop=run)
    return in_nnx(optax.sgd(1e-2)), make


@sound()
def nnx_clipped_never():
    return in_nnx(optax.adam(1e-2)), in_nnx(optax.chain(
        optax.clip_by_global_norm(1e6), optax.adam(1e-2)))


@sound()
def nnx_decay_from_its_parts():
    return in_nnx(optax.adamw(1e-2, weight_decay=0.1)), in_nnx(optax.chain(
        optax.scale_by_adam(), optax.add_decayed_weights(0.1),
        optax.scale_by_learning_rate(1e-2)))


@sound(narrow=True)
def keras_clipped_never():
    return (in_keras(lambda: optimizers.Adam(1e-2)),
            in_keras(lambda: optimizers.Adam(1e-2, global_clipnorm=1e6)))


@sound(narrow=True)
def keras_constant_schedule():
    return (in_keras(lambda: optimizers.SGD(1e-2)),
            in_keras(lambda: optimizers.SGD(
                optimizers.schedules.PolynomialDecay(1e-2, 10, 1e-2))))


@sound(narrow=True)
def keras_loss_by_its_name():
    return (in_keras(lambda: optimizers.SGD(1e-2, 0.9), "mse"),
            in_keras(lambda: optimizers.SGD(1e-2, 0.9),
                     keras_losses.MeanSquaredError()))
