"""Functions of one number, and softmax, written in other ways."""

import math

import torch
from torch import nn

from benchmarks.sound.pair import sound
from benchmarks.sound.torch_parts import (
    Block, D, F, Frame, Mlp, Model, Port)
from benchmarks.sound.weights import normal, tokens, twins

fn = nn.functional


def acting(one, two):
    """Two models whose MLPs have these functions."""
    return twins(Model(Block(mlp=Mlp(one))), Port(Block(mlp=Mlp(two))),
                 tokens(2, 7))


@sound
def gelu_by_erf():
    """The library's in a, x (1 + erf(x/√2)) / 2 in b."""
    return acting(fn.gelu, lambda x: x * 0.5 * (
        1.0 + torch.erf(x / math.sqrt(2.0))))


@sound
def gelu_by_erfc():
    """x erfc(-x/√2) / 2 in b, as JAX."""
    return acting(nn.GELU(), lambda x: 0.5 * x * torch.special.erfc(
        -x * math.sqrt(0.5)))


@sound
def gelu_by_normal():
    """x Φ(x), by the distribution's own function."""
    return acting(fn.gelu, lambda x: x * torch.special.ndtr(x))


@sound
def gelu_tanh_by_hand():
    """GPT-2's formula in b."""
    return acting(nn.GELU("tanh"), lambda x: 0.5 * x * (1 + torch.tanh(
        math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3)))))


@sound
def gelu_tanh_as_sigmoid():
    """(1 + tanh(z)) / 2 is sigmoid(2z)."""
    return acting(nn.GELU("tanh"), lambda x: x * torch.sigmoid(
        2 * math.sqrt(2 / math.pi) * x * (1 + 0.044715 * x * x)))


@sound
def quick_gelu_as_silu():
    """x sigmoid(1.702 x) in a, silu(1.702 x) / 1.702 in b."""
    return acting(lambda x: x * torch.sigmoid(1.702 * x),
                  lambda x: fn.silu(1.702 * x) / 1.702)


@sound
def silu_as_quotient():
    """x / (1 + e⁻ˣ) in b."""
    return acting(fn.silu, lambda x: x / (1 + torch.exp(-x)))


@sound
def mish_by_hand():
    """x tanh(ln(1 + eˣ)) in b."""
    return acting(fn.mish, lambda x: x * torch.tanh(torch.log1p(x.exp())))


@sound
def softplus_by_logaddexp():
    """softplus in a, log(e⁰ + eˣ) in b."""
    return acting(fn.softplus, lambda x: torch.logaddexp(
        x, torch.zeros_like(x)))


@sound
def squared_relu_by_square():
    """relu(x)² in a, x relu(x) in b."""
    return acting(lambda x: fn.relu(x).square(),
                  lambda x: x * x.clamp(min=0))


@sound
def hard_swish_by_hand():
    """The library's in a, x relu6(x + 3) / 6 in b."""
    return acting(fn.hardswish, lambda x: x * fn.relu6(x + 3) / 6)


@sound
def elu_by_where():
    """elu in a; where and expm1 in b."""
    return acting(fn.elu, lambda x: torch.where(
        x > 0, x, torch.expm1(x.clamp(max=0))))


class Logits(nn.Module):
    """A linear layer and a log-softmax."""

    def __init__(self, function, width=5):
        super().__init__()
        self.fc, self.function = nn.Linear(D, width), function

    def forward(self, x):
        return self.function(self.fc(x))


@sound
def log_softmax_by_logsumexp():
    """x - logsumexp(x) in b."""
    return twins(Logits(lambda x: fn.log_softmax(x, -1)), Logits(
        lambda x: x - torch.logsumexp(x, -1, keepdim=True)), normal(4, D))


@sound
def log_softmax_by_softmax():
    """The logarithm of softmax in b."""
    return twins(Logits(lambda x: fn.log_softmax(x, -1)),
                 Logits(lambda x: x.softmax(-1).log()), normal(4, D))


@sound
def sigmoid_or_softmax_of_two():
    """softmax of (x, 0) is sigmoid(x)."""
    return twins(Logits(torch.sigmoid, 1), Logits(
        lambda x: torch.cat([x, torch.zeros_like(x)], -1).softmax(-1)[..., :1],
        1), normal(4, D))


@sound
def temperature_divides_or_multiplies():
    """Logits are divided by 0.5 in a, doubled in b."""
    return twins(Logits(lambda x: (x / 0.5).softmax(-1)),
                 Logits(lambda x: fn.softmax(2 * x, dim=-1)), normal(4, D))


@sound
def maxout_by_stack_or_view():
    """The greater of two columns, by maximum or by amax."""
    def layer(function):
        return Frame(Logits(function, 2 * F), F)
    return twins(layer(lambda x: torch.maximum(*x.chunk(2, -1))),
                 layer(lambda x: x.unflatten(-1, (2, F)).amax(-2)),
                 normal(2, 5, D))


@sound
def glu_by_hand():
    """fn.glu in a, a product in b."""
    def layer(function):
        return Frame(Logits(function, 2 * F), F)
    return twins(layer(fn.glu), layer(
        lambda x: x[..., :F] * x[..., F:].sigmoid()), normal(2, 5, D))
