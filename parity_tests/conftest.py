"""Fixtures: the engines that can run here."""

import contextlib
import gc
import importlib
import os
import sys
from unittest import mock

import pytest

from parity import ports
from parity.ports import NotChecked

#: More threads gain nothing at test size, and where other programs run as
#: well they wait for each other: torch then takes a hundred times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def usable(name):
    """An engine with its precision set; skips where it cannot run."""
    engine = ports.engine(name)
    if isinstance(engine, NotChecked):
        pytest.skip(f"not checked: {engine.reason}")
    engine.set_precision()
    return engine


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


@contextlib.contextmanager
def uncompiled(engine):
    """Train without TensorFlow's compiler, which would take most of the time.

    The numbers are the compiled ones' to rounding; whole runs are compared
    compiled.
    """
    if engine.NAME == "keras" and "tensorflow" in engine.versions():
        import tensorflow as tf
        tf.config.run_functions_eagerly(True)
        try:
            yield
        finally:
            tf.config.run_functions_eagerly(False)
    else:
        yield


def patched(port, file, name, make):
    """Replace ``impl_<port>.<file>.<name>`` by ``make(old)``."""
    module = importlib.import_module(f"impl_{port}.{file}")
    target, _, attribute = name.rpartition(".")
    owner = getattr(module, target) if target else module
    return mock.patch.object(
        owner, attribute, make(getattr(owner, attribute)))
