"""A port that writes into what it was given is named."""

import numpy as np
import pytest

from transformer_contract.weights import probe_weights
from parity import ports
from parity.check import generation, search_runs, training_runs, wide
from parity.check.lockstep import TrainingRunner
from parity.check.runners import EngineRunner, InputsChanged


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


MODEL = wide.models()[0]
#: One case of each kind that hands a port arrays; seeds are single numbers.
KINDS = {case.kind: case for case in MODEL.cases()
         if case.inputs and case.kind != "initial"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_port_that_writes_into_what_a_call_gives_is_named(kind):
    runner = EngineRunner(Untidy(ports.engine("numpy")), MODEL.config,
                          MODEL.weights(), "float64")
    with pytest.raises(InputsChanged):
        runner.steps(KINDS[kind], KINDS[kind].inputs)


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
