"""Weights that one library groups otherwise: experts, and weight norm."""

import numpy as np
import pytest

from parity.conversion.entry import WEIGHT_NORM, Rule, Slice
from parity.conversion.experts import Numbered
from parity.conversion.find import find
from parity.conversion.layouts import overlap
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
            self.first = nn.Parameter(torch.randn(4, 12, 8))
            self.second = nn.Parameter(torch.randn(4, 8, 6))
        else:
            self.experts = nn.ModuleList(OneExpert() for _ in range(4))

    def one(self, x, i):
        if hasattr(self, "experts"):
            return self.experts[i](x)
        gate, up = (x @ self.first[i].T).chunk(2, -1)
        return (nn.functional.silu(gate) * up) @ self.second[i].T

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
    assert takes["experts.2.up.weight"] == Slice(
        "first", "slice 2 3 along 0, reshape 12 8, part 2 of 2 along 0")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["FourExperts", "Interleaved", "Flattened"])
def test_a_list_of_experts_to_packed_ones(kind, tmp_path):
    made = globals()[kind]
    found = mapped(made(False), made(True), tmp_path)
    assert found.complete and found.error < 1e-14
    assert {entry.join for entry in found.mapping.entries
            if len(entry.pieces) > 1} == {"stack 0"}


class NumberedExpert(nn.Module):
    """One expert with the names of Llama's first code."""

    def __init__(self, width=6):
        super().__init__()
        self.w1, self.w3 = (nn.Linear(12, width, bias=False)
                            for _ in range(2))
        self.w2 = nn.Linear(width, 12, bias=False)

    def forward(self, x):
        return self.w2(nn.functional.silu(self.w1(x)) * self.w3(x))


class ThreeExperts(nn.Module):
    """Three experts of a width that 3 divides, packed and interleaved or each
    by itself; their names have a number more."""

    def __init__(self, packed):
        super().__init__()
        self.router = nn.Linear(12, 3, bias=False)
        if packed:
            self.gate_up = nn.Parameter(torch.randn(3, 12, 20))
            self.down = nn.Parameter(torch.randn(3, 10, 12))
        else:
            self.experts = nn.ModuleList(NumberedExpert(10) for _ in range(3))

    def one(self, x, i):
        if hasattr(self, "experts"):
            return self.experts[i](x)
        both = x @ self.gate_up[i]
        return (nn.functional.silu(both[..., ::2]) * both[..., 1::2]
                ) @ self.down[i]

    def forward(self, x):
        x = torch.cat([x, x[..., :4].square()], -1)
        weights = self.router(x).softmax(-1)
        return sum(weights[..., i:i + 1] * self.one(x, i) for i in range(3))


@pytest.mark.long
@pytest.mark.parametrize("packed", [True, False])
def test_three_experts_with_numbers_in_their_names(packed, tmp_path):
    found = mapped(ThreeExperts(packed), ThreeExperts(not packed), tmp_path)
    assert found.complete and found.error < 1e-14


class Dense(nn.Module):
    """A gated layer whose two halves are beside each other in one kernel."""

    def __init__(self, apart):
        super().__init__()
        self.inner = NumberedExpert() if apart else nn.ModuleDict({
            "both": nn.Linear(12, 12, bias=False),
            "down": nn.Linear(6, 12, bias=False)})
        self.apart = apart

    def forward(self, x):
        x = torch.cat([x, x[..., :4].square()], -1)
        if self.apart:
            return self.inner(x)
        both = self.inner["both"](x)
        return self.inner["down"](
            nn.functional.silu(both[..., ::2]) * both[..., 1::2])


@pytest.mark.parametrize("apart", [True, False])
def test_a_gated_layer_whose_halves_are_interleaved(apart, tmp_path):
    found = mapped(Dense(apart), Dense(not apart), tmp_path)
    assert found.complete and found.error < 1e-14


