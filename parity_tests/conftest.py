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
    """Leave out the long tests that the sample's seed does not draw, and those
    of other shards. A test stays in its shard whatever tests are added."""
    seed, part = config.getoption("sample"), config.getoption("shard")
    run, left = [], []
    for item in items:
        out = seed is not None and not drawn(seed, item) or (
            part is not None and part_of(item, part[1]) != part[0])
        (left if out else run).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = run


def part_of(item, parts):
    """In which of so many parts a test is, from 1 on."""
    digest = hashlib.sha256(item.nodeid.encode()).digest()
    return int.from_bytes(digest[:8], "big") % parts + 1


def drawn(seed, item):
    """Whether a test is run: each that is not long, and a sample of those."""
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
    """Let the workers share what JAX compiles.

    In a folder of this run, where the environment names none: the Makefile
    names one that is kept.
    """
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


@pytest.fixture(params=[
    (name, form) for name in ("numpy", *ports.known_ports())
    for form in ports.FORMS], ids="-".join)
def engine_of_each_form(request):
    """Each of them in turn, in its readable and in its fast form."""
    return usable(*request.param)


@pytest.fixture
def one_length(monkeypatch):
    """Pad every batch of a run to one length, so that it compiles once."""
    monkeypatch.setattr(evaluation, "MULTIPLE", 40)
