"""Small models that compute the same in other words."""

import numpy as np
import torch
from torch import nn

X = np.random.default_rng(3).normal(size=(2, 5, 8))


class FourLayers(nn.Module):
    """Four square projections, under names that say nothing."""

    def __init__(self, names="efgi"):
        super().__init__()
        for name in names:
            setattr(self, name, nn.Linear(8, 8))
        self.names = names

    def forward(self, x):
        q, k, v = (getattr(self, name)(x).unflatten(-1, (2, 4)).transpose(1, 2)
                   for name in self.names[:3])
        weights = torch.softmax(q @ k.mT / 2, -1)
        return getattr(self, self.names[3])(
            (weights @ v).transpose(1, 2).flatten(2))


class Packed(nn.Module):
    """The same with one projection for three."""

    def __init__(self, by_head=False):
        super().__init__()
        self.qkv, self.out, self.by_head = nn.Linear(8, 24), nn.Linear(8, 8), (
            by_head)

    def forward(self, x):
        y = self.qkv(x)
        q, k, v = (each.transpose(1, 2) for each in (
            y.unflatten(-1, (2, 3, 4)).unbind(3) if self.by_head
            else y.unflatten(-1, (3, 2, 4)).unbind(2)))
        weights = torch.softmax(q @ k.mT / 2, -1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class Bare(nn.Module):
    """The same without layers: matrices that are multiplied from the right."""

    def __init__(self):
        super().__init__()
        self.m = nn.ParameterList(
            nn.Parameter(torch.randn(8, 8)) for _ in range(4))
        self.n = nn.ParameterList(
            nn.Parameter(torch.randn(8)) for _ in range(4))

    def forward(self, x):
        q, k, v = ((x @ m + n).unflatten(-1, (2, 4)).transpose(1, 2)
                   for m, n in zip(self.m[:3], self.n[:3]))
        weights = torch.softmax(q @ k.mT / 2, -1)
        return (weights @ v).transpose(1, 2).flatten(2) @ self.m[3] + self.n[3]


class Blocks(nn.Module):
    """Two blocks of attention and a network, each after a norm."""

    def __init__(self, attention, seed, width=8):
        super().__init__()
        torch.manual_seed(seed)
        self.blocks = nn.ModuleList(nn.ModuleList([
            nn.LayerNorm(8), attention(), nn.LayerNorm(8), nn.Linear(8, width),
            nn.Linear(width, 8)]) for _ in range(2))
        self.double().eval()

    def forward(self, x):
        for norm1, attention, norm2, inner, outer in self.blocks:
            x = x + attention(norm1(x))
            x = x + outer(torch.tanh(inner(norm2(x))))
        return x


class Multi(nn.MultiheadAttention):
    """PyTorch's own, whose projections nobody sees."""

    def __init__(self):
        super().__init__(8, 2, batch_first=True)

    def forward(self, x):
        return super().forward(x, x, x, need_weights=False)[0]


def torch_model(attention, seed=0):
    """(model, inputs, keywords) of a torch Blocks."""
    return Blocks(attention, seed), (torch.from_numpy(X),), {}
