"""Fixtures: the engines that can run here."""

import gc
import os
import sys

import pytest

from parity import ports
from parity_tests.support.engines import usable

#: More threads gain nothing at test size, and where other programs run as
#: well they wait for each other: torch then takes a hundred times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="module", autouse=True)
def forgotten():
    """What a file's tests had compiled is dropped after it: gigabytes."""
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
    gc.collect()


@pytest.fixture(params=ports.known_ports())
def port(request):
    """Each port's engine in turn."""
    return usable(request.param)


@pytest.fixture(params=("numpy", *ports.known_ports()))
def engine(request):
    """The reference's engine and each port's in turn."""
    return usable(request.param)
