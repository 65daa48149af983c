"""Float32 inside a float64 model: shown by a replay, or not said at all."""

import numpy as np
import pytest

from benchmarks.porting import hugging_face as porting
from benchmarks.porting.formulas import (
    in_float64, mixed, norm, rescaled, unbiased)
from benchmarks.porting.ways import patched, weights, wrapped
from parity.causes import explain as explaining
from parity.causes.cause import PRECISION
from parity.causes.formulas.narrow import leans
from parity.comparison.result import FLOAT32, INCOMPLETE
from parity.numerics.comparator import DIVERGENCE
from parity.tracing.trace import trace
from parity_tests.support.explaining import of_traces

W, H = 24, 4

pytestmark = pytest.mark.usefixtures("torch")


def explained(a, b, *given, live=True, **named):
    """The Comparison of two models, explained."""
    traces = trace(a, *given, **named), trace(b, *given, **named)
    for each in () if live else traces:
        each._rerun = None
    return of_traces(*traces)


def drawn(model):
    """A model in float64 whose numbers are drawn, the same each time."""
    import torch
    torch.manual_seed(1)
    with torch.no_grad():
        for array in model.double().parameters():
            array.copy_(torch.randn_like(array) * 0.3 + 0.3 * (array.ndim < 2))
    return model.eval()


def x(rows):
    """[1, rows, W]."""
    import torch
    return torch.from_numpy(
        np.random.default_rng(0).normal(size=(1, rows, W)))


def layer(kind, function):
    """A module with a weight and a bias, and what it does with them."""
    from torch import nn
    return drawn(type(kind, (getattr(nn, kind),), {"forward": function})(
        *((W, W) if kind == "Linear" else (W,))))


def layer_norm(eps):
    from torch.nn.functional import layer_norm as normalised
    return lambda self, x: normalised(x, (W,), self.weight, self.bias, eps)


def linear(self, x):
    return x @ self.weight.T + self.bias


def rms(self, x):
    """As T5 has it: the root alone is in float32."""
    square = x.float().pow(2).mean(-1, keepdim=True)
    return self.weight * (x * (square + 1e-5).rsqrt())


def rms_float64(self, x):
    return self.weight * (x * (x.pow(2).mean(-1, keepdim=True)
                               + 1e-5).rsqrt())


TAMPERED = {
    "times 1 + 5e-7": lambda y: y * (1 + 5e-7),
    "times 1 + 1e-7": lambda y: y * (1 + 1e-7),
    "the next position leaks": lambda y: y + 1e-7 * y.roll(1, -2),
    "the next feature leaks": lambda y: y + 2e-7 * y.roll(1, -1),
    "one column": lambda y: y * (1 + 2e-6 * (y.new_ones(W).cumsum(0) == 3)),
}


@pytest.mark.long(32)
@pytest.mark.parametrize("live", [True, False], ids=["live", "saved"])
@pytest.mark.parametrize("rows", [3, 7, 9])
@pytest.mark.parametrize("what", TAMPERED)
@pytest.mark.parametrize("kind, right", [
    ("LayerNorm", layer_norm(1e-5)), ("Linear", linear)],
    ids=["norm", "linear"])
def test_a_small_fault_is_not_rounding(kind, right, what, rows, live):
    def wrong(self, x):
        return TAMPERED[what](right(self, x))
    comparison = explained(layer(kind, right), layer(kind, wrong), x(rows),
                           live=live)
    assert comparison.verdict == DIVERGENCE
    assert PRECISION not in [each.cause for each in comparison.explanations]


@pytest.mark.parametrize("rows", [3, 9])
def test_a_small_epsilon_is_not_rounding(rows):
    comparison = explained(layer("LayerNorm", layer_norm(1e-5)),
                           layer("LayerNorm", layer_norm(1.01e-5)), x(rows),
                           live=False)
    assert comparison.verdict == DIVERGENCE


