"""Fixtures: the engines that can run here; and which tests are run."""

import argparse
import functools
import gc
import hashlib
import os
import random
import re
import shutil
import sys
import tempfile
import zlib

import numpy as np
import pytest

from parity import ports
from parity.runs import evaluation
from parity_tests.support.engines import usable

#: What a test's parameter may name.
PORTS = "numpy", *ports.known_ports()

#: More threads gain nothing at test size, and where other programs run as
#: well they wait for each other: torch then takes a hundred times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")

#: Of the cases of a test marked long, a sample takes one in so many; of one
#: marked long(n), one in n times THIN.
SHARE, THIN = 1280, 2

#: Where JAX keeps what it has compiled.
KEPT = "JAX_COMPILATION_CACHE_DIR"


def pytest_addoption(parser):
    parser.addoption(
        "--sample", metavar="SEED",
        help="of the tests marked long, run those that this text draws")
    parser.addoption(
        "--port", metavar="NAME", action="append", default=[],
        help="only ask this port, such as torch, or numpy; repeat it. All "
             "that are installed by default")
    parser.addoption(
        "--shard", metavar="K/N", type=shard,
        help="of N parts of the tests, about equal, run the K-th alone")


def shard(words):
    """The numbers K and N of "K/N", with 1 <= K <= N."""
    found = re.fullmatch(r"(\d{1,4})/(\d{1,4})", words)
    numbers = tuple(map(int, found.groups())) if found else (0, 0)
    if not 1 <= numbers[0] <= numbers[1]:
        raise argparse.ArgumentTypeError(
            f"{words!r} is no part; give one such as 1/4.")
    return numbers


def pytest_collection_modifyitems(config, items):
    """Leave out long tests that are not drawn, other ports', other shards'."""
    seed, names, part = map(config.getoption, ("sample", "port", "shard"))
    dealt = shards_of(items, part[1]) if part else {}
    left = {item for item in items if not (
        (seed is None or drawn(seed, item))
        and (not names or port_of(item) in names)
        and (part is None or dealt[item] == part[0]))}
    if left:
        config.hook.pytest_deselected(items=[*left])
        items[:] = [item for item in items if item not in left]


def shards_of(items, parts):
    """{test: in which of so many shards it is, from 1 on}.

    The cases of one function are dealt out in turn, in an order drawn by their
    names: they take about as long as one another, and each shard has as many.
    """
    functions: dict = {}
    for item in items:
        functions.setdefault(item.nodeid.partition("[")[0], []).append(item)

    def drawn_by(name):
        return hashlib.sha256(name.encode()).digest()
    return {item: (drawn_by(name)[0] + place) % parts + 1
            for name, cases in functions.items()
            for place, item in enumerate(sorted(
                cases, key=lambda item: drawn_by(item.nodeid)))}


def port_of(item):
    """The port that a test is of by its parameters; None if of none."""
    given = item.callspec.params if hasattr(item, "callspec") else {}
    for value in given.values():
        name = value[0] if isinstance(value, tuple) and value else value
        if isinstance(name, str) and name in PORTS:
            return name
    return None


def pytest_generate_tests(metafunc):
    """Ask for each port, in each form that a test of conformance is of."""
    if "subject" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("forms")
        metafunc.parametrize("subject", [
            (name, form) for form in (mark.args if mark else ("readable",))
            for name in (*["numpy"] * (form == "fast"), *ports.known_ports())],
            indirect=True, ids="-".join)


def drawn(seed, item):
    """Whether a test is run: each that is not long, those of the long that are
    quick of a port, and a sample of the others."""
    quick = item.get_closest_marker("quick")
    if quick and port_of(item) in quick.args:
        return True
    mark = item.get_closest_marker("long")
    number = zlib.crc32(f"{seed} {item.nodeid}".encode())
    share = THIN * mark.args[0] if mark and mark.args else SHARE
    return not mark or number % share == 0


def pytest_terminal_summary(terminalreporter, config):
    seed = config.getoption("sample")
    if seed is not None:
        terminalreporter.write_line(
            f"Long tests: a sample of 1 in {SHARE}, drawn by {seed}. The same "
            f"again: make test SEED={seed}. All: make test-all.")


def pytest_configure(config):
    """Know the ports, and let the workers share what JAX compiles.

    In a folder of this run, where the environment names none: the Makefile
    names one that is kept.
    """
    for name in set(config.getoption("port")) - {"numpy"}:
        if name not in ports.known_ports():
            raise pytest.UsageError(
                f"--port {name} is no port; give numpy or one of "
                f"{', '.join(ports.known_ports())}.")
    if KEPT not in os.environ:
        os.environ[KEPT] = tempfile.mkdtemp(prefix="parity_tests_jax_")
        config.add_cleanup(functools.partial(
            shutil.rmtree, os.environ[KEPT], ignore_errors=True))
    os.environ |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                   "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}


@pytest.fixture(autouse=True)
def seeded():
    """Foreign models begin with the same numbers in whichever order."""
    random.seed(0)
    np.random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(scope="module", autouse=True)
def forgotten():
    """What a file's tests had compiled is dropped after it: gigabytes.

    What is left are the frameworks' own objects, millions of them. They stay,
    so that no later collection goes through them.
    """
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
    gc.collect()
    gc.freeze()


@pytest.fixture(params=ports.known_ports())
def port(request):
    """Each port's engine in turn."""
    return usable(request.param)


@pytest.fixture(params=("numpy", *ports.known_ports()))
def engine(request):
    """The reference's engine and each port's in turn."""
    return usable(request.param)


@pytest.fixture(params=[
    (name, form) for name in ("numpy", *ports.known_ports())
    for form in ports.FORMS], ids="-".join)
def engine_of_each_form(request):
    """Each of them in turn, in its readable and in its fast form."""
    return usable(*request.param)


@pytest.fixture
def subject(request):
    """An engine in one form, which is to answer as the reference does."""
    return usable(*request.param)


@pytest.fixture
def one_length(monkeypatch):
    """Pad every batch of a run to one length, so that it compiles once."""
    monkeypatch.setattr(evaluation, "MULTIPLE", 40)
