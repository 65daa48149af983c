"""Faults planted into Hugging Face's own models: the cause is told, or none."""

import numpy as np
import pytest

from benchmarks.porting import hugging_face as porting
from benchmarks.porting.every import faults
from benchmarks.porting.hugging_face import W
from benchmarks.porting.kits import kit
from benchmarks.porting.planted import RIGHT, Planted, outcome_of
from benchmarks.porting.ways import times, wrapped
from parity.causes.cause import PRECISION
from parity.causes.explain import explain
from parity.causes.formulas.activation import ROUNDED, erfc
from parity.comparison.compare import compare
from parity.comparison.result import FLOAT32
from parity.numerics.comparator import DIVERGENCE
from parity.tracing.trace import trace
from parity_tests.support.engines import usable
from parity_tests.support.explaining import compared, of_traces


@pytest.fixture(autouse=True)
def hugging_face():
    pytest.importorskip(
        "transformers", reason="not checked: transformers is not installed")
    usable("torch")


ALL = faults()


def kind(planted):
    """The cause that is to be told first, and into what the model was ported.
    """
    first = (planted.causes or [()])[0]
    return first[:1], planted.family.partition(" to ")[2]


@pytest.mark.long
@pytest.mark.parametrize(
    "planted", {kind(planted): planted for planted in ALL}.values(),
    ids=lambda planted: f"{planted.family}: {planted.name}")
def test_planted(planted):
    """One fault of each kind; at night ``benchmarks.porting`` plants all."""
    outcome = outcome_of(planted)
    assert outcome.verdict == RIGHT, outcome.told


def interleaved(angle):
    """Marian has all sines, then all cosines."""
    return np.stack((np.sin(angle), np.cos(angle)), -1).reshape(len(angle), W)


@pytest.mark.parametrize("rows, steps, told", [
    (interleaved, W, ("positions' layout", "in halves", "interleaved")),
    (lambda angle: np.concatenate((np.sin(angle), np.cos(angle)), -1), W - 2,
     ("positions' exponent", "2i/d", "i/(d/2 - 1)"))])
def test_sinusoids_of_another_kind(rows, steps, told):
    """Through float32, as Marian's are."""
    import torch

    def table(shape, *given, **named):
        angle = np.arange(shape[1])[:, None] / 10000.0**(
            2 * np.arange(W // 2) / steps)
        return torch.from_numpy(rows(angle)).float().double()
    outcome = outcome_of(Planted("marian", "", [told], change=wrapped(
        "SinusoidalPositional", lambda module, forward: table)))
    assert outcome.verdict == RIGHT, outcome.told


@pytest.mark.parametrize("inside", [
    lambda x: x * erfc(-x * float(np.float32(0.5**0.5))) / 2,
    lambda x: x * erfc(-x * 0.5**0.5 * (1 + 3e-8)) / 2],
    ids=["float32", "another number"])
@pytest.mark.parametrize("gated", [False, True])
def test_a_constant_in_float32_is_shown(inside, gated):
    """Another constant that is as near is no rounding."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self, act):
            super().__init__()
            torch.manual_seed(0)
            self.inner, self.outer = (torch.nn.Linear(8, 8) for _ in "12")
            self.act = act

        def forward(self, x):
            y = self.act(self.inner(x))
            return self.outer(y * x if gated else y)
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 8)))
    comparison = compared(*(Model(act).double().eval() for act in (
        torch.nn.functional.gelu,
        lambda x: torch.from_numpy(inside(x.detach().numpy())))), x)
    number = float(np.float32(0.5**0.5))
    sound = np.allclose(inside(np.ones(1)), erfc(-number) / 2, 0, 1e-15)
    assert (comparison.verdict == FLOAT32) == sound


@pytest.mark.long(8)
@pytest.mark.parametrize("excess", [0.0, 1e-6, 1e-9])
@pytest.mark.parametrize("path", [
    "layers.1.attention", "layers.1.attention.o_proj", "layers.1.outer",
    "layers.0.attention"])
def test_what_is_handed_on_is_no_further_difference(path, excess, monkeypatch):
    """A dropout hands on in one what attention gives in the other."""
    import torch

    def gelu(x):
        return torch.from_numpy(ROUNDED["gelu"](x.detach().numpy()))
    monkeypatch.setitem(kit("torch").act, "gelu", gelu)
    planted = next(each for each in ALL if (each.family, each.name) == (
        "BERT to torch", "equal"))
    (a, ids, named), (b, theirs, _) = planted.models(planted)
    module = b.get_submodule(path)
    module.forward = times(1 + excess)(module, module.forward)
    comparison = of_traces(trace(a, *ids, **named), trace(b, *theirs))
    assert comparison.verdict == (DIVERGENCE if excess else FLOAT32)
    assert (comparison.explanations[0].cause == PRECISION) == (not excess)


def llama(of, **config):
    """Its traces with float32 inside and in float64, the other with a fault.
    """
    planted = next(each for each in ALL if (each.family, each.name) == (
        "llama", "norms in float64"))
    a, b = porting.made(of), porting.made(of, **config)
    planted.change(b)
    given = porting.inputs(of)
    return trace(a, **given), trace(b, **given)


def test_float32_inside_is_a_verdict_of_its_own():
    traces = llama("llama")
    comparison = compare(*traces)
    assert comparison.verdict == "divergence"  # until it is explained
    only, = explain(comparison, *traces)
    assert (only.cause, only.in_a, only.in_b) == (
        "precision inside", "in float32", "in float64")
    assert comparison.verdict == FLOAT32 and comparison.status == 0
    assert comparison.sentence().startswith(
        "The models are equal but for float32 inside model.layers.0.input_")


def test_a_fault_above_float32_is_named_first():
    traces = llama("llama", rms_norm_eps=1e-7)
    comparison = compare(*traces)
    first, *_ = explain(comparison, *traces)
    assert (first.cause, first.in_b) == ("epsilon", "1e-07")
    assert comparison.verdict == "divergence"


def test_a_fault_behind_float32_is_named_first():
    traces = llama("llama", hidden_act="gelu")
    comparison = compare(*traces)
    first, second = explain(comparison, *traces)
    assert (first.cause, first.in_b) == ("activation", "gelu")
    assert second.cause == "precision inside"
    assert comparison.first.a == first.a
    assert comparison.verdict == "divergence"


@pytest.mark.parametrize("eps", [1e-5, 1e-8])
def test_an_epsilon_as_small_as_float32_rounding_is_told_as_such(eps):
    """On one input alone: no rounding makes all rows larger."""
    usable("torch")
    import torch

    def traced(eps):
        norm = torch.nn.LayerNorm(24, eps=eps).double().eval()
        norm.weight.data = torch.linspace(0.5, 2, 24).double()
        draw = np.random.default_rng(0).normal(size=(3, 5, 24))
        taken = trace(norm, torch.from_numpy(draw))
        taken._rerun = None
        return taken
    traces = traced(1e-7), traced(eps)
    told = explain(compare(*traces), *traces)
    assert [(each.cause, each.in_b) for each in told] == [
        ("epsilon", f"{eps:g}")]
