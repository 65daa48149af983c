"""What differs is found by running b with a's things in it."""

import numpy as np
import pytest

from parity_tests.support.engines import usable

usable("torch")

import torch  # noqa: E402
from torch import nn  # noqa: E402

from parity.operations.align import NEAR  # noqa: E402
from parity.operations.program import PARAMETER  # noqa: E402
from parity.operations.search import FaultSearch  # noqa: E402
from parity.operations.torch import Runner  # noqa: E402
from parity.operations.trial import (  # noqa: E402
    ARRAY, EXCHANGED, ORDER, SCALAR)

X = torch.from_numpy(np.random.default_rng(2).normal(size=(2, 5, 6)))


class Mixer(nn.Module):
    """A norm, one head of attention and a gate, with a residual.

    ``wrong`` says what of it is so, in words of the code.
    """

    def __init__(self, **wrong):
        super().__init__()
        torch.manual_seed(4)
        self.wrong = wrong
        self.inner, self.outer = (
            nn.Linear(*sizes).double() for sizes in ((6, 18), (6, 6)))
        self.gate = nn.Parameter(torch.randn(6, 6).double())
        if "kernel" in wrong:
            with torch.no_grad():
                self.gate.copy_(wrong["kernel"](self.gate.clone()))

    def forward(self, x):
        of = self.wrong.get
        mean = x.mean(of("axis", -1), keepdim=True)
        h = (x - mean) * torch.rsqrt(
            (x - mean).pow(2).mean(-1, keepdim=True) + of("eps", 1e-5))
        q, k, v = self.inner(h).chunk(3, -1)
        scores = q @ k.mT * of("scale", 6 ** -0.5)
        mixed = torch.softmax(scores, -1) @ (h if of("read") else v)
        gated = torch.tanh(mixed @ self.gate)
        return self.outer(gated) + (x if of("residual", True) else 0)


def searched(**wrong):
    """The SearchOutcome of a Mixer, and of one with a fault; both Runners."""
    models = Mixer(), Mixer(**wrong)
    before = [{name: value.clone() for name, value in model.named_parameters()}
              for model in models]
    one, two = (Runner(model, (X,), {}) for model in models)
    outcome = FaultSearch(one.run(exact=True), lambda edits: two.run(
        exact=True, edits=edits), NEAR).find()
    for model, values in zip(models, before):
        assert all(torch.equal(value, values[name])
                   for name, value in model.named_parameters())
    return outcome


def line(operation):
    """The source of the line that asked for an operation."""
    with open(__file__, encoding="utf-8") as file:
        return file.read().splitlines()[operation.place.line - 1].strip()


def told(outcome):
    """The first Trial of each fault."""
    return [each.trial for each in outcome.found]


def test_sound_models_have_nothing_to_find():
    outcome = searched()
    assert outcome.found == [] and outcome.corrected
    assert outcome.runs == 1 and outcome.first is outcome.last


def test_a_changed_constant():
    outcome = searched(eps=1e-3)
    trial, = told(outcome)
    assert outcome.corrected and trial.kind == SCALAR
    assert [side.values[number].array.item() for side, number in (
        (outcome.first.a, trial.value_a), (outcome.first.b, trial.value_b))
            ] == [1e-5, 1e-3]
    for operation in trial.a, trial.b:
        assert operation.name == "add" and 'of("eps", 1e-5))' in line(operation)
    end = outcome.last
    assert np.allclose(
        end.b.values[end.b.outputs["output"]].array,
        end.a.values[end.a.outputs["output"]].array, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kernel, kind", [
    (lambda w: w.T, ORDER), (lambda w: w.flip(0), ORDER),
    (lambda w: w + 1e-6, ARRAY)])
def test_another_kernel(kernel, kind):
    outcome = searched(kernel=kernel)
    trial, = told(outcome)
    assert outcome.corrected and trial.kind == kind
    value = outcome.first.b.values[trial.value_b]
    assert (value.kind, value.name) == (PARAMETER, "gate")
    assert "mixed @ self.gate" in line(trial.b)
    array, = trial.ways[0].values()
    assert np.array_equal(array, Mixer().gate.detach().numpy())


