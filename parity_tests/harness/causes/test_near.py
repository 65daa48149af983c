"""Causes that come near and are not proved are shown as that, not named."""

import pytest

from parity.causes.cause import PRECISION
from parity.numerics.comparator import DIVERGENCE
from parity_tests.support.engines import usable
from parity_tests.support.explaining import compared

#: How far a copy is from the cause that it comes near to.
OFF = 1e-6


@pytest.fixture
def nn():
    usable("torch")
    from torch import nn
    return nn


def told(models, x):
    """The comparison of models that agree with no replay, and its text."""
    comparison = compared(*(model.double().eval() for model in models), x)
    assert comparison.verdict == DIVERGENCE
    assert not any(each.identified and each.cause != PRECISION
                   for each in comparison.explanations)
    return " ".join(str(comparison).split())


def drawn(*shape):
    """Numbers [*shape]."""
    import torch
    torch.manual_seed(2)
    return torch.randn(*shape, dtype=torch.float64)


def test_an_activation(nn):
    import torch

    class GELU(nn.Module):
        """By tanh, and not quite."""

        def forward(self, x):
            """What it makes of x."""
            return nn.functional.gelu(x, approximate="tanh") + (
                OFF * torch.sin(x))
    text = told((nn.GELU(), GELU()), drawn(9, 8))
    assert "Nearest in b: activation gelu by tanh, " in text
    assert "away, unproved; a's own are " in text


def test_an_epsilon(nn):
    import torch

    class LayerNorm(nn.LayerNorm):
        """With something added to it."""

        def forward(self, x):
            """What it makes of x."""
            return super().forward(x) + self.off * torch.cos(x)
    models = [LayerNorm(8, eps=eps) for eps in (1e-5, 1e-2)]
    models[0].off, models[1].off = 0.0, OFF
    assert "Nearest in b: epsilon 0.01, " in told(models, drawn(9, 8))


def attending(nn, scale, off):
    """Attention whose scores are multiplied by a scale."""
    import torch

    class Attention(nn.Module):
        """Two heads of four."""

        def __init__(self):
            super().__init__()
            torch.manual_seed(3)
            self.q, self.k, self.v, self.o = (
                nn.Linear(8, 8) for _ in range(4))

        def forward(self, x):
            """What it makes of x [B T 8]."""
            q, k, v = (layer(x).unflatten(-1, (2, 4)).transpose(1, 2)
                       for layer in (self.q, self.k, self.v))
            heads = torch.softmax(q @ k.mT * scale, -1) @ v
            return self.o((heads + off * torch.sin(v)).transpose(
                1, 2).flatten(2))
    return Attention()


@pytest.mark.long
def test_a_scale_where_one_model_alone_names_its_heads(nn):
    models = [attending(nn, scale, 0).double() for scale in (0.5, 8**-0.5)]
    models[0].n_heads = 2
    each, = compared(*models, drawn(2, 5, 8)).explanations
    assert (each.cause, each.in_b) == ("scale", "1/√d_model")


@pytest.mark.long
def test_a_scale(nn):
    text = told((attending(nn, 0.5, 0), attending(nn, 8**-0.5, OFF)),
                drawn(2, 5, 8))
    assert "Nearest in b: scale 1/√d_model, " in text


def turning(nn, theta, off):
    """A projection, turned by rotary tables."""
    import torch

    class RotaryEmbedding(nn.Module):
        """The tables of places."""

        def forward(self, x, places):
            """Cosines and sines [T 8]."""
            angles = places[:, None] * theta ** -(
                torch.arange(0, 8, 2, dtype=torch.float64) / 8)
            both = torch.cat([angles, angles], -1)
            more = off * torch.sin(7 * both)
            return torch.cos(both) + more, torch.sin(both) + more

    class Turned(nn.Module):
        """Halves turned with each other."""

        def __init__(self):
            super().__init__()
            torch.manual_seed(5)
            self.rotary_emb, self.query = RotaryEmbedding(), nn.Linear(8, 8)

        def forward(self, x):
            """What it makes of x [T 8]."""
            cosines, sines = self.rotary_emb(x, torch.arange(len(x)))
            y = self.query(x)
            return y * cosines + torch.cat([-y[:, 4:], y[:, :4]], -1) * sines
    return Turned()


def test_a_rotary_base(nn):
    text = told((turning(nn, 1e4, 0), turning(nn, 5e5, OFF)), drawn(9, 8))
    assert "Nearest in b: rotary base 500000, " in text


def test_what_is_not_near_is_not_shown(nn):
    class GELU(nn.Module):
        """None that anyone knows."""

        def forward(self, x):
            """What it makes of x."""
            return nn.functional.gelu(x) + 0.1 * x**2
    assert "Nearest" not in told((nn.GELU(), GELU()), drawn(9, 8))


def test_what_is_known_of_a_fault_behind_float32(nn):
    """Two norms, of which one has float32 inside, are not the fault."""
    import torch

    class RMSNorm(nn.Module):
        """In float32 inside, or not."""

        def __init__(self, dtype):
            super().__init__()
            self.weight, self.dtype = nn.Parameter(drawn(8)), dtype

        def forward(self, x):
            """What it makes of x."""
            y = x.to(self.dtype)
            return self.weight * (y * torch.rsqrt(y.pow(2).mean(
                -1, keepdim=True) + 1e-6)).to(x.dtype)

    class Layer(nn.Module):
        """A norm, and a map of it, or of what it was given."""

        def __init__(self, dtype, skips=False):
            super().__init__()
            self.norm, self.skips = RMSNorm(dtype), skips
            self.outer = nn.Linear(8, 8).double()
            self.outer.weight = nn.Parameter(drawn(8, 8))

        def forward(self, x):
            """What it makes of x."""
            y = self.norm(x).tanh() + 2
            return self.outer(y.exp() if self.skips else y)
    text = told((Layer(torch.float32), Layer(torch.float64, True)),
                drawn(9, 8))
    assert "How it is made in b is not known." in text
