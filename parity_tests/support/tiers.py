"""Faults of mixed precision, and products of other devices by torch."""

import contextlib
import functools
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_contract import scaled_steps
from impl_torch import optimizer
from impl_torch.dialects import norms, residual
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
    def forward(self, x, y):
        return half(old(self, x, y))
    return forward


def lost_master(old):
    def update(self, gradients):
        old(self, gradients)
        for weight in mixed.leaves(self.model):
            parameter = weight.get()
            parameter.data.copy_(half(parameter.data))
    return update


def short_moments(kind):
    def make(old):
        def update(self, gradients):
            old(self, gradients)
            setattr(self, kind, [half(x) for x in getattr(self, kind)])
        return update
    return make


def one_short(kind):
    """Of the first weight alone."""
    def make(old):
        def update(self, gradients):
            old(self, gradients)
            if kind == "weight":
                parameter = next(iter(mixed.leaves(self.model))).get()
                parameter.data.copy_(half(parameter.data))
            else:
                getattr(self, kind)[0] = half(getattr(self, kind)[0])
        return update
    return make


def in_adam(change):
    """A fault in a step of Adam, change(self, old, given, settings)."""
    def make(old):
        def update(self, *given):
            return change(self, functools.partial(old, self),
                          given[:4], given[4:])
        return update
    return around(optimizer.Adam, "update", make)


def short_direction(self, old, given, settings):
    weight, (rate, *_) = given[0], settings
    moved, m, v = old(*given, *settings)
    return weight - rate * half((weight - moved) / rate), m, v


def short_corrections(self, old, given, settings):
    rate, *corrections = settings
    return old(*given, rate, *(
        half(torch.tensor(one)).item() for one in corrections))


def short_squares(self, old, given, settings):
    weight, gradient, m, v = given
    _, m, _ = old(*given, *settings)
    v = self.beta2 * v + (1 - self.beta2) * half(gradient * gradient)
    rate, first, second = settings
    return weight - rate * (m / first) / (
        torch.sqrt(v / second) + self.eps), m, v


def short_clipped(self, old, given, settings):
    weight, gradient, m, v = given
    return old(weight, half(gradient), m, v, *settings)


def short_factor(old):
    """All gradients are scaled by a factor of 16 bits."""
    def clip(gradients, limit):
        norm = old(gradients, 0)[1]
        factor = half(limit / norm) if norm > limit else 1
        return [gradient * factor for gradient in gradients], norm
    return clip


def moments_of_overflow(old):
    """A step that overflows moves moments, and no weight."""
    def scaled_step(trainer, *given):
        numbers = old(trainer, *given)
        if numbers["skipped"]:
            trainer.m = [m + 1e-3 for m in trainer.m]
        return numbers
    return scaled_step


def stale_copy(old):
    """The pass reads the weights of the step before."""
    def loss_and_gradients(self, model, *given):
        weights = [weight.get() for weight in mixed.leaves(model)]
        now = [weight.data.clone() for weight in weights]
        for weight, before in zip(weights, getattr(self, "before", now)):
            weight.data.copy_(before)
        numbers = old(self, model, *given)
        for weight, value in zip(weights, now):
            weight.data.copy_(value)
        self.before = now
        return numbers
    return loss_and_gradients


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
        norms.StdLayerNorm, "forward", norm_in_half)),
    "residual sums in 16 bits": ("forward", "mixed-bfloat16", around(
        residual.PreNorm, "forward", sum_in_half)),
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
    "one master copy in 16 bits": ("training", "mixed-float16", around(
        mixed.MixedTrainer, "update", one_short("weight"))),
    "one first moment in 16 bits": ("training", "mixed-bfloat16", around(
        mixed.MixedTrainer, "update", one_short("m"))),
    "a direction in 16 bits": (
        "training", "mixed-bfloat16", in_adam(short_direction)),
    "corrections in 16 bits": (
        "training", "mixed-bfloat16", in_adam(short_corrections)),
    "squares in 16 bits": (
        "training", "mixed-bfloat16", in_adam(short_squares)),
    "clipped gradients in 16 bits": (
        "training", "mixed-bfloat16", in_adam(short_clipped)),
    "a factor of clipping in 16 bits": ("training", "mixed-bfloat16", around(
        mixed, "clip_by_global_norm", short_factor)),
    "an overflow that moves moments": ("training", "mixed-float16", around(
        mixed, "scaled_step", moments_of_overflow)),
    "a pass of the weights before": ("training", "mixed-bfloat16", around(
        mixed.MixedEngine, "loss_and_gradients", stale_copy)),
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
