"""Models whose causes are asked, and how."""

import numpy as np

from parity.causes import catalogue
from parity.causes.diff import diff
from parity.causes.explain import explain
from parity.comparison.compare import compare
from parity.tracing.trace import trace
from parity_tests.support.engines import usable

D = 6
RNG = np.random.default_rng(5)
X = RNG.normal(size=(2, 7, D))

W, H, F, V = 12, 3, 20, 17
Y = np.random.default_rng(1).normal(size=(2, 7, W))


def of_traces(a, b):
    """The Comparison of two traces, explained."""
    comparison = compare(a, b)
    explain(comparison, a, b)
    return comparison


def compared(a, b, *given, **named):
    """The Comparison of two models of one framework, explained."""
    return of_traces(*(trace(each, *given, **named) for each in (a, b)))


def by_operations(a, b, *given):
    """(cause, in a, in b) of each, where the outputs then agree."""
    found = diff(a, b, *given)
    assert found.corrected, found
    return [(each.cause, each.in_a, each.in_b) for each in found.explanations]


def known(explanations):
    """Explanations, each of which the catalogue has a name for."""
    for each in explanations:
        assert bool(each.names) == each.identified, each.text()
        for name in each.names:
            assert catalogue.by_name(name).explained
    return explanations


def explained(a, b, port, x=X):
    """[(step of a, cause, what it is in b)] of two models, a being right."""
    give = usable(port).to_native
    found = of_traces(*(trace(model, give(x, "cpu")) for model in (a, b)))
    return [(each.a, each.cause, each.in_b)
            for each in known(found.explanations)]


def drawn(model, skip="nothing", seed=0, scale=0.5):
    """A torch model in float64 whose every number is drawn."""
    import torch
    model, draw = model.double().eval(), np.random.default_rng(seed)
    with torch.no_grad():
        for name, array in model.named_parameters():
            if skip not in name:
                array.copy_(torch.from_numpy(draw.normal(
                    size=tuple(array.shape), scale=scale)))
    return model


def told(a, b, given_a, given_b=None):
    """(step of a where they part first, [(step of a, cause, what in b)])."""
    found = of_traces(
        trace(a, *given_a), trace(b, *(given_b or given_a)))
    return found.first and found.first.a, [
        (each.a, each.cause, each.in_b)
        for each in known(found.explanations)]