@pytest.mark.parametrize("rows", [1, 3, 9])
@pytest.mark.parametrize("live", [True, False], ids=["live", "saved"])
def test_a_root_in_float32_is_shown(rows, live):
    a, b = layer("RMSNorm", rms), layer("RMSNorm", rms_float64)
    comparison = explained(a, b, x(rows), live=live)
    assert comparison.verdict == FLOAT32
    only, = comparison.explanations
    assert only.errors["a"] < 1e-14 and only.errors["without"] > 1e-9
    assert only.known == ["In a, that is the root."]


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED)
def test_a_fault_beside_float32_is_not_rounding(change):
    def wrong(self, x):
        return change(rms(self, x))
    comparison = explained(layer("RMSNorm", rms_float64),
                           layer("RMSNorm", wrong), x(9))
    assert comparison.verdict == DIVERGENCE


def test_roots_that_err_to_one_side_are_no_rounding():
    """Each alone is a number that float32 might have."""
    def wrong(self, x):
        square = x.float().pow(2).mean(-1, keepdim=True)
        root = (square + 1e-5).rsqrt() * (1 + 1.2e-7)
        return self.weight * (x * root)
    comparison = explained(layer("RMSNorm", rms_float64),
                           layer("RMSNorm", wrong), x(9))
    assert comparison.verdict == DIVERGENCE


def scaled_root(factor):
    """rms, its root times a factor."""
    def function(self, x):
        square = x.float().pow(2).mean(-1, keepdim=True)
        return self.weight * (x * ((square + 1e-5).rsqrt() * factor))
    return function


@pytest.mark.parametrize("live", [True, False], ids=["live", "saved"])
@pytest.mark.parametrize("rows, excess", [(1, 5e-7), (3, 2e-7), (64, 1e-7)])
def test_what_a_root_may_be_off(rows, excess, live):
    """docs/porting.md has the size that so many rows can tell."""
    comparison = explained(
        layer("RMSNorm", rms_float64),
        layer("RMSNorm", scaled_root(1 + excess)), x(rows), live=live)
    assert comparison.verdict == DIVERGENCE
    assert comparison.explanations[0].cause == "not identified"


def layer_norm_inside(excess=0.0, narrow=True):
    """A layer norm in float32, its mean times 1 + excess."""
    def function(self, x):
        y = x.float() if narrow else x
        centred = y - y.mean(-1, keepdim=True) * (1 + excess)
        root = ((centred**2).mean(-1, keepdim=True) + 1e-5).rsqrt()
        return self.weight * (centred * root).double() + self.bias
    return function


@pytest.mark.long(24)
@pytest.mark.parametrize("live", [True, False], ids=["live", "saved"])
@pytest.mark.parametrize("rows", [9, 64])
@pytest.mark.parametrize("mean", [0.0, 0.3, 30.0, 300.0])
def test_a_mean_in_float32_is_shown(mean, rows, live):
    right = layer("LayerNorm", layer_norm_inside(narrow=False))
    sound = explained(right, layer("LayerNorm", layer_norm_inside()),
                      x(rows) + mean, live=live)
    assert sound.verdict == FLOAT32
    if mean >= 30:
        wrong = explained(right, layer("LayerNorm", layer_norm_inside(1e-7)),
                          x(rows) + mean, live=live)
        assert wrong.verdict == DIVERGENCE


@pytest.mark.parametrize("live", [True, False], ids=["live", "saved"])
@pytest.mark.parametrize("seed", range(4))
def test_equal_rows_count_once(torch, seed, live):
    row = torch.from_numpy(np.random.default_rng(seed).normal(
        size=(1, 1, W))).repeat(1, 64, 1)
    comparison = explained(layer("RMSNorm", rms_float64),
                           layer("RMSNorm", rms), row, live=live)
    assert comparison.verdict == FLOAT32


def test_equal_rows_are_one_row():
    """Each err by three units, and there is one, or there are many."""
    off, rows = np.full((64, 1), 3.0), np.random.default_rng(0).normal(
        size=(64, W))
    assert leans(off, rows) and not leans(off, rows[:1].repeat(64, 0))


