"""PyTorch's linear maps of few and of many rows, against torch's own."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

#: x's leading axes: none, one row, few, and many.
SHAPES = ((), (1,), (1, 1), (4, 1), (2, 3), (0, 1), (3, 40))

#: How many features go in: of a small row, and of wide ones.
WIDTHS = (3, 128, 700, 2500)


def kinds():
    """What maps x by weight and bias, by name, and the dtypes it knows."""
    from impl_torch.fast import layout, linear
    from impl_torch.fast.linear import product
    both = torch.float64, torch.float32
    yield "as stored", lambda x, *given: product(x, *given), both
    yield "turned", lambda x, *given: layout.Turned(*given)(x), both
    if linear.HAS_ONEDNN:
        yield ("packed", lambda x, *given: layout.Packed(*given)(x),
               (torch.float32,))


@pytest.mark.parametrize("biased", (False, True))
@pytest.mark.parametrize("dtype, limit", [
    (torch.float64, 1e-13), (torch.float32, 1e-5)])
def test_few_rows(biased, dtype, limit):
    """The same values, shape and dtype; what is handed in stays as it is."""
    draw = torch.Generator().manual_seed(0)
    for (name, function, dtypes), shape, width in itertools.product(
            kinds(), SHAPES, WIDTHS):
        if dtype not in dtypes:
            continue
        x, weight, bias = (
            torch.randn(size, generator=draw, dtype=dtype)
            for size in ((*shape, width), (5, width), (5,)))
        bias = bias if biased else None
        before = x.clone()
        with torch.no_grad():
            y = function(x, weight, bias)
        expected = torch.nn.functional.linear(x, weight, bias)
        assert (y.shape, y.dtype) == (expected.shape, dtype), name
        assert y.is_contiguous() and torch.equal(x, before), name
        np.testing.assert_allclose(
            y, expected, rtol=limit, atol=limit * width**0.5)


def test_gradients_are_functionals():
    """Where a gradient is wanted, there is one."""
    from impl_torch.fast.linear import product
    x, weight = torch.randn(2, 3), torch.randn(4, 3, requires_grad=True)
    product(x, weight, None).sum().backward()
    torch.testing.assert_close(weight.grad, x.sum(0).expand(4, 3))


@pytest.mark.parametrize("shape", [(1,), (8, 9), (3, 40), (2, 5, 13)])
@pytest.mark.parametrize("biased", (False, True))
@pytest.mark.parametrize("turned", (False, True))
def test_by_onednn(shape, biased, turned, monkeypatch):
    """By oneDNN where it is: outputs and gradients those of float64."""
    from impl_torch.fast import linear
    from impl_torch.fast.linear import product
    monkeypatch.setattr(linear, "ONEDNN", linear.HAS_ONEDNN)
    draw = torch.Generator().manual_seed(0)
    x, weight, bias = (torch.randn(size, generator=draw) for size in (
        (24, *shape) if turned else (*shape, 24), (7, 24), (7,)))
    x = x.movedim(0, -1) if turned else x
    by = torch.randn((*shape, 7), generator=draw)

    def results(function, dtype):
        given = [value.to(dtype).requires_grad_() for value in (
            (x, weight, bias) if biased else (x, weight))]
        y = function(*given, *() if biased else (None,))
        y = torch.relu_(y)  # as fast/feed_forward.py does
        return y, *torch.autograd.grad(y, given, by.to(dtype))

    for own, truth in zip(results(product, torch.float32), results(
            torch.nn.functional.linear, torch.float64), strict=True):
        assert own.dtype == torch.float32
        assert (own - truth).norm() < 1e-6 * truth.norm()


def test_only_what_is_asked_for_has_a_gradient(monkeypatch):
    """Of x alone, of W alone, and none of a second order, in a sentence."""
    from impl_torch.fast import linear
    from impl_torch.fast.linear import product
    if not linear.HAS_ONEDNN:
        pytest.skip("not checked: oneDNN cannot be asked on this machine")
    monkeypatch.setattr(linear, "ONEDNN", True)
    x, weight = torch.randn(70, 3), torch.randn(4, 3)
    for asked, other in ((x, weight), (weight, x)):
        asked.requires_grad_(), other.requires_grad_(False)
        product(x, weight, None).sum().backward()
        assert asked.grad.shape == asked.shape and other.grad is None
        asked.grad = None
    first, = torch.autograd.grad(
        product(x, weight, None).pow(2).sum(), weight, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()
