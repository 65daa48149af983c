"""Conditions: each has a case, and what a call reads stays as it is."""

import numpy as np
import pytest

from transformer_contract.weights import probe_weights
from parity import ports
from parity.check import conditions, generation, search_runs, training_runs
from parity.check.lockstep import TrainingRunner
from parity.check.runners import EngineRunner, InputsChanged
from parity_tests.support.commands import invoke


@pytest.mark.long(4)
@pytest.mark.parametrize("group", conditions.GROUPS,
                         ids=lambda group: group.title)
def test_every_condition_has_a_case(group):
    first = group.first()
    assert first and not [name for name, case in first.items() if not case]


@pytest.mark.long(4)
def test_the_command_lists_them(monkeypatch):
    done = invoke("check", "--list")
    assert done.exit_code == 0
    for _, first in conditions.listed():
        for condition in first:
            assert condition in done.output
    monkeypatch.setattr(conditions, "GROUPS", [conditions.Group(
        "Nothing", list, lambda: {"what no case has": bool})])
    assert "none" in invoke("check", "--list").output


class Untidy:
    """The reference, but that it leaves other numbers in what it reads."""

    def __init__(self, engine):
        self._engine = engine

    def __getattr__(self, name):
        found = getattr(self._engine, name)
        if not callable(found):
            return found

        def untidy(*given, **words):
            done = found(*given, **words)
            for array in (one for one in given if isinstance(
                    one, np.ndarray) and one.dtype != bool):
                array[...] = np.flip(array)
            return done
        return untidy


KINDS = {one.case.kind: one for _, one in conditions.wide_cases()
         if conditions.hands_arrays(one) and one.model.number == 1}


@pytest.mark.parametrize("kind", KINDS)
def test_a_port_that_writes_into_what_a_call_gives_is_named(kind):
    one = KINDS[kind]
    runner = EngineRunner(Untidy(ports.engine("numpy")), one.config,
                          one.model.weights(), "float64")
    with pytest.raises(InputsChanged):
        runner.steps(one.case, one.case.inputs)


def test_a_port_that_writes_into_what_a_search_gives_is_named():
    engine, about = Untidy(ports.engine("numpy")), search_runs.narrow()
    model = engine.build("transformer", about.config, about.weights)
    with pytest.raises(InputsChanged):
        generation.searched(
            engine, model, about.source, about.searches[0].settings, 2)


def test_a_port_that_writes_into_what_a_step_gives_is_named():
    run = training_runs.varied()[0]
    runner = TrainingRunner(
        Untidy(ports.engine("numpy")), run, probe_weights(run.config, 1))
    with pytest.raises(InputsChanged):
        runner.step(*run.pairs[0])
