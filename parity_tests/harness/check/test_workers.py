"""Ports at work in processes of their own: the same numbers, and an end."""

import os
import signal
import subprocess
import sys
import time

import ml_dtypes
import numpy as np
import pytest

from parity_io.processes import end_with_parent
from transformer_contract.weights import probe_weights
from parity import ports
from parity.check import workers
from parity.check.cases import test_size as at_test_size
from parity.check.run import Check
from parity.check.shared_arrays import SharedArrays, load
from parity.ports import NotChecked
from parity_tests.support.places import ROOT

PORT = next((name for name in ports.known_ports()
             if not isinstance(ports.engine(name), NotChecked)), None)
needs_a_port = pytest.mark.skipif(
    PORT is None, reason="not checked: no framework is here")


def process_id(bench):
    return os.getpid()


def ends(bench):
    os.kill(os.getpid(), signal.SIGKILL)


def breaks(bench):
    raise ValueError("it broke\nand more")


@pytest.mark.parametrize("subprocesses", [False, True])
def test_shared_arrays_give_what_they_got(subprocesses):
    shared = SharedArrays(subprocesses)
    arrays = {
        "a": np.arange(6.0).reshape(2, 3), "none": np.zeros((0, 4)),
        "b": np.ones(5, ml_dtypes.bfloat16), "mask": np.array([True, False]),
        "turned": np.arange(6.0).reshape(2, 3).T}
    found = load(shared.store(arrays))
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
    found["a"][0, 0] = 7  # as frameworks want it, and nobody else sees it
    shared.close()


def checked(subprocesses):
    run = Check(["lesson"], [PORT], ["float64", "bfloat16"], full_size=False,
                gradients=True, train=2, generate=True,
                subprocesses=subprocesses,
                on_case=(told := []).append)
    try:
        list(run.groups())
    finally:
        run.close()
    assert told[0].startswith(("0 of 2 compared  ", "importing"))
    assert told[-1].startswith(f"2 of 2 compared  {PORT}: ")
    return run


@pytest.mark.long(8)
@needs_a_port
def test_apart_and_here_are_equal_to_the_bit():
    """Every row, in its order, with its errors, limits and verdicts.

    But the first, of a product of which the last digits follow from threads.
    """
    here, there = checked(False).report, checked(True).report
    assert here.rows[1:] == there.rows[1:]
    assert here.expected == there.expected
    assert here.verdict == there.verdict == "match"
    times = [sorted((time.case, time.dtype, time.port) for time in times)
             for times in (here.times, there.times)]
    assert times[0] == times[1]


@needs_a_port
@pytest.mark.parametrize("form, folder", [
    ("readable", ""), ("fast", "fast.")])
def test_a_port_works_in_the_form_it_is_asked_for(form, folder):
    config = at_test_size("lesson")
    model = workers.ModelSpec(
        "lesson", config, "float64", "cpu", probe_weights(config), form)
    bench = workers.Workbench(ports.engine(PORT))
    found = bench.runner(model).engine
    assert found.__name__ == f"{ports.package(PORT)}.{folder}engine"


@pytest.mark.long(3)
@needs_a_port
def test_a_port_that_fails_or_ends_says_so():
    made, _, absent, failures = workers.open_ports(
        [PORT], subprocesses=True)
    assert not absent and not failures
    port = made[PORT]
    try:
        assert port.ask("", process_id).result().value != os.getpid()
        told = port.ask("", breaks).result()
        assert told.failure == "ValueError: it broke" and told.value is None
        for _ in range(2):
            told = port.ask("", ends).result(timeout=60)
            assert told.failure == "its process ended"
        assert [one.reason for one in port.failures] == [
            "ValueError: it broke", "its process ended"]
        assert "in breaks" in port.failures[0].traceback
    finally:
        port.close()


@pytest.mark.long(3)
@needs_a_port
def test_nothing_is_left_behind():
    """Closed while it works: its process ends, and its files are gone."""
    run = Check(
        ["lesson"], [PORT], ["float64"], full_size=False, subprocesses=True)
    number = run.engines[PORT].ask("", process_id).result().value
    folder = run.shared.store({"a": np.ones(3)}).path.parent
    run.engines[PORT].ask("", sleeps)
    run.close()
    assert not folder.exists()
    assert ended(number)


def ended(number):
    """Whether a process ends within ten seconds."""
    for _ in range(100):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def sleeps(bench):
    time.sleep(600)


@pytest.mark.parametrize("begun", [
    "multiprocessing.get_context('spawn').Process(target=at_work).start()",
    "subprocess.Popen([sys.executable, '-c', 'from parity_tests.harness.check."
    "test_workers import at_work; at_work()'])"])
def test_what_is_at_work_ends_with_who_began_it(begun):
    """Also where that was killed, and could end nobody."""
    with subprocess.Popen(
            [sys.executable, "-c",
             "import multiprocessing, subprocess, sys, time\n"
             "from parity_tests.harness.check.test_workers import at_work\n"
             f"{begun}; time.sleep(600)"],
            stdout=subprocess.PIPE, text=True, cwd=ROOT) as asker:
        number = int(asker.stdout.readline())
        asker.kill()
        assert ended(number)


def at_work():
    end_with_parent()
    print(os.getpid(), flush=True)
    time.sleep(600)
