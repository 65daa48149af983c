"""Weights whose wrong places would hardly show, and how they are told."""

import pytest
import torch
from torch import nn

from parity.conversion.find import find
from parity.conversion.showing import SAY
from parity_tests.harness.conversion.models import X
from parity_tests.harness.conversion.test_find import agrees

WIDTH = 8


def matrix(width=WIDTH):
    return nn.Parameter(torch.randn(width, width, dtype=torch.float64))


class Base(nn.Module):
    """Square matrices; B has each of them transposed."""

    def __init__(self, turned, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.one, self.two = matrix(), matrix()
        self.turn = (lambda m: m.mT) if turned else (lambda m: m)


class Scaled(Base):
    """A branch that is scaled to a millionth when it begins."""

    def __init__(self, turned):
        super().__init__(turned)
        self.scale = nn.Parameter(1e-6 * torch.ones(WIDTH).double())

    def forward(self, x):
        inner = torch.tanh(x @ self.turn(self.one))
        return x + self.scale * (inner @ self.turn(self.two))


class Masked(Base):
    """An output beside a mask of large numbers."""

    fill = -1e9

    def forward(self, x):
        y = torch.tanh(x @ self.turn(self.one)) @ self.turn(self.two)
        return torch.where(torch.arange(WIDTH) < 3, self.fill, y)


class Infinite(Masked):
    fill = -torch.inf


class Two(Base):
    """Two outputs, each of one matrix."""

    def forward(self, x):
        return x @ self.turn(self.one), torch.tanh(x @ self.turn(self.two))


class Small(nn.Module):
    """A part with two outputs, of which the second hardly counts."""

    def __init__(self, turned):
        super().__init__()
        self.inner = Two(turned)

    def forward(self, x):
        y, z = self.inner(x)
        return y + 1e-7 * z


class Zeros(Scaled):
    """What begins as zeros, and hides what is behind it."""

    def __init__(self, turned):
        super().__init__(turned)
        for parameter in (self.two, self.scale):
            nn.init.zeros_(parameter)


class Scalars(Base):
    """Numbers alone, whose names are exchanged."""

    def __init__(self, turned):
        super().__init__(turned)
        self.alpha, self.beta = (
            nn.Parameter(torch.ones((), dtype=torch.float64))
            for _ in range(2))
        self.names = "beta alpha" if turned else "alpha beta"

    def forward(self, x):
        first, second = (getattr(self, name) for name in self.names.split())
        return torch.tanh(first * x @ self.turn(self.one)) * second + (
            torch.tanh(second * x @ self.turn(self.two)))


@pytest.mark.parametrize("kind", [
    Scaled, Masked, Infinite, Two, Small, Zeros, Scalars])
def test_what_hardly_shows_is_right(kind):
    x = torch.from_numpy(X)
    found = agrees((kind(False), (x,), {}), (kind(True), (x,), {}))
    taken = {entry.b: (entry.names, entry.pieces[0].layout)
             for entry in found.mapping.entries}
    for name, ((source,), layout) in taken.items():
        if name.endswith(("one", "two")):
            assert (source, layout) == (name, "transpose 1 0")
        elif kind is Scalars:
            assert source != name


def test_what_cannot_show_is_not_claimed():
    """In float32 a branch of 1e-9 is less than rounding."""
    def made(turned):
        model = Scaled(turned).float()
        nn.init.constant_(model.scale, 1e-9)
        return model, (torch.from_numpy(X).float(),), {}
    found = find(made(False), made(True))
    assert found.agrees and not found.complete
    assert {"one", "two"} <= found.doubts.keys()
    assert all(SAY in found.doubts[name] for name in ("one", "two"))


class Complex(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Parameter(torch.randn(WIDTH, WIDTH,
                                          dtype=torch.complex128))
        self.layer = nn.Linear(WIDTH, WIDTH).double()

    def forward(self, x):
        return (self.layer(x).to(torch.complex128) @ self.c).real


def test_complex_parameters_are_not_passed_over():
    x = torch.from_numpy(X)
    models = [(Complex(), (x,), {}) for _ in range(2)]
    models[1][0].c.data = models[0][0].c.data.clone()
    found = find(*models)
    assert found.agrees and not found.complete
    assert "complex" in found.over_b["c"]
    assert find(*models, ["c"]).complete


def test_running_averages_are_left_alone():
    def made():
        return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(
            WIDTH)).double(), (torch.from_numpy(X[0]),), {}
    models = made(), made()
    before = [{name: array.clone() for name, array
               in model.state_dict().items()} for model, *_ in models]
    find(*models)
    for (model, *_), arrays in zip(models, before):
        assert all(torch.equal(array, arrays[name])
                   for name, array in model.state_dict().items())


class Separate(nn.Module):
    """Attention of four layers, in names that say what they are."""

    def __init__(self):
        super().__init__()
        for name in "qkvo":
            setattr(self, name, nn.Linear(WIDTH, WIDTH).double())

    def forward(self, x):
        q, k, v = (getattr(self, name)(x).unflatten(-1, (2, 4)).transpose(1, 2)
                   for name in "qkv")
        weights = torch.softmax(q @ k.mT / 2, -1)
        return self.o((weights @ v).transpose(1, 2).flatten(2))


class Matrices(nn.Module):
    """The same without layers, whose matrices stand the other way."""

    def __init__(self):
        super().__init__()
        for name in "qkvo":
            setattr(self, f"w{name}", matrix())
            setattr(self, f"b{name}", nn.Parameter(
                torch.zeros(WIDTH, dtype=torch.float64)))

    def forward(self, x):
        def apply(name, x):
            return x @ getattr(self, f"w{name}") + getattr(self, f"b{name}")
        q, k, v = (apply(name, x).unflatten(-1, (2, 4)).transpose(1, 2)
                   for name in "qkv")
        weights = torch.softmax(q @ k.mT / 2, -1)
        return apply("o", (weights @ v).transpose(1, 2).flatten(2))


@pytest.mark.long(32)
@pytest.mark.parametrize("one, other", [
    (Separate, Matrices), (Matrices, Separate)])
def test_attention_without_layers(one, other):
    x = torch.from_numpy(X)
    agrees((nn.Sequential(one(), nn.Tanh()), (x,), {}),
           (nn.Sequential(other(), nn.Tanh()), (x,), {}))
