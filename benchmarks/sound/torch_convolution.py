"""Convolutions, pooling, patches and pixels, written in other ways."""

import torch
from torch import nn

from benchmarks.sound.pair import sound
from benchmarks.sound.torch_parts import D, Seeing, Vision
from benchmarks.sound.weights import arrays, both, drawn, give, normal, twins

fn = nn.functional
IMAGE = normal(2, 3, 8, 8)


class Unfolded(nn.Conv2d):
    """A convolution as a matrix product of patches."""

    def forward(self, x):
        b, _, h, w = x.shape
        step, pad, size = self.stride[0], self.padding[0], self.weight.shape[2]
        patches = fn.unfold(x, size, padding=pad, stride=step)
        y = self.weight.flatten(1) @ patches + self.bias[:, None]
        return y.view(b, -1, *((n + 2 * pad - size) // step + 1
                               for n in (h, w)))


@sound
def convolution_by_unfold():
    """nn.Conv2d in a; unfold and a product in b."""
    return twins(Vision(nn.Conv2d(8, 12, 3, stride=2, padding=1), 12),
                 Seeing(Unfolded(8, 12, 3, stride=2, padding=1), 12), IMAGE)


class Shifted(nn.Conv1d):
    """A convolution over time as a sum over shifts."""

    def forward(self, x):
        size = self.weight.shape[2]
        x = fn.pad(x, (size - 1, 0))
        t = x.shape[2] - size + 1
        return self.bias[:, None] + sum(
            self.weight[:, :, i] @ x[:, :, i:i + t] for i in range(size))


class CausalConv(nn.Conv1d):
    """A causal convolution: padded on both sides, then cut."""

    def forward(self, x):
        size = self.weight.shape[2]
        return fn.conv1d(x, self.weight, self.bias, padding=size - 1
                         )[..., :x.shape[-1]]


def speech(conv):
    """Two convolutions over time: [B 4 T]."""
    return nn.Sequential(nn.Conv1d(4, D, 3, padding=1), nn.GELU(), conv,
                         nn.GELU(), nn.Conv1d(D, 5, 1))


@sound
def causal_by_cut_or_shifts():
    """Padded and cut in a, a sum over shifts in b."""
    return twins(speech(CausalConv(D, D, 4)), speech(Shifted(D, D, 4)),
                 normal(2, 4, 11))


class Pointwise(nn.Module):
    """[B C T] by a convolution of width 1, or a linear layer."""

    def __init__(self, linear):
        super().__init__()
        self.layer = nn.Linear(D, D) if linear else nn.Conv1d(D, D, 1)
        self.linear = linear

    def forward(self, x):
        return self.layer(x.mT).mT if self.linear else self.layer(x)


@sound
def width_one_as_linear():
    """A convolution of width 1 in a, a linear layer in b."""
    a = drawn(speech(Pointwise(False)))
    b = drawn(speech(Pointwise(True)))
    for at in (0, 2, 4):
        mine = arrays(a[at])
        give(b[at], *([mine[0][0], mine[1]] if at == 2 else mine))
    return both(a, b, normal(2, 4, 11))


class Depthwise(nn.Module):
    """A convolution of each channel by itself."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(8, 1, 3, 3))
        self.bias = nn.Parameter(torch.empty(8))

    def forward(self, x):
        x = fn.pad(x, (1, 1, 1, 1))
        y = x.unfold(2, 3, 1).unfold(3, 3, 1)
        return torch.einsum("bchwij,cij->bchw", y, self.weight[:, 0]
                            ) + self.bias[:, None, None]


@sound
def depthwise_by_windows():
    """groups=channels in a, windows and an einsum in b."""
    a = drawn(Vision(nn.Conv2d(8, 8, 3, padding=1, groups=8)))
    b = drawn(Vision(Depthwise()))
    b.core.load_state_dict(a.core.state_dict())
    return both(a, b, IMAGE)


@sound
def groups_or_split():
    """groups=2 in a; two convolutions of halves in b."""
    class Halves(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = (nn.Conv2d(4, 6, 3, padding=1)
                                     for _ in "12")

        def forward(self, x):
            one, two = x.split(4, 1)
            return torch.cat([self.left(one), self.right(two)], 1)
    a = drawn(Vision(nn.Conv2d(8, 12, 3, padding=1, groups=2), 12))
    b = drawn(Vision(Halves(), 12))
    kernel, bias = arrays(a.core)
    give(b.core.left, kernel[..., :6], bias[:6])
    give(b.core.right, kernel[..., 6:], bias[6:])
    give(b.stem, *arrays(a.stem))
    give(b.head, *arrays(a.head))
    return both(a, b, IMAGE)


@sound
def padding_before():
    """padding=1 in a, fn.pad in b."""
    return twins(Vision(nn.Conv2d(8, 12, 3, padding=1, stride=2), 12), Seeing(
        nn.Sequential(nn.ZeroPad2d(1), nn.Conv2d(8, 12, 3, stride=2)), 12),
        IMAGE)


class Patches(nn.Module):
    """Patches of an image to tokens, and a head."""

    def __init__(self, linear):
        super().__init__()
        self.proj = (nn.Linear(48, D) if linear
                     else nn.Conv2d(3, D, 4, stride=4))
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, 5)
        self.linear = linear

    def forward(self, x):
        if self.linear:
            b = x.shape[0]
            x = x.reshape(b, 3, 2, 4, 2, 4).permute(0, 2, 4, 1, 3, 5)
            x = self.proj(x.reshape(b, 4, 48))
        else:
            x = self.proj(x).flatten(2).transpose(1, 2)
        return self.head(self.norm(x).mean(1))


@sound
def patches_by_linear():
    """ViT's patches: a strided convolution in a, reshape and Linear in b."""
    a, b = drawn(Patches(False)), drawn(Patches(True))
    kernel, bias = arrays(a.proj)
    give(b.proj, kernel.transpose(2, 0, 1, 3).reshape(48, D), bias)
    give(b.norm, *arrays(a.norm))
    give(b.head, *arrays(a.head))
    return both(a, b, IMAGE)


