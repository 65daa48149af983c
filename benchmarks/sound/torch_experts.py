"""Mixtures of experts: dense, routed, stacked."""

import numpy as np
import torch
from torch import nn

from benchmarks.sound.pair import sound
from benchmarks.sound.torch_parts import Block, D, F, Model, Port
from benchmarks.sound.weights import arrays, both, drawn, give, tokens, twins

fn = nn.functional
E, TOP = 4, 2


class Expert(nn.Module):
    """A gated layer."""

    def __init__(self):
        super().__init__()
        self.w1, self.w3 = (nn.Linear(D, F, bias=False) for _ in "12")
        self.w2 = nn.Linear(F, D, bias=False)

    def forward(self, x):
        return self.w2(fn.silu(self.w1(x)) * self.w3(x))


class Mixture(nn.Module):
    """Experts in a list, as Mixtral's; a way to route."""

    def __init__(self, way="index_add"):
        super().__init__()
        self.gate = nn.Linear(D, E, bias=False)
        self.experts = nn.ModuleList(Expert() for _ in range(E))
        self.way = way

    def weights(self, x):
        """[N D] -> weights and places of the chosen experts, [N TOP]."""
        weights, chosen = self.gate(x).softmax(-1).topk(TOP, -1)
        return weights / weights.sum(-1, keepdim=True), chosen

    def forward(self, x):
        shape = x.shape
        x = x.reshape(-1, D)
        weights, chosen = self.weights(x)
        out = torch.zeros_like(x)
        if self.way == "dense":
            every = torch.zeros(len(x), E, dtype=x.dtype).scatter(
                1, chosen, weights)
            made = torch.stack([expert(x) for expert in self.experts], 1)
            out = (every[..., None] * made).sum(1)
        elif self.way == "tokens":
            for n in range(len(x)):
                for k in range(TOP):
                    out[n] += weights[n, k] * self.experts[
                        int(chosen[n, k])](x[n])
        elif self.way == "where":
            for i, expert in enumerate(self.experts):
                weight = torch.where(chosen == i, weights, 0.0).sum(
                    -1, keepdim=True)
                out = out + weight * expert(x)
        else:
            for i, expert in enumerate(self.experts):
                row, k = torch.where(chosen == i)
                out.index_add_(0, row, expert(x[row]) * weights[row, k, None])
        return out.view(shape)


def mixed(one, two):
    """Two models with these mixtures."""
    return twins(Model(Block(mlp=one)), Port(Block(mlp=two)), tokens(2, 7))


@sound
def experts_routed_or_dense():
    """Only chosen rows go through in a; all through all in b."""
    return mixed(Mixture(), Mixture("dense"))


@sound
def experts_routed_or_where():
    """index_add in a; weights of zero in b."""
    return mixed(Mixture(), Mixture("where"))


@sound
def experts_by_expert_or_token():
    """A loop over experts in a, over tokens in b."""
    return mixed(Mixture(), Mixture("tokens"))


@sound
def router_softmax_after_top():
    """softmax, top 2 and norm in a; top 2 of logits and softmax in b."""
    class After(Mixture):
        def weights(self, x):
            logits, chosen = self.gate(x).topk(TOP, -1)
            return logits.softmax(-1), chosen
    return mixed(Mixture(), After())


@sound
def router_by_argmax():
    """topk in a; the greatest, and then the greatest of the rest, in b."""
    class Twice(Mixture):
        def weights(self, x):
            weights = self.gate(x).softmax(-1)
            first = weights.argmax(-1, keepdim=True)
            rest = weights.scatter(1, first, -1.0)
            chosen = torch.cat([first, rest.argmax(-1, keepdim=True)], 1)
            weights = weights.gather(1, chosen)
            return weights / weights.sum(-1, keepdim=True), chosen
    return mixed(Mixture(), Twice("where"))


class Stacked(Mixture):
    """Experts as three-dimensional parameters."""

    def __init__(self):
        nn.Module.__init__(self)
        self.router = nn.Linear(D, E, bias=False)
        self.gate = self.router
        self.gate_up = nn.Parameter(torch.empty(E, D, 2 * F))
        self.down = nn.Parameter(torch.empty(E, F, D))

    def forward(self, x):
        shape = x.shape
        x = x.reshape(-1, D)
        weights, chosen = self.weights(x)
        gate, up = torch.matmul(x[None], self.gate_up).chunk(2, -1)
        made = torch.bmm(fn.silu(gate) * up, self.down)
        every = x.new_zeros(len(x), E).scatter_(1, chosen, weights)
        return torch.einsum("ne,end->nd", every, made).view(shape)


@sound
def experts_stacked():
    """A list of modules in a, stacked weights and bmm in b."""
    a = drawn(Model(Block(mlp=Mixture())))
    b = drawn(Model(Block(mlp=Stacked())))
    mine, port = a.layers[0], b.layers[0]
    for name in ("ln_1", "attn", "ln_2"):
        give(getattr(port, name), *arrays(getattr(mine, name)))
    experts = [arrays(expert) for expert in mine.mlp.experts]
    give(port.mlp.router, *arrays(mine.mlp.gate))
    for name, array in (
            ("gate_up", np.stack([np.concatenate(each[:2], 1)
                                  for each in experts])),
            ("down", np.stack([each[2] for each in experts]))):
        getattr(port.mlp, name).data = torch.from_numpy(array)
    for name in ("embed_tokens", "norm", "lm_head"):
        give(getattr(b, name), *arrays(getattr(a, name)))
    return both(a, b, tokens(2, 7))


class WithShared(nn.Module):
    """A mixture and an expert for all, as DeepSeek's, in either order."""

    def __init__(self, first):
        super().__init__()
        self.routed, self.shared, self.first = Mixture(), Expert(), first

    def forward(self, x):
        if self.first:
            return self.shared(x) + self.routed(x)
        kept = x
        return self.routed(x).add_(self.shared(kept))


@sound
def shared_expert_first_or_last():
    """Added first in a, in place at the end in b."""
    return mixed(WithShared(True), WithShared(False))
