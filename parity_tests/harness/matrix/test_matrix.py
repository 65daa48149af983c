"""The matrix: each cell says what was measured, or why nothing was."""

import json
import os
import time
from unittest import mock

import pytest

from parity import ports
from parity.check import workers
from parity.matrix import cells, measuring, run
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.render import matrix as tables
from parity.targets import Target
from parity_tests.support.commands import invoke

#: A mode of each port that takes seconds; the others are marked long.
QUICK = {"torch": "export", "keras": "tf.function", "jax": "jit"}


PORTS = pytest.mark.parametrize("engine", QUICK, indirect=True)


def cell(engine, mode, work="forward", dtype="float64"):
    """The TargetCell of a port, measured in this process."""
    target = Target(engine.NAME, mode=mode, dtype=dtype)
    found = measuring.measured(
        workers.Workbench(engine), target, work, "lesson")
    if isinstance(found, str):
        return cells.left_out(target, work, found)
    return cells.cell_of(target, work, found)


@PORTS
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_mode_matches(engine, dtype):
    found = cell(engine, QUICK[engine.NAME], dtype=dtype)
    assert (found.verdict, found.compared) == (MATCH, 1)
    assert 0 < found.share < 1


@pytest.mark.long
@PORTS
@pytest.mark.parametrize("work", ["forward", "gradients"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_mode_matches(engine, dtype, work):
    for mode in measuring.modes(workers.Workbench(engine)):
        found = cell(engine, mode, work, dtype)
        assert found.verdict == MATCH or found.reason, found


@PORTS
def test_what_a_mode_adds_is_seen(engine):
    """A compiler that is off by 1e-11 in one value diverges."""
    modes = ports.modes(engine.NAME).MODES
    mode = QUICK[engine.NAME]

    def off(function, inputs, *more):
        run = modes["eager"](function, inputs, *more)
        return lambda *inputs: run(*inputs) * (1 + 1e-11)

    with mock.patch.dict(modes, {mode: off}):
        found = cell(engine, mode)
    assert found.verdict == DIVERGENCE
    assert found.reason.startswith("output: worst at row")
    assert found.error == pytest.approx(1e-11, rel=1e-3)


@PORTS
def test_what_cannot_be_checked_says_why(engine):
    absent = measuring.measured(workers.Workbench(engine), Target(
        engine.NAME, device="mps"), "forward", "lesson")
    assert absent == f"{engine.NAME} has no device mps here"
    assert "not in this mode" in measuring.measured(
        workers.Workbench(engine),
        Target(engine.NAME, mode=QUICK[engine.NAME]), "training", "lesson")


def ends(bench):
    os._exit(9)


def sleeps(bench):
    time.sleep(60)


def name(bench):
    return bench.engine.NAME


def test_a_process_that_ends_or_hangs_costs_one_cell():
    implementation = run.PortProcess("numpy")
    try:
        for function, patience, words in (
                (ends, 60, "its process ended"),
                (sleeps, 1, "it took more than 1 seconds")):
            reply = implementation.ask("", function, patience=patience)
            assert reply.failure == words
            assert implementation.ask("", name).value == "numpy"
    finally:
        implementation.close()


def test_a_first_divergence_is_the_cell():
    """Of what diverges the first step, not the worst, is the cause."""
    from parity.numerics.comparator import Difference
    found = cells.cell_of(Target("torch"), "forward", {
        "differences": {
            "one": Difference(1e-16, 1e-12, MATCH),
            "two": Difference(1e-9, 1e-12, DIVERGENCE, "worst at row [0]"),
            "three": Difference(1e-3, 1e-12, DIVERGENCE, "worst at row [1]")},
        "seconds": 0.1, "preparing": 1.0})
    assert (found.tensor, found.error) == ("two", 1e-9)
    assert found.reason == "two: worst at row [0]"


def test_the_command_writes_what_it_prints(tmp_path):
    page, data = tmp_path / "m.md", tmp_path / "m.json"
    result = invoke("matrix", "--port", "numpy", "--dtype", "float64,float32",
                    "--json", data, "--markdown", page)
    assert result.exit_code == 0, result.output
    assert "10 cells: 5 measured" in result.output
    assert "not checked: numpy" in result.output
    written = json.loads(data.read_text(encoding="utf-8"))
    read = [cells.TargetCell.of_json(words) for words in written["cells"]]
    assert [one.as_json() for one in read] == written["cells"]
    assert sum(one.verdict == MATCH for one in read) == 5
    text = page.read_text(encoding="utf-8")
    assert "| numpy | fast | eager | cpu | " in text
    assert "it is the truth: numpy" in text


@pytest.mark.parametrize("words, said", [
    (["--mode", "nothing", "--port", "numpy", "--work", "forward",
      "--dtype", "float64"], "has a mode nothing"),
    (["--preset", "nothing"], "preset"),
    (["--dtype", "int8"], "dtype"),
    (["--device", "abacus"], "device")])
def test_what_is_not_there_is_refused(words, said):
    result = invoke("matrix", *words)
    assert result.exit_code == 2
    assert said in result.output + result.stderr


def test_nothing_compared_is_no_match():
    result = invoke("matrix", "--port", "numpy", "--form", "readable",
                    "--work", "forward", "--dtype", "float64")
    assert result.exit_code == 4


def test_an_earlier_run_is_shown_too(tmp_path):
    """What is measured again is new; all else is the earlier run's."""
    words = ["matrix", "--port", "numpy", "--work", "forward", "--json"]
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    assert invoke(*words, first, "--dtype", "float64,float32").exit_code == 0
    page = tmp_path / "m.md"
    done = invoke(*words, second, "--dtype", "float32,float16",
                  "--add", first, "--markdown", page)
    assert done.exit_code == 0, done.output
    matrix = cells.Matrix.read(second)
    assert [(one.target.dtype, one.place) for one in matrix.cells
            if one.target.form == "fast"] == [
        ("float64", 1), ("float32", 0), ("float16", 0)]
    assert page.read_text("utf-8").count("cells: 20") == 2


@pytest.mark.parametrize("text, said", [
    ("{}", "is no matrix"), ("[]", "is not a JSON object"),
    ('{"preset": "lesson", "places": [], "cells": [1]}', "is no matrix"),
    ('{"preset": "practical", "places": [], "cells": []}', "not of lesson")])
def test_an_earlier_run_that_is_none_is_refused(text, said, tmp_path):
    file = tmp_path / "m.json"
    file.write_text(text)
    done = invoke("matrix", "--port", "numpy", "--add", file)
    assert done.exit_code == 2
    assert said in done.output + done.stderr


def test_every_cell_is_a_number_or_a_reason():
    matrix = cells.Matrix("lesson", [
        cells.left_out(Target("torch"), "forward", "it rains"),
        cells.failed(Target("jax"), "forward", "its process ended")])
    assert matrix.status == 1
    assert tables.reasons(matrix) == {
        "it rains": ["torch (forward in float64)"]}
    assert tables.shown(matrix.cells[1]) == "DIVERGES"
