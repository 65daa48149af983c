"""Conditions: each has a case, and the port stands under all of them."""

import pytest

from parity.check import conditions, long, wide
from parity.check.runners import Reference, Runner, compare_steps
from parity.numerics.comparator import DIVERGENCE
from parity_tests.support.commands import invoke


@pytest.mark.parametrize("group", conditions.GROUPS,
                         ids=lambda group: group.title)
def test_every_condition_has_a_case(group):
    first = group.first()
    assert first and not [name for name, case in first.items() if not case]


def test_the_command_lists_them(monkeypatch):
    done = invoke("check", "--list")
    assert done.exit_code == 0
    for _, first in conditions.listed():
        for condition in first:
            assert condition in done.output
    monkeypatch.setattr(conditions, "GROUPS", [conditions.Group(
        "Nothing", list, lambda: {"what no case has": bool})])
    assert "none" in invoke("check", "--list").output


def wrong(engine, model):
    """(case, step, Difference) of each divergence of an engine in a model."""
    weights = model.weights()
    reference = Reference(model.config, weights, "float64")
    runner = Runner(engine, model.config, weights, "float64")
    for case in model.cases():
        found = compare_steps(runner.steps(case, case.inputs),
                              reference.truth(case), "float64")
        yield from ((case.name, name, difference)
                    for name, difference in found.items()
                    if difference.verdict == DIVERGENCE)


@pytest.mark.long
@pytest.mark.parametrize("model", (*wide.models(), *long.models()),
                         ids=lambda model: model.name)
def test_a_port_stands_under_every_condition(port, model):
    assert not list(wrong(port, model))
