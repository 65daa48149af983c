"""Models in MLX that are not ours, traced and compared with PyTorch's."""

import numpy as np
import pytest

import parity
from parity.tracing.trace import WHOLE
from parity_tests.support.explaining import of_traces

mx = pytest.importorskip(
    "mlx.core", reason="not checked: mlx is not installed",
    exc_type=ImportError)
torch = pytest.importorskip(
    "torch", reason="not checked: torch is not installed",
    exc_type=ImportError)

import mlx.nn as nn  # noqa: E402

X = np.random.default_rng(0).normal(size=(3, 6)).astype(np.float32)


class Tiny(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.a, self.n = nn.Linear(6, 7), nn.LayerNorm(7, eps)
        self.b = [nn.Linear(7, 5)]

    def __call__(self, x):
        return self.b[0](nn.relu(self.n(self.a(x))))


class TorchSmall(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.n = torch.nn.Linear(6, 7), torch.nn.LayerNorm(7)
        self.b = torch.nn.ModuleList([torch.nn.Linear(7, 5)])

    def forward(self, x):
        return self.b[0](torch.relu(self.n(self.a(x))))


def pair(eps):
    """The same model in PyTorch and, with an ε, in MLX."""
    theirs, ours = TorchSmall(), Tiny(eps)
    for one, other in ((ours.a, theirs.a), (ours.b[0], theirs.b[0])):
        one.weight = mx.array(other.weight.detach().numpy())
        one.bias = mx.array(other.bias.detach().numpy())
    return theirs, ours


def test_steps_and_gradients_match_torch():
    theirs, ours = pair(1e-5)
    a = parity.trace(theirs, torch.tensor(X),
                     gradients=lambda y: (y * y).sum())
    b = parity.trace(ours, mx.array(X), gradients=lambda y: mx.sum(y * y))
    assert [step.path for step in b.steps] == ["a", "n", "b.0", WHOLE]
    assert set(b.parameters) == set(a.parameters) == set(b.gradients)
    found = parity.compare(a, b)
    assert found.verdict == "match" and "23 arrays" in str(found)


def test_a_cause_is_named():
    theirs, ours = pair(1e-2)
    found = of_traces(parity.trace(theirs, torch.tensor(X)),
                      parity.trace(ours, mx.array(X)))
    assert found.verdict == "divergence" and "B mlx    0.01" in str(found)


def test_a_trace_changes_nothing():
    """Weights, the random state and the classes are as they were."""
    _, ours = pair(1e-5)
    ours.dropout = nn.Dropout(0.5)
    call, weight = nn.Linear.__call__, ours.a.weight
    mx.random.seed(7)
    expected = np.array(mx.random.normal((4,)))
    mx.random.seed(7)
    found = parity.trace(ours, mx.array(X))
    assert nn.Linear.__call__ is call and ours.a.weight is weight
    assert np.array_equal(np.array(mx.random.normal((4,))), expected)
    again = found.rerun("n", {})["output"]
    assert again.tobytes() == found.step("n").outputs["output"].tobytes()


def test_float64_and_bfloat16_stay():
    linear = nn.Linear(6, 4)
    for dtype, name in ((mx.float64, "float64"), (mx.bfloat16, "bfloat16")):
        linear.set_dtype(dtype)
        found = parity.trace(linear, mx.array(X).astype(dtype))
        assert found.dtype == name
        again = found.rerun(WHOLE, {})["output"]
        assert again.tobytes() == found.step(
            WHOLE).outputs["output"].tobytes()


def test_what_is_compiled_is_told():
    class Compiled(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(6, 4)
            self.function = mx.compile(lambda x: self.inner(x))

        def __call__(self, x):
            return self.function(x)

    found = parity.trace(Compiled(), mx.array(X))
    assert [step.path for step in found.steps] == [WHOLE]