def shuffled(x):
    """pixel_shuffle(x, 2) by reshape."""
    b, c, h, w = x.shape
    return x.view(b, c // 4, 2, 2, h, w).permute(0, 1, 4, 2, 5, 3).reshape(
        b, c // 4, 2 * h, 2 * w)


def unshuffled(x):
    """pixel_unshuffle(x, 2) by slices."""
    return torch.stack([x[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)],
                       2).flatten(1, 2)


class Lambda(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@sound
def pixel_shuffle_by_reshape():
    """The module in a."""
    return twins(Vision(nn.PixelShuffle(2), 2),
                 Seeing(Lambda(shuffled), 2), IMAGE)


@sound
def pixel_unshuffle_by_slices():
    """The module in a; slices in b."""
    return twins(Vision(nn.PixelUnshuffle(2), 32),
                 Seeing(Lambda(unshuffled), 32), IMAGE)


@sound
def average_pool_by_reshape():
    """AvgPool2d in a, a mean over reshaped blocks in b."""
    return twins(Vision(nn.AvgPool2d(2)), Seeing(Lambda(
        lambda x: x.unflatten(3, (-1, 2)).unflatten(2, (-1, 2)).mean((3, 5)))),
        IMAGE)


@sound
def max_pool_by_amax():
    """MaxPool2d in a, amax over windows in b."""
    return twins(Vision(nn.MaxPool2d(3, 2)), Seeing(Lambda(
        lambda x: x.unfold(2, 3, 2).unfold(3, 3, 2).amax((-2, -1)))), IMAGE)


@sound
def nearest_by_repeat():
    """Upsample in a, repeat_interleave in b."""
    return twins(
        Vision(nn.Sequential(nn.Upsample(scale_factor=2),
                             nn.Conv2d(8, 8, 3))),
        Seeing(nn.Sequential(Lambda(lambda x: x.repeat_interleave(
            2, 2).repeat_interleave(2, 3)), nn.Conv2d(8, 8, 3))), IMAGE)


class Transposed(nn.ConvTranspose2d):
    """A transposed convolution: zeros between, then a flipped kernel."""

    def forward(self, x):
        b, c, h, w = x.shape
        wide = x.new_zeros(b, c, 2 * h - 1, 2 * w - 1)
        wide[:, :, ::2, ::2] = x
        return fn.conv2d(wide, self.weight.flip(2, 3).transpose(0, 1),
                         self.bias, padding=2)


@sound
def transposed_by_zeros():
    """ConvTranspose2d in a, zeros and a convolution in b."""
    return twins(Vision(nn.ConvTranspose2d(8, 6, 3, stride=2), 6),
                 Seeing(Transposed(8, 6, 3, stride=2), 6), IMAGE)


class Down(nn.Module):
    """A small U-Net: down, up and the skip, joined or summed."""

    def __init__(self, joined):
        super().__init__()
        self.inner = nn.Conv2d(8, 8, 3, stride=2, padding=1)
        self.upper = nn.Conv2d(16, 8, 3, padding=1) if joined else None
        if not joined:
            self.skip = nn.Conv2d(8, 8, 3, padding=1)
            self.up = nn.Conv2d(8, 8, 3, padding=1, bias=False)

    def forward(self, x):
        y = fn.interpolate(torch.relu(self.inner(x)), scale_factor=2)
        if self.upper is not None:
            return self.upper(torch.cat([x, y], 1))
        return self.skip(x) + self.up(y)


@sound
def skip_joined_or_summed():
    """Skip and path are joined before one kernel in a, summed after in b."""
    a, b = drawn(Vision(Down(True))), drawn(Vision(Down(False)))
    kernel, bias = arrays(a.core.upper)
    give(b.core.skip, kernel[:, :, :8], bias)
    give(b.core.up, kernel[:, :, 8:])
    give(b.core.inner, *arrays(a.core.inner))
    give(b.stem, *arrays(a.stem))
    give(b.head, *arrays(a.head))
    return both(a, b, IMAGE)
