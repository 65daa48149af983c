"""Models that give nothing, NaN or complex numbers, and wrong arguments."""

import copy

import numpy as np
import pytest

from parity_io.errors import InputError
from parity.causes.explain import explain
from parity.causes.formulas import masks
from parity.comparison.arrays import compare_values
from parity.comparison.compare import compare
from parity.numerics.comparator import MATCH
from parity.tracing.folder import dump, load
from parity.tracing.trace import trace
from parity_tests.support.explaining import compared, of_traces

GIVES = {
    "complex": lambda h: h * (1 + 2j),
    "nothing": lambda h: h[:0],
    "nothing of each row": lambda h: h[..., :0],
    "some NaN": lambda h: h.log(),
    "NaN alone": lambda h: h * float("nan"),
    "infinity alone": lambda h: h.abs() * float("inf"),
}

pytestmark = pytest.mark.usefixtures("torch")


def model(give, factor=1.0):
    """A layer, and what is given of what it computes."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(4, 4)

        def forward(self, x):
            return give(self.layer(x)) * factor
    return Model().double()


@pytest.mark.parametrize("what", GIVES)
def test_equal_models_have_no_fault(torch, what):
    x = torch.arange(24.0).reshape(2, 3, 4).double() - 11
    comparison = compared(*(model(GIVES[what]) for _ in range(2)), x)
    assert not comparison.divergences and not comparison.explanations
    assert comparison.verdict == (
        "match" if what in ("complex", "some NaN") else "incomplete")


@pytest.mark.parametrize("factor", [2, 1 + 1e-9, 1j])
def test_other_complex_numbers_differ(torch, factor):
    x = torch.ones(2, 3, 4).double()
    comparison = compared(model(GIVES["complex"]),
                          model(GIVES["complex"], factor), x)
    assert comparison.verdict == "divergence"
    assert comparison.first.error == pytest.approx(abs(factor - 1))


def test_models_of_nothing_and_of_something_differ(torch):
    x = torch.ones(2, 3, 4).double()
    comparison = compared(model(GIVES["nothing"]), model(lambda h: h), x)
    assert comparison.verdict == "divergence"


@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4)])
def test_an_empty_batch(torch, shape):
    comparison = compared(model(lambda h: h), model(lambda h: 2 * h),
                          torch.ones(shape).double())
    assert comparison.verdict == "incomplete"


def test_an_input_of_nan_is_the_same_in_both(torch):
    x = torch.ones(2, 3, 4).double() * float("nan")
    comparison = compared(model(lambda h: h), model(lambda h: h), x)
    assert comparison.verdict == "incomplete" and not comparison.explanations


def test_nan_alone_beside_what_matches_is_said(torch):
    class Model(torch.nn.Linear):
        def forward(self, x):
            y = super().forward(x)
            return y * float("nan"), y
    torch.manual_seed(0)
    layer = Model(4, 4).double()
    comparison = compared(layer, layer, torch.ones(2, 3, 4).double())
    assert comparison.verdict == "incomplete"
    assert comparison.left_out == [
        "output.0, which is NaN or infinite everywhere in both"]


def test_nan_alone_and_other_numbers_differ(torch):
    x = torch.ones(2, 3, 4).double()
    for other in ("some NaN", "infinity alone"):
        assert compared(model(GIVES["NaN alone"]), model(GIVES[other]),
                        x).verdict == "divergence"


def test_a_mask_of_other_sizes_is_refused():
    """Broadcast, it would be of length by length by length."""
    mask = np.ones((2, 1, 1000, 1000), bool)
    assert masks.placed(mask, "mask", 2, 1000, 1000) is mask
    with pytest.raises(ValueError):
        masks.placed(mask, "mask", 1000, 2, 2)


@pytest.fixture
def traces(torch):
    x = torch.ones(2, 3, 4).double()
    return trace(model(lambda h: h), x), trace(model(lambda h: 2 * h), x)


@pytest.mark.parametrize("wrong, message", [
    ({"a": 3}, "a is a int, not a trace"),
    ({"b": None}, "b is a NoneType, not a trace"),
    ({"names": {}}, "names is a dict, not a NameMap"),
    ({"limit": "x"}, "the limit 'x' is not valid")])
def test_what_compare_cannot_take(traces, wrong, message):
    a, b = traces
    with pytest.raises(InputError, match=message):
        compare(**{"a": a, "b": b, **wrong})


def test_what_explain_cannot_take(traces):
    a, b = traces
    comparison = compare(a, b)
    with pytest.raises(InputError, match="a Trace is not a comparison"):
        explain(a, a, b)
    with pytest.raises(InputError, match="a is not the trace that was"):
        explain(comparison, b, a)
    with pytest.raises(InputError, match="b is not the trace that was"):
        explain(comparison, a, a)
    with pytest.raises(InputError, match="b is a NoneType, not a trace"):
        explain(comparison, a, None)


@pytest.mark.parametrize("inside", [True, False])
def test_a_scripted_model_is_refused(torch, inside):
    layer = torch.jit.trace(torch.nn.Linear(4, 4), torch.ones(1, 4))
    whole = torch.nn.Sequential(layer) if inside else layer
    with pytest.raises(InputError, match="is scripted"):
        trace(whole, torch.ones(1, 4))


def test_a_model_without_numbers_is_refused(torch):
    with pytest.raises(InputError, match="meta device"):
        trace(torch.nn.Linear(4, 4, device="meta"), torch.ones(1, 4))


#: What of a model's output is another one, or in one model alone: what is
#: given of two arrays in each, the verdict, and what is said.
PARTS = {
    "a part less": (lambda h, k: {"a": h, "b": k}, lambda h, k: {"a": h},
                    "incomplete", "output.b of a, which has no partner"),
    "a part more": (lambda h, k: {"a": h}, lambda h, k: {"a": h, "b": k},
                    "incomplete", "output.b of b, which has no partner"),
    "None for it": (lambda h, k: (h, None), lambda h, k: (h, k),
                    "incomplete", "output.1 of b, which has no partner"),
    "a number": (lambda h, k: {"a": h, "n": 3.0},
                 lambda h, k: {"a": h, "n": 4.0},
                 "divergence", "the output.n of (model): 4.0 in b, 3.0 in a"),
    "a text": (lambda h, k: (h, "mean"), lambda h, k: (h, "sum"),
               "divergence", "the output.1 of (model): 'sum' in b, 'mean'"),
    "empty": (lambda h, k: (h, h[:, :0]), lambda h, k: (h, h[:0]),
              "divergence", "shape [0, 3, 4] in b, [2, 0, 4] in a"),
    "a set": (lambda h, k: (h, {1}), lambda h, k: (h, {2}),
              "incomplete", "output.1, which is a set and no array"),
    "another kind": (lambda h, k: (h, k), lambda h, k: (h, k.int()),
                     "incomplete", "output.1, which is of another kind in b"),
    "the same number": (lambda h, k: (h, 3.0, None), lambda h, k: (h, 3.0),
                        "match", "including the models' outputs"),
    "a near number": (lambda h, k: (h, 3.0), lambda h, k: (h, 3.0 + 1e-15),
                      "match", "including the models' outputs"),
}


@pytest.mark.parametrize("live", [True, False], ids=["live", "saved"])
@pytest.mark.parametrize("what", PARTS)
def test_every_part_of_the_outputs_counts(torch, what, live, tmp_path):
    *gives, verdict, said = PARTS[what]
    x = torch.arange(24.0).reshape(2, 3, 4).double() - 11

    class Parts(torch.nn.Module):
        def __init__(self, give):
            super().__init__()
            self.give, self.layer = give, model(lambda h: h)

        def forward(self, x):
            return self.give(self.layer(x), self.layer(-x))
    traces = [trace(Parts(give), x) for give in gives]
    if not live:
        for each, name in zip(traces, "ab"):
            dump(each, tmp_path / name)
        traces = [load(tmp_path / name) for name in "ab"]
    comparison = of_traces(*traces)
    assert comparison.verdict == verdict and said in comparison.sentence()
    assert comparison.as_json()["left_out"] == comparison.left_out


def test_a_sparse_output_is_no_compiled_one(torch):
    with pytest.raises(InputError, match="it is of sparse tensors; let it"):
        trace(model(lambda h: h.to_sparse()), torch.ones(2, 4).double())


def test_modules_within_vmap_are_told(torch):
    """They see no tensors with numbers; the model's own call does."""
    class Mapped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 4).double()

        def forward(self, x):
            return torch.vmap(self.layer)(x)
    torch.manual_seed(0)
    a, x = Mapped(), torch.ones(2, 3, 4).double()
    traces = [trace(each, x) for each in (a, copy.deepcopy(a))]
    comparison = compare(*traces)
    assert comparison.verdict == MATCH
    assert any("within torch.vmap" in note for note in comparison.notes)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_zeros_beside_what_is_not_finite(value):
    """Such as a mask that is added: 0 and -∞."""
    mask = np.triu(np.full((4, 4), value), 1)
    mask[np.tril_indices(4)] = 0
    assert compare_values(mask.copy(), mask, 1e-12, "float64")[0].verdict == (
        MATCH)
    other = mask.copy()
    other[3, 0] = 1
    found, _ = compare_values(other, mask, 1e-12, "float64")
    assert found.reason == "not zero where the truth is, beside NaN or infinity"
    other[3, 0] = value
    found, _ = compare_values(other, mask, 1e-12, "float64")
    assert found.verdict == "divergence"


def test_of_whole_numbers_the_first_that_differs_is_told():
    one = np.arange(12).reshape(3, 4)
    two = one.copy()
    two[1, 2], two[2, 3] = 9, 0
    found, _ = compare_values(two, one, 1e-12, None)
    assert found.reason == "2 of 12 elements differ, first at [1, 2]: 9, not 6"
    found, _ = compare_values(np.array(True), np.array(False), 0.0, None)
    assert found.reason == "1 of 1 elements differ: True, not False"