@pytest.mark.parametrize("wrong, words", [
    ({"scale": 1.0}, "scores = "), ({"scale": 6 ** 0.5}, "scores = "),
    ({"axis": -2}, "h = (x - mean)"), ({"read": True}, "mixed = "),
    ({"residual": False}, "return self.outer(gated)")])
def test_the_line_that_differs(wrong, words):
    outcome = searched(**wrong)
    trial, = told(outcome)
    assert outcome.corrected, outcome.found
    assert words in line(trial.a)


def test_two_faults_are_both_found_and_both_needed():
    outcome = searched(eps=1e-2, kernel=lambda w: w.T)
    assert outcome.corrected
    assert {trial.kind for trial in told(outcome)} == {SCALAR, ORDER}
    assert len(outcome.found) == 2
    for each in outcome.found:
        others = {edit: array for other in outcome.found if other is not each
                  for trial in other.trials
                  for edit, array in trial.ways[0].items()}
        model = Runner(Mixer(eps=1e-2, kernel=lambda w: w.T), (X,), {})
        program = model.run(True, others)
        assert not np.allclose(
            program.values[program.outputs["output"]].array,
            Mixer()(X).detach().numpy(), atol=1e-6)


def test_a_search_ends_when_its_runs_are_spent():
    one, two = (Runner(Mixer(**wrong), (X,), {}) for wrong in (
        {}, {"residual": False, "axis": -2, "scale": 3.0}))
    outcome = FaultSearch(one.run(True), lambda edits: two.run(True, edits),
                          NEAR, runs=3).find()
    assert outcome.runs <= 5 and not outcome.corrected


def test_a_model_that_fails_as_it_is_says_so_itself():
    def fails(edits):
        raise ZeroDivisionError("of the model's own")
    program = Runner(Mixer(), (X,), {}).run(True)
    with pytest.raises(ZeroDivisionError, match="of the model's own"):
        FaultSearch(program, fails, NEAR).find()


@pytest.mark.parametrize("count, order", [
    (2, (1, 0)), (6, (3, 4, 5, 0, 1, 2)), (6, (0, 4, 2, 3, 1, 5))])
def test_parts_taken_for_others_however_they_are_used(count, order):
    def mixed(parts):
        """Scaled and shifted, and through a gate, pair by pair."""
        made, (scales, shifts) = X, (parts[::2], parts[1::2])
        for scale, shift in zip(scales, shifts):
            made = torch.tanh(made * (1 + scale) + shift) + made
        return made

    class Adapted(nn.Module):
        def __init__(self, order):
            super().__init__()
            torch.manual_seed(5)
            self.adapt = nn.Linear(6, 6 * count).double()
            self.order = order

        def forward(self, x):
            parts = self.adapt(x.mean(1, keepdim=True)).chunk(count, -1)
            return mixed([parts[i] for i in self.order])
    one, two = (Runner(Adapted(each), (X,), {}) for each in (
        range(count), order))
    outcome = FaultSearch(one.run(exact=True), lambda edits: two.run(
        exact=True, edits=edits), NEAR).find()
    found, = outcome.found
    assert (found.trial.kind, found.trial.slot) == (EXCHANGED, order)
    assert outcome.corrected and ".chunk(count" in line(found.trial.b)


def test_only_the_parameters_that_have_the_parts_are_put_in_order():
    class Turned(nn.Module):
        def __init__(self, turned):
            super().__init__()
            torch.manual_seed(6)
            self.taps = nn.Parameter(torch.randn(4, 6).double())
            self.shift = nn.Parameter(torch.randn(4, 1).double())
            self.turned = turned

        def forward(self, x):
            taps = self.taps.flip(0) if self.turned else self.taps
            rows = x[:, :4] * taps + self.shift
            return torch.tanh(rows).sum(1)
    one, two = (Runner(Turned(each), (X,), {}) for each in (False, True))
    outcome = FaultSearch(one.run(exact=True), lambda edits: two.run(
        exact=True, edits=edits), NEAR).find()
    edits = [edit for found in outcome.found for trial in found.trials
             for edit in trial.ways[0]]
    assert outcome.corrected and not any("shift" in edit for edit in edits)
