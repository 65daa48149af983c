"""A module that runs again does so as it ran before, or has no local error."""

import numpy as np
import pytest

from parity_io.errors import InputError
from parity.comparison.compare import compare
from parity.comparison.result import OUTPUT
from parity.tracing.trace import WHOLE, trace


def mixed(torch, on, names=("norm", "inner", "outer")):
    """The trace of a model that computes partly in bfloat16."""
    class Mixed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            for name, part in zip(names, (
                    torch.nn.LayerNorm(8), torch.nn.Linear(8, 16),
                    torch.nn.Linear(16, 8))):
                setattr(self, name, part)

        def forward(self, x):
            norm, inner, outer = (getattr(self, name) for name in names)
            x = norm(x)
            with torch.autocast("cpu", torch.bfloat16, enabled=on):
                x = inner(x).relu()
                with torch.no_grad():
                    x = outer(x)
            return x.float()
    torch.manual_seed(1)
    return trace(Mixed(), torch.randn(3, 8))


def test_autocast_is_that_of_the_call(torch):
    made = mixed(torch, True)
    for path in ("norm", "inner", "outer", WHOLE):
        outputs, again = made.step(path).outputs, made.rerun(path, {})
        assert again["output"].dtype == outputs["output"].dtype
        np.testing.assert_array_equal(again["output"], outputs["output"])
    assert made.step("outer").outputs["output"].dtype.name == "bfloat16"
    assert not torch.is_autocast_enabled("cpu") and torch.is_grad_enabled()


def test_with_and_without_autocast(torch):
    found = compare(mixed(torch, False), mixed(torch, True))
    assert found.first.a == "inner"
    assert found.first.reason == "dtype bfloat16, not float32"
    same = compare(mixed(torch, True), mixed(torch, True, ("p", "q", "r")))
    assert same.verdict == "match"


def test_a_module_that_fails_has_no_local_error(torch):
    class Once(torch.nn.Linear):
        ran = False

        def forward(self, x):
            if self.ran:
                raise ZeroDivisionError("once only")
            self.ran = True
            return super().forward(x)

    def made(kind, factor):
        torch.manual_seed(0)
        layers = torch.nn.Sequential(torch.nn.Linear(4, 4), kind(4, 4))
        with torch.no_grad():
            layers[0].weight *= factor
        return trace(layers.double(), torch.ones(2, 4).double())
    b = made(Once, 1.001)
    with pytest.raises(InputError, match="failed when it was run again .Zero"):
        b.rerun("1", {})
    found = compare(made(torch.nn.Linear, 1), b)
    row = next(row for row in found.rows if row.part == OUTPUT
               and row.a == "1")
    assert row.local is None and "ZeroDivisionError: once" in row.local_reason


def test_what_torch_computes_at_once_is_told(torch):
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
    encoder = torch.nn.TransformerEncoder(
        layer, 2, enable_nested_tensor=False).double().eval()
    x = torch.ones(2, 3, 8).double()

    def told():
        with torch.no_grad():
            return [note for note in trace(encoder, x).notes
                    if "set_fastpath_enabled(False)" in note]
    assert told()[0].startswith("torch computed layers.0 and 1 more at once")
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        assert not told()
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