def test_parts_that_overlap():
    assert overlap((3, 4, 6), "slice 0 1 along 0", "part 1 of 3 along 0")
    assert overlap((4, 6), "", "part 1 of 2 along 0")
    assert not overlap((4, 6), "part 2 of 2 along 0", "part 1 of 2 along 0")
    assert not overlap((4, 6), "reshape 4 3 2, part 1 of 2 along 2",
                       "reshape 4 3 2, part 2 of 2 along 2")


def test_the_number_of_an_expert():
    numbered = Numbered([f"layers.{layer}.experts.{i}.w{part}.weight"
                         for layer in range(2) for i in range(3)
                         for part in (1, 2, 3)])
    assert numbered.place("layers.1.experts.2.w3.weight", 3) == 2
    assert numbered.place("layers.1.experts.2.w3.weight", 2) == 1
    assert numbered.place("layers.1.experts.2.w3.weight", 4) is None


def test_weight_norm_to_one_kernel(tmp_path):
    found = mapped(Normed(True), Normed(False), tmp_path)
    assert found.complete and found.error < 1e-14
    entry = next(entry for entry in found.mapping.entries
                 if entry.b == "conv.weight")
    assert entry.join == WEIGHT_NORM


def test_weight_norm_is_over_the_axes_of_one():
    draw = np.random.default_rng(0)
    v, g = draw.normal(size=(4, 5, 3)), draw.normal(size=(4, 1, 1))
    entry = Rule("w", (Slice("g"), Slice("v")), WEIGHT_NORM)
    made = entry.made({"g": g, "v": v})
    assert np.allclose(np.linalg.norm(made.reshape(4, -1), axis=1),
                       np.abs(g.ravel()))
    assert entry.shape({"g": g.shape, "v": v.shape}) == (4, 5, 3)


class Recurrent(nn.Module):
    """A GRU with torch's gates, or with the update gate first as Keras has."""

    def __init__(self, theirs):
        super().__init__()
        self.theirs = theirs
        if not theirs:
            self.gru = nn.GRU(8, 6, batch_first=True)
            return
        self.kernel = nn.Parameter(torch.randn(8, 18))
        self.recurrent_kernel = nn.Parameter(torch.randn(6, 18))
        self.bias = nn.Parameter(torch.randn(2, 18))

    def forward(self, x):
        if not self.theirs:
            return self.gru(x)[0]
        h, made = torch.zeros(len(x), 6, dtype=x.dtype), []
        for t in range(x.shape[1]):
            z, r, n = (x[:, t] @ self.kernel + self.bias[0]).chunk(3, -1)
            z2, r2, n2 = (h @ self.recurrent_kernel + self.bias[1]).chunk(3, -1)
            z = (z + z2).sigmoid()
            n = (n + (r + r2).sigmoid() * n2).tanh()
            h = z * h + (1 - z) * n
            made.append(h)
        return torch.stack(made, 1)


class Memory(nn.Module):
    """An LSTM with torch's two biases, or with their sum."""

    def __init__(self, theirs):
        super().__init__()
        self.theirs = theirs
        if not theirs:
            self.lstm = nn.LSTM(8, 6, batch_first=True)
            return
        self.kernel = nn.Parameter(torch.randn(8, 24))
        self.recurrent_kernel = nn.Parameter(torch.randn(6, 24))
        self.bias = nn.Parameter(torch.randn(24))

    def forward(self, x):
        if not self.theirs:
            return self.lstm(x)[0]
        h = c = torch.zeros(len(x), 6, dtype=x.dtype)
        made = []
        for t in range(x.shape[1]):
            i, f, g, o = (x[:, t] @ self.kernel + h @ self.recurrent_kernel
                          + self.bias).chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            made.append(h)
        return torch.stack(made, 1)


