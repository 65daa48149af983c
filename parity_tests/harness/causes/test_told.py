"""What is told of a difference beside its cause: tables that layers share,
lines of a library, letters, and pairs that are none."""

import pytest

torch = pytest.importorskip(
    "torch", reason="not asked: torch is not installed")

from parity.causes.diff import diff  # noqa: E402
from torch import nn  # noqa: E402

PLACE = torch.arange(5, dtype=torch.float64)
X = torch.randn(2, 5, 6, dtype=torch.float64,
                generator=torch.Generator().manual_seed(0))
SLOPES = torch.tensor([0.5, 0.3, 0.2, 0.1, 0.07, 0.05], dtype=torch.float64)


class Biased(nn.Module):
    """Two layers whose scores have a bias by distance: made once for all of
    the place of the key, or anew in each of the distance, which softmax makes
    one and the same."""

    def __init__(self, shared, slopes=SLOPES):
        super().__init__()
        torch.manual_seed(2)
        self.shared, self.slopes = shared, slopes
        self.layers = nn.ModuleList(
            nn.Linear(6, 6).double() for _ in range(2))

    def forward(self, x):
        bias = self.slopes[:, None, None] * PLACE
        for layer in self.layers:
            y = layer(x)[:, None]
            scores = y @ x[:, None].mT
            if not self.shared:
                bias = self.slopes.clone()[:, None, None] * (
                    PLACE - PLACE[:, None])
            scores = (scores + bias).masked_fill(
                PLACE > PLACE[:, None], -torch.inf)
            x = x + (scores.softmax(-1) @ y).mean(1)
        return x


def test_a_table_that_layers_share_hides_no_other():
    """What follows in each layer is right once its own table is."""
    found = diff(Biased(True), Biased(False, 2 * SLOPES), X)
    each, = found.explanations
    assert found.corrected and each.cause == "bias of the scores", found


def sequence(dilation):
    """What makes two convolutions, which Sequential calls."""
    def make():
        torch.manual_seed(1)
        return nn.Sequential(
            nn.Conv1d(5, 4, 3, padding=1), nn.Tanh(),
            nn.Conv1d(4, 2, 3, padding=dilation, dilation=dilation),
        ).double().eval(), (X,)
    return make


def test_a_layer_that_a_library_calls_is_told_where_it_is_made():
    each, = diff(sequence(1), sequence(2)).explanations
    file, _, line = each.place_b.rpartition(":")
    with open(__file__, encoding="utf-8") as lines:
        assert "dilation=dilation" in lines.read().splitlines()[int(line) - 1]
    assert file == "test_told.py" and not each.called_b


class Adding(nn.Module):
    """Whether a part adds the residual itself, or what it is in does."""

    def __init__(self, inside, eps=1e-5):
        super().__init__()
        torch.manual_seed(3)
        self.inside = inside
        self.part = AddingPart(inside)
        self.norm = nn.LayerNorm(6, eps=eps, dtype=torch.float64)

    def forward(self, x):
        y = self.part(x)
        return self.norm(y if self.inside else x + y)


class AddingPart(nn.Module):
    """A product, with the residual or without."""

    def __init__(self, adds):
        super().__init__()
        self.adds, self.linear = adds, nn.Linear(6, 6).double()

    def forward(self, x):
        y = self.linear(x)
        return x + y if self.adds else y


def test_pairs_whose_numbers_both_have_elsewhere_are_not_the_first():
    found = diff(Adding(True), Adding(False, 1e-3), X)
    row, = (row for row in found.rows if row.a == "part"
            and row.part == "output")
    assert not row.counted and row.note == "no counterparts"
    assert found.first.a == "norm"
    assert "First to differ: norm" in str(found)


