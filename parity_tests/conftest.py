"""Fixtures: the engines that can run here."""

import pytest

from parity import ports
from parity.ports import NotChecked


def usable(name):
    """An engine with its precision set; skips where it cannot run."""
    engine = ports.engine(name)
    if isinstance(engine, NotChecked):
        pytest.skip(f"not checked: {engine.reason}")
    engine.set_precision()
    return engine


@pytest.fixture(params=ports.known_ports())
def port(request):
    """Each port's engine in turn."""
    return usable(request.param)


@pytest.fixture(params=("numpy", *ports.known_ports()))
def engine(request):
    """The reference's engine and each port's in turn."""
    return usable(request.param)