def test_a_step_that_gives_something_else_again_shows_nothing(torch):
    """Its local error is that of another call than the traced one."""
    from torch import nn

    class Once(nn.Linear):
        called = 0

        def forward(self, x):
            self.called += 1
            return super().forward(x) * (1 + 1e-5 * (self.called == 1))

    def model(function, kind):
        norm = type("RMSNorm", (nn.RMSNorm,), {"forward": function})
        return drawn(nn.Sequential(norm(W), nn.Linear(W, W), kind(W, W)))
    comparison = explained(
        model(rms_float64, nn.Linear), model(rms, Once), x(9))
    assert comparison.verdict == DIVERGENCE
    assert comparison.first.a == "2"
    assert explained(model(rms_float64, nn.Linear),
                     model(rms, nn.Linear), x(9)).verdict == FLOAT32


def attention(torch, change=None, dtype=None, leak=None, after=None):
    """Attention whose weights nobody sees, with something about its scores,
    or about the weights.
    """
    from torch import nn

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
                nn.Linear(W, W) for _ in range(4))
            self.num_heads = H

        def forward(self, x):
            q, k, v = (part(x).view(*x.shape[:2], H, -1).transpose(1, 2)
                       for part in (self.q_proj, self.k_proj, self.v_proj))
            scores = q @ k.transpose(-1, -2) * (W // H)**-0.5
            hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = (change or (lambda s: s))(scores)
            scores = scores.masked_fill(hidden, leak or -1e9)
            weights = torch.softmax(scores, -1, dtype=dtype).double()
            y = (after or (lambda w: w))(weights) @ v
            return self.out_proj(y.transpose(1, 2).reshape(x.shape))
    return drawn(Attention())


@pytest.mark.long(8)
def test_a_softmax_in_float32_is_shown(torch):
    comparison = explained(attention(torch),
                           attention(torch, dtype=torch.float32), x(9) / 2)
    assert comparison.verdict == FLOAT32


@pytest.mark.long(24)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("wrong", [
    {"change": lambda scores: scores * (1 + 1e-7)},
    {"change": lambda scores: scores + 1e-7 * scores.roll(1, -1)},
    {"leak": -14.0}], ids=["scale", "neighbour", "leak"])
def test_a_fault_of_scores_is_not_rounding(torch, wrong, dtype):
    comparison = explained(attention(torch), attention(
        torch, dtype=getattr(torch, dtype), **wrong), x(9) / 2)
    assert comparison.verdict == DIVERGENCE


@pytest.mark.parametrize("rows", [
    pytest.param(9, marks=pytest.mark.long(24)),
    pytest.param(64, marks=pytest.mark.long)])
def test_a_fault_of_one_row_is_not_rounding(torch, rows):
    def larger(weights):
        return weights * (1 + 4e-7 * (torch.arange(rows) == 5)[:, None])

    def leaking_weight(weights):
        next_key = torch.zeros(rows, rows, dtype=torch.float64)
        next_key[5, 6] = 8e-7
        return weights + next_key

    def shown(**wrong):
        return explained(attention(torch), attention(
            torch, dtype=torch.float32, **wrong), x(rows) / 2).verdict
    assert shown() == FLOAT32
    assert shown(after=larger) == DIVERGENCE
    assert shown(after=leaking_weight) == DIVERGENCE


@pytest.mark.long(24)
def test_what_is_in_float32_is_no_cause(torch):
    """One has the softmax in it, and the other the scale."""
    scale = float(np.float32((W // H)**-0.5)) / (W // H)**-0.5
    comparison = explained(
        attention(torch, dtype=torch.float32),
        attention(torch, lambda scores: scores * scale), x(9) / 2)
    assert comparison.verdict == FLOAT32
    assert {each.cause for each in comparison.explanations} == {PRECISION}


def test_an_epsilon_that_float32_blurs_is_named(torch):
    """Of 9.7e-07, 9.9e-07 and 1e-06, which give the same numbers."""
    def model(eps):
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.LayerNorm(W, eps=eps),
                                   torch.nn.Linear(W, W))
    comparison = explained(model(1e-5), model(1e-6), x(9).float())
    only, = comparison.explanations
    assert (only.cause, only.in_b) == ("epsilon", "1e-06")
    assert only.known == ["By the numbers, epsilon 9.7e-07, 9.9e-07 fits too."]


def test_an_approximate_erf_is_not_rounding(torch):
    from torch import nn

    def erf(x):  # Abramowitz and Stegun, 7.1.26
        t = 1 / (1 + 0.3275911 * x.abs())
        powers = sum(c * t**(i + 1) for i, c in enumerate((
            0.254829592, -0.284496736, 1.421413741, -1.453152027,
            1.061405429)))
        return x.sign() * (1 - powers * (-x * x).exp())

    class GELU(nn.GELU):
        def forward(self, x):
            return x / 2 * (1 + erf(x / 2**0.5))
    models = [drawn(nn.Sequential(nn.Linear(W, W), kind()))
              for kind in (nn.GELU, GELU)]
    assert explained(*models, x(9)).verdict == DIVERGENCE


def t5_norm(module, forward):
    return lambda hidden_states: module.weight * hidden_states * (
        hidden_states.pow(2).mean(-1, keepdim=True)
        + module.variance_epsilon).rsqrt()


#: No float32 in their norms.
LLAMA = wrapped("RMSNorm", norm(in_float64))
T5 = wrapped("T5LayerNorm", t5_norm)


class TestHuggingFace:
    """Llama and T5: norms, rotary tables and softmax are in float32."""

    @pytest.fixture(autouse=True)
    def library(self):
        pytest.importorskip("transformers", reason=(
            "not checked: transformers is not installed"))

    @staticmethod
    def compared(family, *changes, live=True, gradients=None, **config):
        """A model and its copy, changed."""
        a, b = porting.made(family, **config), porting.made(family, **config)
        for change in changes:
            change(b)
        return explained(a, b, live=live, gradients=gradients,
                         **porting.inputs(family))

    @staticmethod
    def scores(*changes):
        """Llama's attention, with something else about it."""
        def make(old):
            for change in changes:
                old = change(old)
            return old
        return patched("LlamaAttention", eager_attention_forward=make)

    @pytest.mark.long(24)
    @pytest.mark.parametrize("live", [True, False], ids=["live", "saved"])
    def test_equal_but_for_norms(self, live):
        assert self.compared("llama", LLAMA, live=live).verdict == FLOAT32
        assert self.compared("t5", T5, live=live).verdict == FLOAT32

    def test_equal_but_for_softmax_and_norms(self):
        comparison = self.compared("llama", LLAMA, self.scores(mixed))
        assert comparison.verdict == FLOAT32
        one, = comparison.explanations
        places = [one.a, *(path for path, _ in one.also)]
        assert "model.layers.1.self_attn.o_proj" in places

    @pytest.mark.parametrize("theta", [10001.0, 10000.01])
    def test_another_base_is_not_rounding(self, theta):
        a, b = porting.made("llama"), porting.made("llama", rope_parameters={
            "rope_type": "default", "rope_theta": theta})
        LLAMA(b)
        comparison = explained(a, b, **porting.inputs("llama"))
        assert comparison.verdict == DIVERGENCE
        assert comparison.explanations[0].cause != PRECISION

    @pytest.mark.long(24)
    @pytest.mark.parametrize("kind, told", [
        ("LlamaMLP", ("factor", "1", "1.0000005")),
        ("LlamaAttention", ("factor", "1", "1.0000005")),
        ("LlamaDecoderLayer", ("not identified", "", ""))])
    def test_a_small_factor_is_not_rounding(self, kind, told):
        factor = 1 + 5e-7

        def times(module, forward):
            def called(*arguments, **keywords):
                result = forward(*arguments, **keywords)
                return (result * factor if not isinstance(result, tuple)
                        else (result[0] * factor, *result[1:]))
            return called
        comparison = self.compared("llama", LLAMA, wrapped(kind, times))
        assert comparison.verdict == DIVERGENCE
        first = comparison.explanations[0]
        assert (first.cause, first.in_a, first.in_b) == told

    def test_a_factor_of_nothing_is_not_rounding(self):
        comparison = self.compared("t5", T5, wrapped(
            "T5LayerSelfAttention", unbiased))
        first = comparison.explanations[0]
        assert comparison.verdict == DIVERGENCE
        assert (first.cause, first.in_a, first.in_b) == ("factor", "1", "0")

    def test_a_large_error_is_no_rounding(self, monkeypatch):
        """Whatever a replay may say of it."""
        monkeypatch.setattr(
            explaining, "following",
            lambda *given: lambda row: "norm" not in row.a)
        comparison = self.compared("llama", LLAMA, self.scores(rescaled(2.0)))
        assert comparison.verdict == DIVERGENCE

    def test_a_small_factor_of_a_weight_is_told(self):
        comparison = self.compared("llama", weights(
            ("1.input_layernorm.weight", lambda w: w * (1 + 1e-7))))
        only, = comparison.explanations
        assert (only.cause, only.in_b) == (
            "scale", "1.0000001 times as large in b")

    @pytest.mark.parametrize("family, change", [
        ("llama", LLAMA), pytest.param("t5", T5, marks=pytest.mark.long)])
    def test_gradients_differ_by_float32_as_well(self, family, change):
        comparison = self.compared(family, change, gradients=lambda output: (
            output.logits**2).mean())
        assert (comparison.verdict, comparison.status) == (INCOMPLETE, 4)
        assert "likely and not shown" in comparison.sentence()
        assert any(row.part == "gradient" for row in comparison.divergences)
        assert any("not shown to the bit" in note
                   for note in comparison.notes)

    @pytest.mark.long(4)
    @pytest.mark.parametrize("part, verdict", [
        (1e-4, DIVERGENCE), (1e-8, INCOMPLETE)])
    def test_a_fault_of_gradients_is_not_rounding(self, part, verdict):
        """Forward it computes the same; backward it leaves out a part."""
        def detached(model):
            LLAMA(model)
            layer = model.model.layers[0].mlp.down_proj
            before = layer.forward
            layer.forward = lambda x: before(
                (1 - part) * x + part * x.detach())
        comparison = self.compared("llama", detached, gradients=lambda output: (
            output.logits**2).mean())
        assert comparison.verdict == verdict
        if verdict == INCOMPLETE:
            return
        assert comparison.first.part == "gradient"
        assert any("more than that makes of them" in note
                   for note in comparison.notes)

    def test_what_is_left_out_is_said(self, monkeypatch):
        monkeypatch.setattr(explaining, "MOST_ROWS", 1)
        comparison = self.compared("llama", self.scores(rescaled(2.0)))
        assert any(note.endswith("was not asked.")
                   for note in comparison.notes)
        assert comparison.verdict == DIVERGENCE


@pytest.mark.long(8)
def test_heads_that_are_apart_and_a_scale_in_float32(torch):
    """As Keras' attention has them, beside one whose heads are together."""
    from torch import nn

    class Heads(nn.Linear):
        def forward(self, x):
            return super().forward(x).reshape(*x.shape[:2], 2, 3)

    class Merged(nn.Linear):
        def forward(self, x):
            return super().forward(x.reshape(*x.shape[:2], 6))

    class Attention(nn.Module):
        def __init__(self, project, output, scale):
            super().__init__()
            torch.manual_seed(0)
            self.query, self.key, self.value = (
                project(6, 6) for _ in range(3))
            self.output, self.num_heads = output(6, 6), 2
            self.hidden = [scale]  # told by no setting

        def forward(self, x):
            q, k, v = (layer(x).reshape(*x.shape[:2], 2, 3).transpose(1, 2)
                       for layer in (self.query, self.key, self.value))
            y = ((q @ k.mT * self.hidden[0]).softmax(-1) @ v).transpose(1, 2)
            return self.output(y if type(self.output) is Merged
                               else y.reshape(x.shape))
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 5, 6)))
    for scale, verdict in ((float(np.float32(3**-0.5)), FLOAT32),
                           (3**-0.5 * (1 + 3e-8), DIVERGENCE)):
        traces = [trace(Attention(*each).double().eval(), x) for each in (
            (nn.Linear, nn.Linear, 3**-0.5), (Heads, Merged, scale))]
        comparison = of_traces(*traces)
        assert comparison.verdict == verdict, comparison.explanations
