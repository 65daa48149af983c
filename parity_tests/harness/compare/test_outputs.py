"""The models' outputs: in their order, under their names, and as stored."""

import pytest

from parity.comparison.compare import compare
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.tracing.trace import trace
from parity_tests.support.engines import usable

#: What a model of two layers may return of the first's and the second's.
RETURNS = {
    "tuple": lambda h, o: (o, h), "exchanged": lambda h, o: (h, o),
    "dict": lambda h, o: {"logits": o, "hidden": h},
    "exchanged dict": lambda h, o: {"logits": h, "hidden": o},
    "one": lambda h, o: o, "transposed": lambda h, o: o.transpose(0, 1),
    "none": lambda h, o: None}


def returning(what):
    """The trace of a model that returns so."""
    usable("torch")
    import torch

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.inner, self.outer = (
                torch.nn.Linear(6, size) for size in (6, 4))

        def forward(self, x):
            hidden = torch.tanh(self.inner(x))
            return RETURNS[what](hidden, self.outer(hidden))

    torch.manual_seed(3)
    return trace(Model().double(), torch.randn(3, 5, 6, dtype=torch.float64))


@pytest.mark.parametrize("a, b, there", [
    ("tuple", "exchanged", "output.1"),
    ("dict", "exchanged dict", "output.hidden")])
def test_exchanged_outputs_are_no_match(a, b, there):
    """All values are somewhere, but not where they are looked for."""
    comparison = compare(returning(a), returning(b))
    assert comparison.verdict == DIVERGENCE
    assert f"in b these are the values of {there}" in comparison.sentence()


def test_a_transposed_output_is_told():
    comparison = compare(returning("one"), returning("transposed"))
    assert comparison.verdict == MATCH
    assert comparison.sentence().endswith(
        "outputs, rearranged: output (b: transpose 1 0 2).")


@pytest.mark.parametrize("turned", [False, True])
def test_a_model_that_one_side_calls_on_some_places_each(turned):
    """It is asked for a cache elsewhere; the card says where."""
    usable("torch")
    import torch

    class Reader(torch.nn.Module):
        def __init__(self, *sizes):
            super().__init__()
            torch.manual_seed(0)
            self.sizes, self.inner = sizes, torch.nn.Linear(6, 6)

        def forward(self, x):
            return torch.cat([self.inner(part).cumsum(1)
                              for part in x.split(self.sizes, 1)], 1)
    torch.manual_seed(3)
    x = torch.randn(2, 8, 6).double()
    traces = [trace(Reader(*sizes).double(), x) for sizes in ((8,), (5, 3))]
    found = compare(*traces[::-1 if turned else 1])
    side, other = "ab" if turned else "ba"
    assert found.verdict == DIVERGENCE
    assert found.notes[:2] == [
        f"{side} runs 'inner' in 2 calls, of 5, 3 places, and {other} in one "
        "of 8.",
        "Where that is a cache, parity invariance --way cache says which "
        "read is wrong, and why."]
