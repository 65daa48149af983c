"""What an edit changes is computed anew, as the run itself computes it."""

import numpy as np
import pytest

from parity_tests.support.engines import usable

usable("torch")

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

from parity.operations.align import NEAR  # noqa: E402
from parity.operations.program import LEAF, OPERAND, RESULT  # noqa: E402
from parity.operations.replay import replayed  # noqa: E402
from parity.operations.rounded import same_in_float32  # noqa: E402
from parity.operations.runs import Replays  # noqa: E402
from parity.operations.search import FaultSearch, find_faults  # noqa: E402
from parity.operations.torch import Runner  # noqa: E402
from parity.operations.trial import ARRAY  # noqa: E402

X = torch.from_numpy(np.random.default_rng(3).normal(size=(2, 6, 8)))


class Taps(nn.Module):
    """What NumPy lacks between what it has: a transposed convolution, windows
    and the largest few."""

    def __init__(self, **wrong):
        super().__init__()
        torch.manual_seed(5)
        self.wrong = wrong
        self.kernel = nn.Parameter(torch.randn(6, 6, 3).double())
        self.out = nn.Linear(3, 3).double()

    def forward(self, x):
        h = F.conv_transpose1d(torch.tanh(x * self.wrong.get("scale", 2.0)),
                               self.kernel)
        h = h.unfold(2, 3, 1).topk(3, -1).values
        return self.out(h) - self.wrong.get("less", 1.0)


def test_it_gives_to_the_bit_what_torch_gives():
    runner = Runner(Taps().eval(), (X,), {})
    program = runner.run(exact=True)
    tanh = next(each for each in program.operations if each.name == "tanh")
    array = program.values[tanh.results[0]].array
    for edits in ({(OPERAND, tanh.number, 0): array * 3},
                  {(RESULT, tanh.number, 0): array * 3},
                  {(LEAF, "kernel"): np.ones((6, 6, 3))}):
        made, truth = replayed(program, edits, {}), runner.run(
            exact=True, edits=edits)
        for one, two in zip(made.values, truth.values, strict=True):
            assert np.allclose(one.array, two.array, rtol=1e-12, atol=1e-14)
        more = edits | {(LEAF, "out.bias"): np.zeros(3)}
        again = replayed(made, more, {}, edits)
        truth = runner.run(exact=True, edits=more)
        assert np.allclose(
            again.values[again.outputs["output"]].array,
            truth.values[truth.outputs["output"]].array, rtol=1e-12)


def test_what_follows_from_no_edit_is_the_value_that_it_was():
    program = Runner(Taps().eval(), (X,), {}).run(exact=True)
    kernel = next(each for each in program.values if each.name == "kernel")
    made = replayed(program, {(LEAF, "kernel"): kernel.array.copy()}, {})
    assert all(one is two for one, two in zip(made.values, program.values))


def test_b_is_run_twice_however_much_is_tried():
    one, two = (Runner(Taps(**wrong).eval(), (X,), {}) for wrong in (
        {}, {"scale": 1.5, "less": 0.5}))
    runs = []

    def run(edits):
        runs.append(edits)
        return two.run(exact=True, edits=edits)
    outcome = FaultSearch(one.run(exact=True), run, NEAR).find()
    assert outcome.corrected and len(outcome.found) == 2
    assert len(runs) == 2 and outcome.runs > 4


def test_b_is_sought_in_itself_where_it_does_not_what_it_did():
    one, two = (Runner(Taps(**wrong).eval(), (X,), {}) for wrong in (
        {}, {"scale": 1.5}))
    kept = Replays.__call__

    def run(edits):
        program = two.run(exact=True, edits=edits)
        for operation in program.operations:
            if operation.name == "tanh":  # now it does something else
                operation.again = None
                operation.name = "sin" if edits else "tanh"
        return program
    outcome = FaultSearch(one.run(exact=True), run, NEAR).find()
    assert outcome.corrected and len(outcome.found) == 1
    assert Replays.__call__ is kept


class StackedParts(nn.Module):
    """A table that differs, and weights that are stacked."""

    def __init__(self, half=0.5, stacked=False):
        super().__init__()
        torch.manual_seed(6)
        parts = [nn.Linear(8, 8).double() for _ in range(2)]
        self.half, self.stacked = half, stacked
        if stacked:
            self.weight = nn.Parameter(torch.stack(
                [each.weight.detach() for each in parts]))
            self.bias = nn.Parameter(torch.stack(
                [each.bias.detach() for each in parts]))
        else:
            self.parts = nn.ModuleList(parts)

    def forward(self, x):
        x = torch.tanh(x + torch.sin((torch.arange(
            6, dtype=x.dtype) + self.half)[:, None]))
        if self.stacked:
            return torch.einsum("btd,ned->nbte", x, self.weight) + (
                self.bias[:, None, None])
        return torch.stack([each(x) for each in self.parts])


def test_no_array_is_told_that_is_only_stored_otherwise():
    one, two = (Runner(model.eval(), (X,), {}) for model in (
        StackedParts(), StackedParts(half=0.25, stacked=True)))
    outcome = find_faults(one.run(exact=True), lambda edits: two.run(
        exact=True, edits=edits), NEAR)
    names = {outcome.first.b.values[trial.value_b].name
             for found in outcome.found for trial in found.trials
             if trial.kind == ARRAY}
    assert outcome.corrected and not names & {"weight", "bias"}


@pytest.mark.parametrize("by, same", [(1e-7, True), (1e-5, False)])
def test_a_sine_near_zero_errs_by_as_much_as_any_other(by, same):
    exact = np.sin(np.pi * np.arange(6) / 3)
    short = exact.astype(np.float32).astype(np.float64)
    short[3] = np.float32(by)
    assert same_in_float32(exact, short) is same
    mask = np.array([-1e9, 0.0, -1e9, 1e-3, -1e9])
    assert not same_in_float32(mask, np.where(mask == 1e-3, 2e-3, mask).astype(
        np.float32).astype(np.float64))
