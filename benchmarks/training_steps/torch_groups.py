"""Batches and rows of one step that count unlike, and parameters that one
step moves unlike, in PyTorch."""

import copy

import torch
from torch import nn
from torch.optim import SGD, Adam

from benchmarks.training_steps.pair import fault, sound
from benchmarks.training_steps.torch_parts import (
    batches, by_hand, looped, net, regression, tensors)
from parity.training.form import Training


def halves(*losses, zero=(0,), after=1.0):
    """A loop whose steps are of two halves of a batch.

    Args:
        losses: of each half a function of the squared errors.
        zero: before which half gradients are zeroed.
        after: what gradients are multiplied with before the step.
    """
    def make():
        model = net()
        own = SGD(model.parameters(), 1e-2, momentum=0.9)

        def loop():
            for x, target in map(tensors, batches()):
                for half, loss in enumerate(losses):
                    if half in zero:
                        own.zero_grad()
                    at = slice(4 * half, 4 * half + 4)
                    loss((model(x[at]) - target[at])**2).backward()
                if after != 1:
                    for each in model.parameters():
                        each.grad *= after
                own.step()
        return Training(model, loop=loop)
    return make


def times(factor):
    """The mean of the squares, times a number."""
    return lambda squares: factor * squares.mean()


def whole(loss=None):
    """The same step of a whole batch."""
    return regression(lambda p: SGD(p, 1e-2, momentum=0.9), loss)


@fault("mean of the loss", at="loss")
def second_half_summed():
    return (halves(times(0.5), times(0.5)),
            halves(times(0.5), lambda squares: 0.5 * squares.sum()))


@fault("weights of the accumulated batches", at="loss")
def halves_weighed_unlike():
    return halves(times(0.5), times(0.5)), halves(times(0.7), times(0.3))


@fault("batches left out", at="loss")
def first_half_without_weight():
    return halves(times(0.5), times(0.5)), halves(times(0.0), times(0.5))


@fault("batches left out", at="clipped gradients")
def zeroed_before_each_half():
    return (halves(times(0.5), times(0.5)),
            halves(times(0.5), times(0.5), zero=(0, 1)))


@fault("scale of the accumulated gradient", at="loss")
def halves_not_divided():
    return halves(times(0.5), times(0.5)), halves(times(1.0), times(1.0))


@fault("gradients not zeroed", at="clipped gradients", step=2)
def never_zeroed():
    return (halves(times(0.5), times(0.5)),
            halves(times(0.5), times(0.5), zero=()))


@fault("rows left out", at="loss")
def last_row_left_out():
    return whole(), whole(lambda y, t: ((y[:-1] - t[:-1])**2).mean())


@fault("weights of the rows", at="loss")
def first_row_counts_twice():
    def loss(y, t):
        return (((y - t)**2).mean(1) * torch.tensor(
            [2.0] + 7 * [1.0], dtype=torch.float64)).sum() / 9
    return whole(), whole(loss)


def sgd_by_hand(rates=None, momenta=None, decays=None):
    """SGD with momentum by hand.

    Args:
        rates, momenta, decays: {how many axes a weight has: another value}.
    """
    def update(weight, gradient, kept, number):
        axes = weight.ndim
        gradient = gradient + (decays or {}).get(axes, 0.1) * weight
        kept["v"] = (momenta or {}).get(axes, 0.9) * kept.get(
            "v", 0) + gradient
        weight.sub_((rates or {}).get(axes, 1e-2) * kept["v"])
    return looped(by_hand(update))


def sgd():
    """The same as torch has it."""
    return regression(lambda p: SGD(p, 1e-2, momentum=0.9,
                                    weight_decay=0.1))


@fault("parameters not in the optimiser", at="weights")
def biases_never_moved():
    return sgd(), sgd_by_hand(rates={1: 0.0})


@fault("learning rate", at="weights")
def biases_at_another_rate():
    return sgd(), sgd_by_hand(rates={1: 1e-3})


