"""At which lines, and how often, a difference found by operations is told."""

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="not asked: torch is not installed")

from parity.causes.diff import diff  # noqa: E402
from torch import nn  # noqa: E402

X = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 5, 6)))


class WrongPart(nn.Module):
    """A norm, a product and a factor; ``wrong`` says what is so."""

    def __init__(self, wrong):
        super().__init__()
        self.wrong = wrong
        self.norm, self.linear = nn.LayerNorm(6), nn.Linear(6, 6)
        self.size = nn.Parameter(torch.ones(6))
        self.scaling = 0.25 if wrong == "setting" else 6 ** -0.5

    def scaled(self, x):
        if self.wrong == "forgotten":
            return x
        return x * self.size

    def forward(self, x):
        if self.wrong == "moved":
            return x + self.linear(self.norm(self.scaled(x)))
        y = self.linear(self.norm(x))
        scores = y @ x.mT * self.scaling
        weights = torch.softmax(scores, -2 if self.wrong == "axis" else -1)
        if self.wrong == "exchanged":
            weights, y = weights, x
        return x + self.scaled(weights @ y if self.wrong != "plain" else y)


class WrongStack(nn.Module):
    """Two WrongParts."""

    def __init__(self, wrong):
        super().__init__()
        self.parts = nn.ModuleList(WrongPart(wrong) for _ in range(2))

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x


def told(right, wrong):
    """The Explanations of two stacks with the same weights."""
    def make(kind):
        def of():
            torch.manual_seed(1)
            model = WrongStack(kind).double().eval()
            with torch.no_grad():
                for value in model.parameters():
                    value.add_(0.3 * torch.randn(
                        value.shape, dtype=value.dtype))
            return model, (X,)
        return of
    comparison = diff(make(right), make(wrong))
    assert comparison.corrected, comparison
    return comparison.explanations


def source(place):
    """The text of a told line."""
    file, _, line = place.rpartition(":")
    assert file == "test_lines.py"
    with open(__file__, encoding="utf-8") as lines:
        return lines.read().splitlines()[int(line) - 1].strip()


def test_a_missing_step_stands_between_two_lines():
    each, = told("", "forgotten")
    assert (each.cause, each.in_b) == ("factor", "none")
    assert "weights @ y" in source(each.made_b)
    assert "x + self.scaled" in source(each.place_b)
    assert each.also == [["parts.1", "parts.1"]]


def test_a_number_is_told_where_it_is_set():
    each, = told("", "setting")
    assert each.cause == "attention scale" and "0.25" in each.in_b
    assert "self.scaling =" in source(each.place_b)
    assert "* self.scaling" in source(each.called_b)


def test_another_axis_is_told_of_what_it_is_part_of():
    each, = told("", "axis")
    assert each.cause == "axis of the softmax"
    assert "softmax(scores" in source(each.place_b)


def test_a_step_that_moved_is_told_once():
    each, = told("plain", "moved")
    assert each.cause == "place of factor"
    assert "x * self.size" in source(each.place_b)


def test_another_value_is_told_where_it_is_read():
    each, = told("", "exchanged")
    assert "weights @ y" in source(each.place_b)
