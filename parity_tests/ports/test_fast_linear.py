"""PyTorch's linear maps of few rows, against torch.nn.functional's."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

#: x's leading axes: none, one row, few, and more than pays.
SHAPES = ((), (1,), (1, 1), (4, 1), (2, 3), (0, 1), (3, 40))

#: How many features go in: of a small row, and of one too wide for it.
WIDTHS = (3, 128, 700, 2500)


@pytest.mark.parametrize("columns", (False, True))
@pytest.mark.parametrize("biased", (False, True))
@pytest.mark.parametrize("dtype, limit", [
    (torch.float64, 1e-13), (torch.float32, 1e-5)])
def test_few_rows(columns, biased, dtype, limit, monkeypatch):
    """The same values, shape and dtype; what is handed in stays as it is."""
    from impl_torch.fast import linear
    from impl_torch.fast.linear import product
    monkeypatch.setattr(linear, "COLUMNS", columns)
    draw = torch.Generator().manual_seed(0)
    for shape, width in itertools.product(SHAPES, WIDTHS):
        x, weight, bias = (
            torch.randn(size, generator=draw, dtype=dtype)
            for size in ((*shape, width), (5, width), (5,)))
        bias = bias if biased else None
        before = x.clone()
        with torch.no_grad():
            y = product(x, weight, bias)
        expected = torch.nn.functional.linear(x, weight, bias)
        assert (y.shape, y.dtype) == (expected.shape, dtype)
        assert y.is_contiguous() and torch.equal(x, before)
        np.testing.assert_allclose(
            y, expected, rtol=limit, atol=limit * width**0.5)


def test_gradients_are_functionals():
    """Where a gradient is wanted, there is one."""
    from impl_torch.fast.linear import product
    x, weight = torch.randn(2, 3), torch.randn(4, 3, requires_grad=True)
    product(x, weight, None).sum().backward()
    torch.testing.assert_close(weight.grad, x.sum(0).expand(4, 3))
