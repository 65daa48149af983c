"""A small DiT: patches, adaptive norms (adaLN-Zero), and gates by time."""

import math

import torch
from torch import nn
from torch.nn import functional


def norm(x):
    """A layer norm without scale and bias."""
    return functional.layer_norm(x, x.shape[-1:], eps=1e-6)


def places(size, width):
    """[size² width] sines of rows and columns; rows' come first."""
    def one(place):
        quarter = width // 4
        omega = 10000.0 ** -(torch.arange(quarter).double() / quarter)
        angles = place.reshape(-1)[:, None] * omega
        return torch.cat([angles.sin(), angles.cos()], 1)
    rows, columns = torch.meshgrid(
        torch.arange(size).double(), torch.arange(size).double(),
        indexing="ij")
    return torch.cat([one(columns), one(rows)], 1)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)
        self.ada = nn.Linear(width, 6 * width)

    def attend(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(
            2, 0, 3, 1, 4)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        y = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return self.proj(y)

    def forward(self, x, c):
        shift1, scale1, gate1, shift2, scale2, gate2 = self.ada(
            functional.silu(c))[:, None].chunk(6, -1)
        x = x + gate1 * self.attend(norm(x) * (1 + scale1) + shift1)
        y = norm(x) * (1 + scale2) + shift2
        y = self.fc2(functional.gelu(self.fc1(y), approximate="tanh"))
        return x + gate2 * y


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, self.size = c["width"], c["size"]
        self.patch = nn.Conv2d(4, width, 2, stride=2)
        self.time1 = nn.Linear(32, width)
        self.time2 = nn.Linear(width, width)
        self.label = nn.Embedding(11, width)
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(2))
        self.ada = nn.Linear(width, 2 * width)
        self.last = nn.Linear(width, 2 * 2 * 4)

    def forward(self, x, time, label):
        grid = x.shape[-1] // 2
        x = self.patch(x).flatten(2).mT
        x = x + places(grid, x.shape[-1])
        omega = torch.exp(-math.log(10000.0) * torch.arange(16).double() / 16)
        angles = time[:, None].double() * omega
        time = torch.cat([angles.cos(), angles.sin()], -1)
        time = self.time2(functional.silu(self.time1(time)))
        c = time + self.label(label)
        for block in self.blocks:
            x = block(x, c)
        shift, scale = self.ada(functional.silu(c))[:, None].chunk(2, -1)
        x = self.last(norm(x) * (1 + scale) + shift)
        x = x.reshape(-1, grid, grid, 2, 2, 4)
        return torch.einsum("nhwpqc->nchpwq", x).reshape(
            -1, 4, 2 * grid, 2 * grid)
