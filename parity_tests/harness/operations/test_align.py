"""Values of two programs are found to be the same, up to order and shape."""

import numpy as np
import pytest

from parity_tests.support.engines import usable

usable("torch")

import torch  # noqa: E402

from parity.operations.align import Alignment  # noqa: E402
from parity.operations.signature import signature  # noqa: E402
from parity.operations.torch import Runner  # noqa: E402

X = torch.linspace(-2, 2, 60, dtype=torch.float64).reshape(2, 5, 6).sin()
W = torch.linspace(-1, 2, 36, dtype=torch.float64).reshape(6, 6).cos()


class WithKernel(torch.nn.Module):
    """A function of an input and a square kernel."""

    def __init__(self, function, kernel=W):
        super().__init__()
        self.function = function
        self.kernel = torch.nn.Parameter(kernel.clone())

    def forward(self, x):
        return self.function(x, self.kernel)


def aligned(one, two, x=X):
    return Alignment(*(Runner(WithKernel(each), (x,), {}).run(exact=True)
                       for each in (one, two)))


def names(alignment, side):
    """The operations that make a side's lost values."""
    program = getattr(alignment, side)
    return {program.maker(number).name for number in alignment.lost[side]
            if program.maker(number)}


def test_one_model_written_in_two_ways_has_nothing_lost():
    """Softmax's own shift is absorbed on the way."""
    def whole(x, w):
        return torch.softmax(x @ w, -1) @ x.sum(-2, keepdim=True).mT @ x[:, :1]

    def parts(x, w):
        x = x.transpose(0, 1)  # another order of axes
        scores = torch.einsum("sbi,ij->bsj", x, w)
        weights = torch.exp(scores)
        weights = weights / weights.sum(-1)[..., None]
        total = x.sum(0)
        mixed = (weights * total[:, None]).sum(-1, keepdim=True)
        return mixed * x[0][:, None]
    found = aligned(whole, parts)
    assert found.outputs == [("output", "output")]
    assert found.different == [] and found.lost == {"a": set(), "b": set()}


def test_what_is_lost_begins_where_they_part():
    found = aligned(lambda x, w: torch.tanh(x @ w + 1e-5).cumsum(1),
                    lambda x, w: torch.tanh(x @ w + 1e-3).cumsum(1))
    pair, = found.different
    assert pair == (found.a.outputs["output"], found.b.outputs["output"])
    for side in "ab":
        assert names(found, side) == {"add", "tanh", "cumsum"}
        program = getattr(found, side)
        first, = (number for number, depth in found.depth[side].items()
                  if depth == 0)
        assert program.maker(first).name == "add"
        assert max(found.depth[side].values()) == 2
    product = next(each for each in found.b.operations
                   if each.name == "matmul").results[0]
    assert found.has("b", product)
    assert not found.has("b", found.b.outputs["output"])


def test_numbers_in_other_places_are_a_difference():
    """Their signatures are the same: no order is told by these."""
    found = aligned(lambda x, w: x @ w, lambda x, w: (x @ w).flip(-1))
    one, two = found.a.outputs["output"], found.b.outputs["output"]
    assert one in found.in_a[two] and found.different == [(one, two)]


def test_arrays_of_few_numbers_are_held_in_order():
    """Masks have 0 and 1 alone; as many of them says nothing."""
    def lower(x, w):
        return x.masked_fill(torch.ones(5, 6).tril().bool(), 0.0)

    def upper(x, w):
        return x.masked_fill(torch.ones(5, 6).tril().bool().flip(0, 1), 0.0)
    assert aligned(lower, lower).different == []
    found = aligned(lower, upper)
    assert found.different != []
    masks = [[value for value in program.values if value.dtype == "bool"][-1]
             for program in (found.a, found.b)]
    assert masks[0].number not in found.in_a.get(masks[1].number, ())


def test_outputs_are_paired_by_name_then_by_size():
    def two(x, w):
        return {"logits": x @ w, "pooled": x.mean(1)}

    def other(x, w):
        return {"first": x.mean(1), "logits": x @ w}
    found = aligned(two, other)
    assert sorted(found.outputs) == [
        ("output.logits", "output.logits"), ("output.pooled", "output.first")]
    assert found.different == []
    assert aligned(two, lambda x, w: x[..., :4]).outputs == []


def test_repeated_numbers_are_those_of_what_is_repeated():
    found = aligned(lambda x, w: x.repeat_interleave(2, 1) * 1.5,
                    lambda x, w: x[:, :, None].expand(-1, -1, 2, -1)
                    .flatten(1, 2) * 1.5)
    assert found.different == []


@pytest.mark.parametrize("change", [
    lambda x: x.T, lambda x: x.reshape(-1), lambda x: x[::-1, ::-1]])
def test_a_signature_knows_no_order(change):
    array = X.numpy().reshape(10, 6)
    one, two = signature(array), signature(change(array))
    assert (one.size, one.kind, one.special) == (
        two.size, two.kind, two.special)
    assert np.allclose(one.moments, two.moments, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("change", [
    lambda x: -x, lambda x: 1.0000001 * x, lambda x: x + 1e-8,
    lambda x: np.where(np.arange(60).reshape(10, 6) == 7, x + 1e-6, x)])
def test_a_signature_tells_other_numbers(change):
    array = X.numpy().reshape(10, 6) + 0.25
    one, two = signature(array), signature(change(array))
    assert not np.allclose(one.moments, two.moments, rtol=1e-10, atol=1e-10)