class Lettered(nn.Module):
    """A long value that both have, and what is made of it."""

    def __init__(self, wrong=False):
        super().__init__()
        torch.manual_seed(4)
        self.wrong, self.linear = wrong, nn.Linear(6, 6).double()

    def forward(self, x):
        y = torch.tanh(x * 2 + 1) * torch.sigmoid(x * 3 - 1) + x.exp()
        z = torch.sin(y) if self.wrong else torch.cos(y)
        return self.linear(z * y)


def test_letters_in_formulas_are_told():
    found = diff(Lettered(), Lettered(True), X)
    each, = found.explanations
    (letter, text), = each.letters.items()
    assert letter in each.expression_b and "sigmoid" in text
    assert f"{letter} is {text}." in " ".join(str(found).split())
    assert f"{letter} is {text}." in each.text()


class Halved(nn.Module):
    """Moves half of the numbers by a network of the others: with masks, or
    by picking them."""

    def __init__(self, masked, slope=0.01):
        super().__init__()
        torch.manual_seed(5)
        self.masked, self.slope = masked, slope
        self.inner = nn.ModuleList(nn.Linear(6, 4).double() for _ in range(2))
        self.outer = nn.ModuleList(nn.Linear(4, 6).double() for _ in range(2))

    def forward(self, x):
        for i, (inner, outer) in enumerate(zip(self.inner, self.outer)):
            keep, move = torch.arange(i, 6, 2), torch.arange(1 - i, 6, 2)
            if self.masked:
                mask = torch.zeros(6, dtype=x.dtype)
                mask[keep] = 1.0
                h = nn.functional.leaky_relu(inner(x * mask), self.slope)
                x = x * mask + (1 - mask) * (x + outer(h))
                continue
            h = x[..., keep] @ inner.weight[:, keep].T + inner.bias
            h = nn.functional.leaky_relu(h, self.slope)
            y = x.clone()
            y[..., move] = x[..., move] + (
                h @ outer.weight[move].T + outer.bias[move])
            x = y
        return x


def test_what_one_side_alone_computes_hides_no_fault_behind_it():
    """a masks what b picks: the product with the mask is b's nowhere."""
    assert diff(Halved(True), Halved(False), X).verdict == "match"
    found = diff(Halved(True), Halved(False, 0.2), X)
    each, = found.explanations
    assert found.corrected and (each.in_a, each.in_b) == ("0.01", "0.2")


def test_weights_that_differ_are_told_with_how_many():
    def make(change):
        torch.manual_seed(6)
        model = nn.Sequential(nn.Linear(6, 3), nn.Tanh()).double()
        with torch.no_grad():
            change(model[0].weight)
        return model
    other, lost = (diff(make(lambda w: None), make(change), X).explanations[0]
                   for change in (lambda w: w[0, :2].add_(0.25),
                                  lambda w: w[1, 1].fill_(torch.nan)))
    assert other.cause == "parameter" and (
        "2 of 18 numbers are others, by up to 2.5e-01" in other.in_b)
    assert lost.cause == "parameter" and "NaN at 1 of 18 places" in lost.in_b


class Spaced(nn.Module):
    """Two convolutions, as one or apart, padded inside or before."""

    def __init__(self, packed, dilation):
        super().__init__()
        torch.manual_seed(7)
        self.packed, self.dilation = packed, dilation
        self.both = nn.Conv1d(5, 8, 3).double()

    def forward(self, x):
        weight, bias, by = self.both.weight, self.both.bias, self.dilation
        if self.packed:
            h = nn.functional.conv1d(
                x, weight, bias, padding=2 * by, dilation=by)
            one, two = h[..., :x.shape[-1]].chunk(2, 1)
        else:
            x = nn.functional.pad(x, (2 * by, 0))
            one, two = (nn.functional.conv1d(
                x, weight[part], bias[part], dilation=by)
                for part in (slice(4), slice(4, 8)))
        return one.tanh() * two.sigmoid()


def test_another_dilation_is_named_however_it_is_packed():
    found = diff(Spaced(True, 2), Spaced(False, 1), X)
    assert found.corrected
    assert {each.cause for each in found.explanations} == {"dilation"}
