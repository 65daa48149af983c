"""Fused heads: one after another, head by head, in groups, and apart."""

import numpy as np
import pytest
import torch
from torch import nn

from parity_tests.harness.conversion.test_find import agrees

WIDTH, SIZE = 16, 2
X = np.random.default_rng(3).normal(size=(2, 5, WIDTH))

BLOCKS, GROUPS, APART, TURNED = "blocks", "groups", "apart", "turned"


class Turned(nn.Module):
    """A map whose weight is [in out], as GPT-2's."""

    def __init__(self, width, length):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, length))
        self.bias = nn.Parameter(torch.randn(length))

    def forward(self, x):
        return x @ self.weight + self.bias


class Heads(nn.Module):
    """Attention of ``groups`` keys, each read by ``queries`` heads."""

    def __init__(self, kind, groups, queries):
        super().__init__()
        self.kind, self.groups, self.queries = kind, groups, queries
        one = groups * SIZE
        lengths = one * queries, one, one
        if kind == APART:
            self.q, self.k, self.v = (nn.Linear(WIDTH, each)
                                      for each in lengths)
        elif kind == TURNED:
            self.qkv = Turned(WIDTH, sum(lengths))
        else:
            self.qkv = nn.Linear(WIDTH, sum(lengths))
        self.out = nn.Linear(lengths[0], WIDTH)

    def parts(self, x):
        """Queries, keys and values [B T heads size]."""
        count, one = self.queries, self.groups * SIZE
        if self.kind == APART:
            return [each(x).unflatten(-1, (-1, SIZE))
                    for each in (self.q, self.k, self.v)]
        y = self.qkv(x)
        if self.kind in (BLOCKS, TURNED):
            return [each.unflatten(-1, (-1, SIZE))
                    for each in y.split([one * count, one, one], -1)]
        y = y.unflatten(-1, (self.groups, count + 2, SIZE))
        return (y[..., :count, :].flatten(2, 3), y[..., count, :],
                y[..., count + 1, :])

    def forward(self, x):
        q, k, v = (each.transpose(1, 2) for each in self.parts(x))
        k, v = (each.repeat_interleave(self.queries, 1) for each in (k, v))
        weights = torch.softmax(q @ k.mT / SIZE ** 0.5, -1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class LayersOfHeads(nn.Module):
    """Two layers of a kind."""

    def __init__(self, seed, *how):
        super().__init__()
        torch.manual_seed(seed)
        self.heads = nn.ModuleList(Heads(*how) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.double().eval()

    def forward(self, x):
        for norm, heads in zip(self.norms, self.heads):
            x = x + heads(norm(x))
        return x


def made(*how):
    return LayersOfHeads(*how), (torch.from_numpy(X),), {}


@pytest.mark.long(64)
@pytest.mark.parametrize("groups, queries", [(8, 1), (2, 4), (4, 2)])
@pytest.mark.parametrize("one, two", [
    (GROUPS, BLOCKS), (BLOCKS, GROUPS), (GROUPS, APART), (APART, GROUPS),
    (GROUPS, TURNED), (TURNED, GROUPS), (BLOCKS, APART)])
def test_heads_are_found_however_packed(one, two, groups, queries):
    agrees(made(0, one, groups, queries), made(1, two, groups, queries))