@pytest.mark.parametrize("kind", [Recurrent, Memory])
def test_gates(kind, tmp_path):
    found = mapped(kind(False), kind(True), tmp_path)
    assert found.complete and found.error < 1e-14
    takes = {entry.b: [piece.layout for piece in entry.pieces]
             for entry in found.mapping.entries}
    if kind is Recurrent:
        assert takes["kernel"] == [
            f"part {gate} of 3 along 0" for gate in (2, 1, 3)]
        assert len(takes["bias"]) == 6
    else:
        assert found.mapping.entries[-1].join == "sum"


class Interleaved(nn.Module):
    """GPT-OSS' experts: gate and up beside each other, with biases; packed or
    each by itself."""

    def __init__(self, packed):
        super().__init__()
        self.router = nn.Linear(8, 4)
        if packed:
            self.gate_up_proj = nn.Parameter(torch.randn(4, 8, 12))
            self.gate_up_proj_bias = nn.Parameter(torch.randn(4, 12))
            self.down_proj = nn.Parameter(torch.randn(4, 6, 8))
            self.down_proj_bias = nn.Parameter(torch.randn(4, 8))
        else:
            self.experts = nn.ModuleList(nn.ModuleDict({
                "gate_proj": nn.Linear(8, 6), "up_proj": nn.Linear(8, 6),
                "down_proj": nn.Linear(6, 8)}) for _ in range(4))

    def one(self, x, i):
        if hasattr(self, "experts"):
            each = self.experts[i]
            gate, up, down = (each[name] for name in (
                "gate_proj", "up_proj", "down_proj"))
            return down(self.gated(gate(x), up(x)))
        both = x @ self.gate_up_proj[i] + self.gate_up_proj_bias[i]
        return self.gated(both[..., ::2], both[..., 1::2]
                          ) @ self.down_proj[i] + self.down_proj_bias[i]

    def gated(self, gate, up):
        gate = gate.clamp(max=7.0)
        return (up.clamp(-7.0, 7.0) + 1) * gate * torch.sigmoid(gate * 1.702)

    def forward(self, x):
        values, chosen = self.router(x).topk(2, -1)
        weights = torch.zeros_like(self.router(x)).scatter(
            -1, chosen, values.softmax(-1))
        return sum(weights[..., i:i + 1] * self.one(x, i) for i in range(4))


class Flattened(nn.Module):
    """DBRX's experts: all rows of all one after another; or each by itself."""

    def __init__(self, packed):
        super().__init__()
        self.router = nn.Linear(8, 12, bias=False)
        if packed:
            self.w1, self.v1, self.w2 = (nn.Parameter(
                torch.randn(12 * 6, 8)) for _ in range(3))
        else:
            self.experts = nn.ModuleList(OneExpert() for _ in range(12))

    def one(self, x, i):
        if hasattr(self, "experts"):
            return self.experts[i](x)
        w1, v1, w2 = (each.view(12, 6, 8)[i]
                      for each in (self.w1, self.v1, self.w2))
        return (nn.functional.silu(x @ w1.T) * (x @ v1.T)) @ w2

    def forward(self, x):
        weights = self.router(x).softmax(-1)
        return sum(weights[..., i:i + 1] * self.one(x, i) for i in range(12))


def test_experts_whose_gate_and_up_are_interleaved(tmp_path):
    found = mapped(Interleaved(True), Interleaved(False), tmp_path)
    assert found.complete and found.error < 1e-14
    takes = {entry.b: entry.pieces[0] for entry in found.mapping.entries}
    assert takes["experts.3.up_proj.bias"] == Slice(
        "gate_up_proj_bias", "slice 3 4 along 0, reshape 12, reshape 6 2, "
        "part 2 of 2 along 1, reshape 6")


def test_experts_that_are_flattened(tmp_path):
    found = mapped(Flattened(True), Flattened(False), tmp_path)
    assert found.complete and found.error < 1e-14
    takes = {entry.b: entry.pieces[0] for entry in found.mapping.entries}
    assert takes["experts.10.up.weight"] == Slice("v1", "slice 60 66 along 0")
    assert takes["experts.10.down.weight"] == Slice(
        "w2", "slice 60 66 along 0, transpose 1 0")