@fault("momentum", at="weights", step=2)
def biases_with_less_momentum():
    return sgd(), sgd_by_hand(momenta={1: 0.5})


@fault("weight decay", at="weights")
def biases_not_decayed():
    return sgd(), sgd_by_hand(decays={1: 0.0})


@fault("learning rate", at="learning rate")
def one_group_at_another_rate():
    def grouped(parameters):
        first, *rest = parameters
        return Adam([{"params": [first]}, {"params": rest, "lr": 1e-3}], 1e-2)
    return regression(lambda p: Adam(p, 1e-2)), regression(grouped)


@sound()
def halves_of_a_whole():
    return whole(), halves(times(0.5), times(0.5))


@sound()
def divided_after_the_backward_passes():
    return (halves(times(0.5), times(0.5)),
            halves(times(1.0), times(1.0), after=0.5))


@sound()
def the_whole_gradient_by_hand():
    return (halves(lambda squares: squares.sum() / 24,
                   lambda squares: squares.sum() / 24), whole(nn.MSELoss()))


@sound()
def decay_and_momentum_by_hand():
    return sgd(), sgd_by_hand()


@sound()
def groups_of_one_rate():
    return sgd(), regression(lambda p: SGD(
        [{"params": [each]} for each in p], 1e-2, momentum=0.9,
        weight_decay=0.1))


def two_rates(first, last):
    """Adam, whose groups are a net's first layer and the rest."""
    def optimizer(parameters):
        one, two, *rest = parameters
        return Adam([{"params": [one, two], "lr": first}, {"params": rest}],
                    last)
    return regression(optimizer)


@fault("learning rate", at="learning rate")
def rates_of_groups_exchanged():
    return two_rates(1e-2, 1e-3), two_rates(1e-3, 1e-2)


def scaled(early=False, limit=0.05):
    """Gradients that are 1024 times too large, and are clipped.

    Args:
        early: whether they are clipped before they are made as they were.
    """
    def make():
        model = net()
        own = SGD(model.parameters(), 1e-2, momentum=0.9)

        def loop():
            for x, target in map(tensors, batches()):
                own.zero_grad()
                (1024 * ((model(x) - target)**2).mean()).backward()
                if early:
                    nn.utils.clip_grad_norm_(model.parameters(), limit)
                for each in model.parameters():
                    each.grad /= 1024
                if not early:
                    nn.utils.clip_grad_norm_(model.parameters(), limit)
                own.step()
        return Training(model, loop=loop)
    return make


@fault("clipping before the gradients are unscaled", at="clipped gradients")
def clipped_too_early():
    return scaled(), scaled(early=True)


@fault("clipping before the gradients are unscaled", at="clipped gradients")
def clipped_too_early_where_no_limit_acts():
    return scaled(limit=500.0), scaled(early=True, limit=500.0)


def taught(decay, lerp=False):
    """A student whose teacher is the average of its weights.

    Args:
        lerp: whether it is written as torch.lerp.
    """
    def make():
        model = net()
        teacher = copy.deepcopy(model).requires_grad_(False)
        own = Adam(model.parameters(), 1e-2)

        def loop():
            for x, target in map(tensors, batches()):
                loss = ((model(x) - target)**2).mean() + (
                    (model(x) - teacher(x))**2).mean()
                own.zero_grad()
                loss.backward()
                own.step()
                with torch.no_grad():
                    for mine, other in zip(teacher.parameters(),
                                           model.parameters()):
                        if lerp:
                            mine.lerp_(other, 1 - decay)
                        else:
                            mine.mul_(decay).add_((1 - decay) * other)
        return Training(model, loop=loop)
    return make


@fault("decay of the average of the weights", at="loss", step=2)
def teacher_of_another_decay():
    return taught(0.9), taught(0.99)


@sound
def teacher_by_lerp():
    return taught(0.9), taught(0.9, lerp=True)


@sound
def scaled_and_clipped_rightly():
    return whole(), scaled(limit=1e6)
