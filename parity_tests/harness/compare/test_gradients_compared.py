"""Gradients compared: where one is cut off, and which row is told first."""


from parity.comparison.compare import compare
from parity.comparison.result import GRADIENT
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.tracing.trace import trace
from parity_tests.support.layers import X


def stack(torch, names="abcd", act=None, cut=None, frozen=False):
    """The trace of linear layers with an activation, and its gradients.

    ``cut`` names the layer whose output gives no gradient.
    """
    class Stack(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            for name in names:
                setattr(self, name, torch.nn.Linear(X.shape[-1], X.shape[-1]))
            self.act = act or torch.nn.Tanh()

        def forward(self, x):
            for i, name in enumerate(names):
                x = self.act(getattr(self, name)(x)) + x
                if i == cut:
                    x = x.detach()
            return x
    model = Stack().double()
    if frozen:
        getattr(model, names[0]).weight.requires_grad_(False)
    return trace(model, torch.tensor(X), gradients=lambda y: y.square().sum())


def test_a_gradient_that_is_cut_off_is_no_match(torch):
    found = compare(stack(torch), stack(torch, "pqrs", cut=1))
    assert found.verdict == DIVERGENCE and found.status == 1
    first = found.first
    assert first.part == GRADIENT and first.a == "act#2"
    assert first.reason == "it has no gradient in b"
    told = {row.a for row in found.divergences if not row.a_name}
    assert told == {"a.weight", "a.bias", "b.weight", "b.bias"}


def test_cut_off_in_both_matches(torch):
    found = compare(stack(torch, cut=1), stack(torch, "pqrs", cut=1))
    assert found.verdict == MATCH


def test_a_frozen_parameter_is_noted(torch):
    found = compare(stack(torch), stack(torch, frozen=True))
    assert found.verdict == MATCH
    assert any("a.weight is trained in a and not in b" in note
               for note in found.notes)


def test_the_gradient_nearest_to_the_loss_is_told_first(torch):
    """The backward of the third activation is wrong: what it gives back to
    the third layer is the first that differs."""
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.tanh()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, gradient):
            return gradient * (1 - ctx.saved_tensors[0])

    class Act(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return Wrong.apply(x) if self.calls == 3 else x.tanh()
    found = compare(stack(torch), stack(torch, act=Act()))
    assert [row.part for row in found.divergences[:3]] == [GRADIENT] * 3
    assert [row.name for row in found.divergences[:3]] == [
        "c · output", "c.weight", "c.bias"]
