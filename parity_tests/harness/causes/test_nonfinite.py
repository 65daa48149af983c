"""The first NaN or infinity is found, with the operation that gave it."""

import json
import re
import warnings

import numpy as np
import pytest

from parity.causes.explain import explain
from parity.comparison.compare import compare
from parity.matching.steps import suggest
from parity.tracing.folder import dump
from parity.tracing.trace import trace
from parity_tests.support.commands import invoke
from parity_tests.support.engines import usable

D = 8
IDS = np.array([[1, 2, 3, 4], [5, 6, 7, 0]])


def model(change=None, inner=None, dtype="float64"):
    """Embedding, something in between, norm, Linear; in torch."""
    usable("torch")
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(11, D)
            self.norm, self.out = nn.LayerNorm(D), nn.Linear(D, 5)

        def forward(self, ids):
            x = self.table(ids)
            return self.out(self.norm(inner(torch, x) if inner else x))
    made = Model().to(getattr(torch, dtype)).eval()
    draw = np.random.default_rng(0)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(torch.from_numpy(
                0.3 + draw.normal(size=tuple(parameter.shape))))
        if change:
            change(torch, made)
    return made


def traced(made):
    return trace(made, usable("torch").to_native(IDS, "cpu"))


def explained(a, b):
    """The texts of the Explanations of two models."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        a, b = traced(a), traced(b)
        comparison = compare(a, b, suggest(a, b))
        assert comparison.status == 1
        found = explain(comparison, a, b)
        assert comparison.as_json()["explanations"]
        assert found[0].b in str(comparison)
    return [each.text() for each in found]


def test_an_embedding_that_differs():
    text, = explained(model(), model(
        lambda torch, made: made.table.weight.mul_(1.5)))
    assert "1.5 times as large" in text


def zeros(torch, made):
    """Zero in the second row of each sequence, in both models."""
    made.table.weight[2] = made.table.weight[6] = 0


def positive(torch, made):
    zeros(torch, made)
    made.table.weight.abs_()


#: name -> (a change of both, what b does to the table's output, the operation).
ARISE = {
    "log 0": (positive, lambda t, x: t.log(x), "log 0"),
    "log": (None, lambda t, x: t.log(x), "log of a negative number"),
    "root": (None, lambda t, x: t.sqrt(x), "root of a negative number"),
    "root 0": (positive, lambda t, x: t.rsqrt(x), "1/√0"),
    "0/0": (zeros, lambda t, x: x / x.sum(-1, keepdim=True), "0/0"),
    "length": (zeros, lambda t, x: x / x.norm(dim=-1, keepdim=True), "0/0"),
    "std": (zeros, lambda t, x: (x - x.mean(-1, keepdim=True)) / x.std(
        -1, keepdim=True, unbiased=False), "0/0"),
    "1/0": (None, lambda t, x: x / (x - x), "a division by 0"),
    "∞": (None, lambda t, x: x * t.inf, "∞ in the program"),
    "NaN": (None, lambda t, x: x * t.nan, "NaN in the program"),
}


@pytest.mark.parametrize("name", ARISE)
def test_an_operation_between_modules(name):
    both, inner, operation = ARISE[name]
    a, b = model(both), model(both, inner)
    for pair, side in (((a, b), "b"), ((b, a), "a")):
        text, = explained(*pair)
        assert text.startswith(f"{side}'s first ") and " norm, in " in text
        assert re.search(
            rf": {re.escape(operation)} \(\w+ at test_nonfinite.py:\d+\)",
            text), text
        if both:
            assert "in 2 of 8 rows, the first [0, 1]" in text


def no_epsilon(torch, made):
    zeros(torch, made)
    made.norm.eps = 0.0


def test_a_norm_of_a_constant_row_without_epsilon():
    text, = explained(model(zeros), model(no_epsilon))
    assert text.startswith(
        "b's first NaN stands in the output of norm, in 2 of 8 rows, the "
        "first [0, 1]: 1/√0 (rsqrt at test_nonfinite.py:")


def test_an_overflow_in_the_dtype():
    def large(torch, made):
        made.out.weight.mul_(30_000)
    text, = explained(model(dtype="float16"), model(large, dtype="float16"))
    assert text.startswith("b's first infinity stands in the output of out")
    assert "overflow in float16, whose largest number is 6.55e+04" in text


def test_a_softmax_of_a_fully_masked_row():
    usable("torch")
    from torch import nn

    def with_softmax(value):
        def change(torch, made):
            made.norm, made.soft = nn.Identity(), nn.Softmax(-1)
            made.fill = value
        made = model(change)

        def forward(ids):
            import torch
            x = made.table(ids)
            rows = (torch.arange(4) == 1)[:, None]
            return made.out(made.soft(x.masked_fill(rows, made.fill)))
        made.forward = forward
        return made
    text, = explained(with_softmax(-1e9), with_softmax(-np.inf))
    assert "in 2 of 8 rows, the first [0, 1]" in text
    assert "∞ - ∞ (subtract at test_nonfinite.py:" in text


def test_an_infinity_that_is_handed_on_is_given_to_its_operation():
    """Nor to one that hands it on, but to the one that gave it."""
    def handing_on(torch, made):
        made.norm = torch.nn.Identity()
    found = explained(model(handing_on), model(
        handing_on, lambda t, x: t.log(0 * x.abs())))
    assert found and all(": log 0 (log at test_" in text for text in found)


def test_a_parameter_that_holds_it():
    def spoil(torch, made):
        made.out.bias[2] = torch.nan
    text, = explained(model(), model(spoil))
    assert text == ("b's first NaN stands in the parameter out.bias, in 1 of "
                    "5 numbers.")  # which no operation gave it


def test_nothing_finite_in_both():
    def spoil(torch, made):
        made.table.weight.fill_(torch.nan)

    def spoil_both(torch, made):
        spoil(torch, made)
        made.out.weight.mul_(2)
    one, two = explained(model(spoil), model(spoil_both))
    assert one.startswith("a's first NaN stands in the parameter table")
    assert two.startswith("b's first NaN stands in the parameter table")


def test_the_command(tmp_path):
    """It says so, and writes its page and its report."""
    for name, made in (("a", model()), ("b", model(
            inner=lambda t, x: t.log(x)))):
        dump(traced(made), tmp_path / name)
    answer = invoke(
        "compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json",
        str(tmp_path / "found.json"), "--html", str(tmp_path / "found.html"))
    assert answer.exit_code == 1
    words = " ".join(answer.output.split())
    assert "first NaN" in words and "B the input of norm" in words
    assert "From which operation is not identified" in words
    report = json.loads((tmp_path / "found.json").read_text())
    assert report["explanations"][0]["cause"] == "first NaN"
    assert "first NaN" in (tmp_path / "found.html").read_text()
