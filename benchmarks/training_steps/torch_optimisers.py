"""Optimisers, schedules and clipping, PyTorch beside PyTorch."""

import functools

import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, RMSprop, lr_scheduler

from benchmarks.training_steps.pair import fault, sound
from benchmarks.training_steps.torch_parts import (
    adam, by_hand, looped, net, regression)


def of(kind, rate=1e-2, **settings):
    """A regression with one of torch's optimisers."""
    return regression(lambda p: kind(p, rate, **settings))


def hand(**settings):
    """The same with AdamW by hand."""
    return looped(by_hand(functools.partial(adam, **settings)))


def warmed(first):
    """A rate that grows by its step, counted from ``first``."""
    return regression(lambda p: Adam(p, 1e-2), schedule=lambda own:
                      lr_scheduler.LambdaLR(own, lambda i: (i + first) / 4))


@fault("ε", at="weights")
def eps_of_keras():
    return of(Adam), of(Adam, eps=1e-7)


@fault("place of ε", at="weights")
def eps_before_correction():
    return hand(eps=1e-7), hand(eps=1e-7, form="before")


@fault("place of ε", at="weights")
def eps_inside_root():
    return of(Adam), hand(form="inside")


@fault("bias correction", at="weights")
def no_bias_correction():
    return of(Adam), hand(form="uncorrected")


@fault("kind of weight decay", at="moments")
def decay_in_the_gradient():
    return of(AdamW, weight_decay=0.1), of(Adam, weight_decay=0.1)


@fault("kind of weight decay", at="weights")
def decay_in_the_gradient_by_hand():
    return (of(AdamW, weight_decay=0.1),
            hand(decay=0.1, form="coupled"))


@fault("weight decay", at="weights")
def decay_default():
    return of(AdamW), of(AdamW, weight_decay=1e-4)


@fault("β₂", at="moments")
def beta2():
    return of(Adam), of(Adam, betas=(0.9, 0.99))


@fault("learning rate", at="learning rate")
def rate():
    return of(Adam), of(Adam, 1e-3)


@fault("schedule off by one step", at="learning rate")
def schedule_early():
    return warmed(1), warmed(2)


@fault("schedule off by one step", at="learning rate")
def schedule_late():
    return warmed(1), warmed(0)


@fault("Nesterov momentum", at="weights")
def nesterov():
    return of(SGD, momentum=0.9), of(SGD, momentum=0.9, nesterov=True)


@fault("dampening of the momentum", at="moments", step=2)
def dampening():
    return of(SGD, momentum=0.9), of(SGD, momentum=0.9, dampening=0.1)


@fault("clipping of the gradient", at="clipped gradients")
def clipping_missing():
    return (regression(lambda p: Adam(p, 1e-2), clip=0.1), of(Adam))


def each_alone(parameters):
    """Clip every parameter by its own norm."""
    for parameter in parameters:
        nn.utils.clip_grad_norm_([parameter], 0.1)


@fault("clipping of the gradient", at="clipped gradients")
def clipping_each():
    return (regression(lambda p: Adam(p, 1e-2), clip=0.1),
            regression(lambda p: Adam(p, 1e-2), clip=each_alone))


@fault("limit of the gradient", at="clipped gradients")
def clipping_limit():
    return (regression(lambda p: SGD(p, 1e-2), clip=0.1),
            regression(lambda p: SGD(p, 1e-2), clip=0.5))


@fault("parameters not in the optimiser", at="weights")
def parameter_left_out():
    return of(Adam), regression(lambda p: Adam([*p][:-1], 1e-2))


def frozen():
    """A net of which one bias is frozen."""
    made = net()
    made[0].bias.requires_grad_(False)
    return made


@fault("parameters frozen", at="gradients")
def parameter_frozen():
    return of(Adam), regression(lambda p: Adam(p, 1e-2), model=frozen)


@fault("weights at the start", at="weights", step=0)
def other_seed():
    return of(Adam), regression(lambda p: Adam(p, 1e-2),
                                model=lambda: net(seed=1))


@fault("optimiser", at="weights")
def other_optimiser():
    return of(SGD), of(Adam)


@sound()
def foreach():
    return of(Adam), of(Adam, foreach=True)


@sound()
def fused():
    return of(AdamW), of(AdamW, fused=True)


@sound()
def adamw_by_hand():
    return of(AdamW, weight_decay=0.1), hand(decay=0.1)


@sound()
def adam_is_adamw_without_decay():
    return of(Adam), of(AdamW, weight_decay=0.0)


@sound()
def adam_by_hand_twice():
    return hand(), hand()


def turned(rate):
    """Adam with its parameters in the other order."""
    return regression(lambda p: Adam(reversed([*p]), rate))


@sound()
def other_order_of_parameters():
    return of(Adam), turned(1e-2)


@sound()
def groups():
    return of(AdamW), regression(lambda p: AdamW(
        [{"params": [each]} for each in p], 1e-2))


@sound()
def rmsprop_by_hand():
    def update(weight, gradient, kept, number):
        kept["v"] = 0.99 * kept.get("v", 0) + 0.01 * gradient**2
        weight.sub_(1e-2 * gradient / (kept["v"].sqrt() + 1e-8))
    return of(RMSprop), looped(by_hand(update))


@sound()
def momentum_by_hand():
    def update(weight, gradient, kept, number):
        kept["v"] = 0.9 * kept.get("v", 0) + gradient
        weight.sub_(1e-2 * kept["v"])
    return of(SGD, momentum=0.9), looped(by_hand(update))


def norm_by_hand(parameters):
    """torch's clipping by the global norm, written out."""
    found = [each.grad for each in parameters]
    size = torch.stack([each.norm() for each in found]).norm()
    for each in found:
        each.mul_(torch.clamp(0.1 / (size + 1e-6), max=1.0))


@sound()
def clipping_by_hand():
    return (regression(lambda p: Adam(p, 1e-2), clip=0.1),
            regression(lambda p: Adam(p, 1e-2), clip=norm_by_hand))


@sound()
def clipping_that_never_clips():
    return (regression(lambda p: Adam(p, 1e-2), clip=1e6), of(Adam))


@sound()
def schedule_by_hand():
    def step(model, kept, number, batch):
        own = kept.setdefault("own", Adam(model.parameters(), 1e-2))
        own.param_groups[0]["lr"] = 1e-2 * number / 4
        own.zero_grad()
        loss = nn.functional.mse_loss(model(batch[0]), batch[1])
        loss.backward()
        own.step()
        return loss
    return warmed(1), looped(step)


@sound()
def zero_gradient_of_a_bias():
    def model():
        return net(nn.BatchNorm1d(12))
    return (regression(lambda p: Adam(p, 1e-2), model=model),
            regression(lambda p: Adam(p, 1e-2, foreach=True), model=model))


@sound(steps=4)
def float32_drifts():
    def single(p):
        return Adam(p, 1e-2)

    def model():
        return net().float()

    def make(loss):
        made = regression(single, loss, model)

        def cast():
            training = made()
            training.batches = [tuple(each.float() for each in batch)
                                for batch in training.batches]
            return training
        return cast
    return (make(nn.MSELoss()),
            make(lambda y, t: ((y - t)**2).sum() / y.numel()))
