"""A cause is named where it is proved, and never a wrong one."""

import json
import re

import pytest

import parity
from parity.causes.explain import explain
from parity.causes.explanation import UNIDENTIFIED
from parity.comparison.compare import compare
from parity.render.comparison_page import as_html
from parity.tracing.folder import dump, load
from parity.tracing.trace import trace
from parity_tests.support.engines import usable
from parity_tests.support.explaining import D, X, drawn, explained


def chain(norm=None, act=None, seed=0, change=None):
    """Linear, norm, activation, Linear; in torch, nothing zero or one."""
    usable("torch")
    import torch
    from torch import nn
    model = drawn(nn.Sequential(
        nn.Linear(D, D), norm or nn.LayerNorm(D), act or nn.ReLU(),
        nn.Linear(D, 5)), seed=seed, scale=1)
    with torch.no_grad():
        if change:
            change(model)
    return model


def own_norm(compute):
    """A torch norm that computes in its own way."""
    usable("torch")
    from torch import nn

    class OwnNorm(nn.LayerNorm):
        def forward(self, x):
            return compute(self, x - x.mean(-1, keepdim=True), x)
    return OwnNorm(D)


NORMS = {
    "unbiased": (lambda n, c, x: c / (x.var(-1, keepdim=True) + n.eps).sqrt()
                 * n.weight + n.bias, [("variance", "over D - 1")]),
    "outside": (lambda n, c, x: c / (
        x.std(-1, keepdim=True, unbiased=False) + n.eps) * n.weight + n.bias,
        [("epsilon's place", "outside the root")]),
    "annotated": (lambda n, c, x: c / (x.std(-1, keepdim=True) + n.eps)
                  * n.weight + n.bias,
                  [("epsilon's place", "outside the root"),
                   ("variance", "over D - 1")]),
    "rms": (lambda n, c, x: x / ((x * x).mean(-1, keepdim=True) + n.eps).sqrt()
            * n.weight + n.bias, [("mean", "ignored")]),
    "one is added": (lambda n, c, x: c / (
        x.var(-1, keepdim=True, unbiased=False) + n.eps).sqrt()
        * (1 + n.weight) + n.bias, [("scale", "1 is added")]),
    "no bias": (lambda n, c, x: c / (
        x.var(-1, keepdim=True, unbiased=False) + n.eps).sqrt() * n.weight,
        [("bias", "ignored")]),
    "unknown": (lambda n, c, x: 1.01 * c / (
        x.var(-1, keepdim=True, unbiased=False) + n.eps).sqrt() * n.weight
        + n.bias, [(UNIDENTIFIED, "")]),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms(name):
    compute, expected = NORMS[name]
    found = explained(chain(), chain(own_norm(compute)), "torch")
    assert found == [("1", *cause) for cause in expected]


@pytest.mark.parametrize("eps", [1e-6, 1e-12, 3e-4])
def test_epsilons(eps):
    from torch import nn
    found = explained(chain(), chain(nn.LayerNorm(D, eps=eps)), "torch")
    assert found == [("1", "epsilon", f"{eps:g}")]


def test_two_faults_are_both_named():
    from torch import nn
    found = explained(chain(act=nn.GELU()), chain(
        nn.LayerNorm(D, eps=1e-6), nn.GELU(approximate="tanh")), "torch")
    assert found == [("1", "epsilon", "1e-06"),
                     ("2", "activation", "gelu by tanh")]


def square(model):
    model[0].weight.copy_(model[0].weight.T.clone())


def single(model):
    model[0].weight.copy_(model[0].weight.float().double())


def zero(model):
    model[3].bias.zero_()


def missing(model):
    model[0].bias = None


@pytest.mark.parametrize("change, expected", [
    (square, ("0", "kernel", "transposed")),
    (single, ("0", "kernel", "rounded to float32 in b")),
    (zero, ("3", "bias", "zero in b")),
    (missing, ("0", "bias", "missing in b"))])
def test_linear_layers(change, expected):
    assert explained(chain(), chain(change=change), "torch") == [expected]


def gated(added):
    """A product or a sum of a gate and what it gates, and a Linear."""
    usable("torch")
    from torch import nn

    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate_proj, self.up_proj, self.down_proj = (
                nn.Linear(D, D, bias=False) for _ in "123")

        def forward(self, x):
            gate, up = nn.functional.silu(self.gate_proj(x)), self.up_proj(x)
            return self.down_proj(gate + up if added else gate * up)
    return drawn(Gated())


@pytest.mark.parametrize("added, word", [(True, "added"),
                                         (False, "multiplied")])
def test_a_gate_that_is_added(added, word):
    assert explained(gated(not added), gated(added), "torch") == [
        ("down_proj", "gate", word)]


def test_reports_and_files(tmp_path):
    from torch import nn
    import torch
    x = torch.from_numpy(X)
    a, b = trace(chain(), x), trace(chain(nn.LayerNorm(D, eps=1e-3)), x)
    found = parity.compare(a, b)
    assert found.as_json()["explanations"] == []
    first, = parity.explain(found, a, b)
    assert first.errors["a"] < 1e-14 < 1e-3 < first.errors["without"]
    assert first.inputs == {"a": 4, "b": 4}
    data = found.as_json()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["explanations"][0]["cause"] == "epsilon"
    assert "A1e-05B0.001proof" in re.sub("<.*?>", "", as_html(found))
    for name, each in (("a", a), ("b", b)):
        dump(each, tmp_path / name)
    a, b = load(tmp_path / "a"), load(tmp_path / "b")
    again, = explain(compare(a, b), a, b)
    assert (again.cause, again.inputs) == ("epsilon", {"a": 1, "b": 1})


def test_what_the_package_has_not():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = parity.nothing
