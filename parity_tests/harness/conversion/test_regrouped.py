"""Weights that one library groups otherwise: experts, and weight norm."""

import numpy as np
import pytest

from parity.conversion.entry import WEIGHT_NORM, MadeOf, Taken
from parity.conversion.find import find
from parity.conversion.mapping_file import read, write

torch = pytest.importorskip("torch", reason="not run: torch is not installed")
nn = torch.nn

X = torch.tensor(np.random.default_rng(0).normal(size=(2, 5, 8)))


class OneExpert(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up = (nn.Linear(8, 6, bias=False) for _ in range(2))
        self.down = nn.Linear(6, 8, bias=False)

    def forward(self, x):
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class FourExperts(nn.Module):
    """Four experts, packed into two arrays or each by itself."""

    def __init__(self, packed):
        super().__init__()
        self.router = nn.Linear(8, 4, bias=False)
        if packed:
            self.gate_up = nn.Parameter(torch.randn(4, 12, 8))
            self.down = nn.Parameter(torch.randn(4, 8, 6))
        else:
            self.experts = nn.ModuleList(OneExpert() for _ in range(4))

    def one(self, x, i):
        if hasattr(self, "experts"):
            return self.experts[i](x)
        gate, up = (x @ self.gate_up[i].T).chunk(2, -1)
        return (nn.functional.silu(gate) * up) @ self.down[i].T

    def forward(self, x):
        weights = self.router(x).softmax(-1)
        return sum(weights[..., i:i + 1] * self.one(x, i) for i in range(4))


class Normed(nn.Module):
    """A convolution, with its kernel as a scale and a direction or whole."""

    def __init__(self, apart):
        super().__init__()
        self.conv = nn.Conv1d(5, 4, 3)
        if apart:
            self.conv = nn.utils.parametrizations.weight_norm(
                self.conv, dim=2)

    def forward(self, x):
        return self.conv(x).tanh()


def mapped(one, two, tmp_path):
    """The Pairing of two models, its mapping written and read again."""
    torch.manual_seed(0)
    found = find((one.double(), (X,), {}), (two.double(), (X,), {}))
    write(found.mapping, tmp_path / "m.toml")
    assert read(tmp_path / "m.toml").entries == found.mapping.entries
    return found


def test_packed_experts_to_a_list(tmp_path):
    found = mapped(FourExperts(True), FourExperts(False), tmp_path)
    assert found.complete and found.error < 1e-14
    takes = {entry.b: entry.pieces[0] for entry in found.mapping.entries}
    assert takes["experts.2.up.weight"] == Taken(
        "gate_up", "slice 2 3 along 0, reshape 12 8, part 2 of 2 along 0")


def test_weight_norm_to_one_kernel(tmp_path):
    found = mapped(Normed(True), Normed(False), tmp_path)
    assert found.complete and found.error < 1e-14
    entry = next(entry for entry in found.mapping.entries
                 if entry.b == "conv.weight")
    assert entry.join == WEIGHT_NORM


def test_weight_norm_is_over_the_axes_of_one():
    draw = np.random.default_rng(0)
    v, g = draw.normal(size=(4, 5, 3)), draw.normal(size=(4, 1, 1))
    entry = MadeOf("w", (Taken("g"), Taken("v")), WEIGHT_NORM)
    made = entry.made({"g": g, "v": v})
    assert np.allclose(np.linalg.norm(made.reshape(4, -1), axis=1),
                       np.abs(g.ravel()))
    assert entry.shape({"g": g.shape, "v": v.shape}) == (4, 5, 3)
