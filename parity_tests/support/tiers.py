"""Faults of mixed precision, and products of other devices by torch."""

import contextlib
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from contract import scaled_steps
from impl_torch import layer_norm, residual
from impl_torch.targets import mixed
from parity.numerics import mixed as numerics


def around(owner, name, make):
    """A fault in a function: make(old) in its place."""
    def put():
        return mock.patch.object(owner, name, make(getattr(owner, name)))
    return put


def half(x):
    """Values rounded to bfloat16, and float32 again."""
    return x.to(torch.bfloat16).float()


def norm_in_half(old):
    def forward(self, x):
        return old(self, x.to(torch.bfloat16))
    return forward


def sum_in_half(old):
    def after(self, x, y):
        return half(old(self, x, y))
    return after


def lost_master(old):
    def update(self, gradients):
        old(self, gradients)
        for _, parameter, _ in mixed.leaves(self.model):
            parameter.data.copy_(half(parameter.data))
    return update


def short_moments(kind):
    def make(old):
        def update(self, gradients):
            old(self, gradients)
            setattr(self, kind, [half(x) for x in getattr(self, kind)])
        return update
    return make


def late_scale(old):
    """What comes out is divided by the scale of the step before."""
    def loss_and_gradients(self, model, inputs, labels, drawn, scale):
        loss, gradients = old(self, model, inputs, labels, drawn, scale)
        before = getattr(self, "before", scale)
        self.before = scale
        return loss, [g * (scale / before) for g in gradients]
    return loss_and_gradients


def scaled(old):
    """What comes out is clipped before it is divided by the scale."""
    def loss_and_gradients(self, model, inputs, labels, drawn, scale):
        loss, gradients = old(self, model, inputs, labels, drawn, scale)
        return loss, [g * scale for g in gradients]
    return loss_and_gradients


def applied(old):
    """A step that overflows is made."""
    def scaled_step(*given):
        with mock.patch.object(scaled_steps, "overflows", lambda norm: False):
            return old(*given)
    return scaled_step


def counted(old):
    """A step that overflows is counted."""
    def scaled_step(trainer, *given):
        before = trainer.step
        numbers = old(trainer, *given)
        trainer.step = before + 1
        return numbers
    return scaled_step


def late_growth(old):
    def init(self, *given):
        old(self, *given)
        self.scale.interval += 1
    return init


def loss_in_half(old):
    def cross_entropy(output, *given):
        return old(output.to(torch.bfloat16), *given)
    return cross_entropy


def other_dtype(old):
    def cast(self, model):
        return torch.autocast("cpu", torch.float16)
    return cast


def output_alone(old):
    """A pass in float32, of which what comes out is rounded."""
    def run(self, model, *inputs):
        steps = mixed.engine.run(model, *inputs)
        return steps | {"output": mixed.to_numpy(
            torch.from_numpy(steps["output"]).to(torch.bfloat16))}
    return run


def short_gradients(old):
    def loss_and_gradients(*given):
        loss, gradients = old(*given)
        return loss, [half(gradient) for gradient in gradients]
    return loss_and_gradients


UNCAST = around(mixed.MixedEngine, "cast", lambda old: (
    lambda self, model: contextlib.nullcontext()))

#: Fault -> the work and the tier in which it is looked for, what puts it in.
FAULTS = {
    "a norm in 16 bits": ("forward", "mixed-bfloat16", around(
        layer_norm.StdLayerNorm, "forward", norm_in_half)),
    "residual sums in 16 bits": ("forward", "mixed-bfloat16", around(
        residual.PreNorm, "after", sum_in_half)),
    "nothing in 16 bits": ("forward", "mixed-bfloat16", UNCAST),
    "gradients with nothing in 16 bits": (
        "gradients", "mixed-bfloat16", UNCAST),
    "training with nothing in 16 bits": ("training", "mixed-bfloat16", UNCAST),
    "the output alone in 16 bits": ("forward", "mixed-bfloat16", around(
        mixed.MixedEngine, "run", output_alone)),
    "gradients in 16 bits": ("gradients", "mixed-bfloat16", around(
        mixed.MixedEngine, "loss_and_gradients", short_gradients)),
    "the other 16 bits": ("forward", "mixed-bfloat16", around(
        mixed.MixedEngine, "cast", other_dtype)),
    "a loss in 16 bits": ("gradients", "mixed-bfloat16", around(
        mixed, "cross_entropy", loss_in_half)),
    "a lost master copy": ("training", "mixed-bfloat16", around(
        mixed.MixedTrainer, "update", lost_master)),
    "first moments in 16 bits": ("training", "mixed-bfloat16", around(
        mixed.MixedTrainer, "update", short_moments("m"))),
    "second moments in 16 bits": ("training", "mixed-bfloat16", around(
        mixed.MixedTrainer, "update", short_moments("v"))),
    "a loss scale off by one step": ("training", "mixed-float16", around(
        mixed.MixedEngine, "loss_and_gradients", late_scale)),
    "clipped before it is unscaled": ("training", "mixed-float16", around(
        mixed.MixedEngine, "loss_and_gradients", scaled)),
    "an overflow that moves weights": ("training", "mixed-float16", around(
        mixed, "scaled_step", applied)),
    "an overflow that counts as a step": ("training", "mixed-float16", around(
        mixed, "scaled_step", counted)),
    "a scale that grows a step late": ("training", "mixed-float16", around(
        mixed.MixedTrainer, "__init__", late_growth)),
}


class Products(TorchDispatchMode):
    """torch on a device whose products are these, as NumPy computes them."""

    def __init__(self, multiply):
        super().__init__()
        self.multiply = multiply

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        if name in ("mm", "bmm"):
            return self.product(*args[:2])
        if name == "addmm":
            return args[0] + self.product(*args[1:3])
        return function(*args, **(kwargs or {}))

    def product(self, a, b):
        return torch.from_numpy(self.multiply(
            a.contiguous().numpy(), b.contiguous().numpy()))


def in_bfloat16(a, b):
    """a @ b of matrices that are rounded to bfloat16."""
    return numerics.to_short(a, "bfloat16") @ numerics.to_short(b, "bfloat16")


#: What a device may do where float32 is multiplied.
PRODUCTS = {"tf32": numerics.in_tf32, "bfloat16x3": numerics.in_three,
            "bfloat16": in_bfloat16}
