"""A small U-Net of a diffusion model: group norms, shift and scale by time.

As in DDPM's and Stable Diffusion's: sines of the time, residual blocks,
attention in the middle, and a skip from each block down to one up.
"""

import math

import torch
from torch import nn
from torch.nn import functional


def sines(time, width):
    """[B] -> [B width]: cosines first, frequencies from 1 to 1e-4."""
    half = width // 2
    frequencies = torch.exp(
        -math.log(10000.0) * torch.arange(half, dtype=torch.float64) / half)
    angles = time[:, None].double() * frequencies
    return torch.cat([angles.cos(), angles.sin()], -1)


class Residual(nn.Module):
    def __init__(self, given, width, timed):
        super().__init__()
        self.norm1 = nn.GroupNorm(4, given, eps=1e-6)
        self.conv1 = nn.Conv2d(given, width, 3, padding=1)
        self.time = nn.Linear(timed, 2 * width)
        self.norm2 = nn.GroupNorm(4, width, eps=1e-6)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.skip = nn.Conv2d(given, width, 1)

    def forward(self, x, time):
        y = self.conv1(functional.silu(self.norm1(x)))
        scale, shift = self.time(functional.silu(time)).chunk(2, -1)
        y = self.norm2(y) * (1 + scale[..., None, None])
        y = y + shift[..., None, None]
        return self.skip(x) + self.conv2(functional.silu(y))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(4, width, eps=1e-6)
        self.qkv = nn.Conv1d(width, 3 * width, 1)
        self.out = nn.Conv1d(width, width, 1)

    def forward(self, x):
        places = self.norm(x).flatten(2)
        q, k, v = self.qkv(places).unflatten(1, (3, self.heads, -1)).unbind(1)
        scores = torch.einsum("bhkt,bhks->bhts", q, k) * q.shape[2] ** -0.5
        y = torch.einsum("bhts,bhks->bhkt", scores.softmax(-1), v)
        return x + self.out(y.flatten(1, 2)).view_as(x)


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, timed = c["width"], c["timed"]
        self.width = width
        self.time1 = nn.Linear(width, timed)
        self.time2 = nn.Linear(timed, timed)
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down1 = Residual(width, width, timed)
        self.down = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.down2 = Residual(width, 2 * width, timed)
        self.middle = Attention(2 * width, 2)
        self.up2 = Residual(4 * width, width, timed)
        self.up = nn.Conv2d(width, width, 3, padding=1)
        self.up1 = Residual(2 * width, width, timed)
        self.norm = nn.GroupNorm(4, width, eps=1e-6)
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, time):
        time = self.time1(sines(time, self.width))
        time = self.time2(functional.silu(time))
        x = self.first(x)
        one = self.down1(x, time)
        two = self.down2(self.down(one), time)
        x = self.middle(two)
        x = self.up2(torch.cat([x, two], 1), time)
        x = functional.interpolate(x, scale_factor=2.0, mode="nearest")
        x = self.up1(torch.cat([self.up(x), one], 1), time)
        return self.last(functional.silu(self.norm(x)))
