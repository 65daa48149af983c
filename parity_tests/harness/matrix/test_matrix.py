"""The matrix: each cell says what was measured, or why nothing was."""

import json
import mmap
import os
import pathlib
import re
import time
from unittest import mock

import numpy as np
import pytest

from parity import ports
from parity.check import workers
from parity.matrix import cells, measuring, repeats, run
from parity.matrix.processes import PortProcesses
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.render import matrix as tables
from parity.subjects import LITE_RT, OPENVINO, Subject
from parity_tests.support.commands import invoke

#: A mode of each port that takes seconds.
QUICK = {"torch": "export", "keras": "tf.function", "jax": "jit"}


PORTS = pytest.mark.parametrize("engine", QUICK, indirect=True)


def cell(engine, mode, work="forward", dtype="float64"):
    """The SubjectCell of a port, measured in this process."""
    subject = Subject(engine.NAME, mode=mode, dtype=dtype)
    found = measuring.measured(
        workers.Workbench(engine), subject, work, "lesson")
    if isinstance(found, str):
        return cells.left_out(subject, work, found)
    return cells.cell_of(subject, work, found)


@PORTS
@pytest.mark.parametrize("dtype", [
    "float64", pytest.param("float32", marks=pytest.mark.long)])
def test_a_mode_matches(engine, dtype):
    """``parity check matrix`` asks every mode, and its gradients."""
    found = cell(engine, QUICK[engine.NAME], dtype=dtype)
    assert (found.verdict, found.compared) == (MATCH, 1)
    assert 0 < found.share < 1


@PORTS
@pytest.mark.long(12)
def test_what_a_mode_adds_is_seen(engine):
    """A compiler that is off by 1e-11 in one value diverges."""
    modes = ports.modes(engine.NAME).MODES
    mode = QUICK[engine.NAME]

    def off(function, inputs, *more):
        return modes["eager"](
            lambda *inputs: function(*inputs) * (1 + 1e-11), inputs, *more)

    theirs = ports.modes(engine.NAME)
    with mock.patch.dict(modes, {mode: off}), mock.patch.object(
            theirs, "ran", lambda *given: True):
        found = cell(engine, mode)
    assert found.verdict == DIVERGENCE
    assert found.reason.startswith("output: worst at row")
    assert found.error == pytest.approx(1e-11, rel=1e-3)


@pytest.mark.long(32)
@pytest.mark.parametrize("engine, mode", [
    ("torch", "aot_eager"), ("torch", "export"), ("torch", "ONNX Runtime"),
    ("torch", "OpenVINO"), ("torch", "LiteRT"),
    ("keras", "tf.function"), ("keras", "XLA"), ("keras", "SavedModel"),
    ("keras", "ONNX Runtime"), ("jax", "jit"), ("jax", "export"),
    ("jax", "ONNX Runtime")], indirect=["engine"])
def test_what_was_not_compiled_is_seen(engine, mode):
    """The eager model in place of what a mode makes of it matches no mode."""
    modes = ports.modes(engine.NAME).MODES
    dtype = "float32" if mode in (OPENVINO, LITE_RT) else "float64"
    usual = cell(engine, mode, dtype=dtype)
    if usual.verdict not in (MATCH, DIVERGENCE):
        pytest.skip(f"not checked: {usual.reason}")
    with mock.patch.dict(modes, {mode: modes["eager"]}):
        found = cell(engine, mode, dtype=dtype)
    assert found.verdict == DIVERGENCE
    assert found.reason == f"{mode}: it did not run so"


@PORTS
def test_what_cannot_be_checked_says_why(engine):
    absent = measuring.measured(workers.Workbench(engine), Subject(
        engine.NAME, device="mps"), "forward", "lesson")
    assert absent == f"{engine.NAME} has no device mps here"
    assert "not in this mode" in measuring.measured(
        workers.Workbench(engine),
        Subject(engine.NAME, mode=QUICK[engine.NAME]), "training", "lesson")


def ends(bench):
    os._exit(9)


def sleeps(bench):
    time.sleep(60)


def name(bench):
    return bench.engine.NAME


@pytest.mark.long(4)
def test_a_process_that_ends_or_hangs_costs_one_cell():
    implementation = PortProcesses("numpy")
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
    found = cells.cell_of(Subject("torch"), "forward", {
        "differences": {
            "one": Difference(1e-16, 1e-12, MATCH),
            "two": Difference(1e-9, 1e-12, DIVERGENCE, "worst at row [0]"),
            "three": Difference(1e-3, 1e-12, DIVERGENCE, "worst at row [1]")},
        "seconds": 0.1, "preparing": 1.0})
    assert (found.tensor, found.error) == ("two", 1e-9)
    assert found.reason == "two: worst at row [0]"


@pytest.mark.long(4)
def test_the_command_writes_what_it_prints(tmp_path):
    page, data = tmp_path / "m.md", tmp_path / "m.json"
    result = invoke(
        "check", "matrix", "--port", "numpy", "--dtype", "float64,float32",
        "--json", data, "--markdown", page)
    assert result.exit_code == 0, result.output
    assert "10 cells: 5 measured" in result.output
    assert "not checked: numpy" in result.output
    written = json.loads(data.read_text(encoding="utf-8"))
    read = [cells.SubjectCell.of_json(words) for words in written["cells"]]
    assert [one.as_json() for one in read] == written["cells"]
    assert sum(one.verdict == MATCH for one in read) == 5
    text = page.read_text(encoding="utf-8")
    assert "| numpy | fast | eager | cpu | " in text
    assert "it is the truth: numpy" in text


@pytest.mark.parametrize("words, said", [
    (["--mode", "nothing", "--port", "numpy", "--work", "forward",
      "--dtype", "float64"], "mode 'nothing' is unknown"),
    (["--mode", ","], "no mode is given"),
    (["--mode", "eager export", "--port", "torch"],
     "mode 'eager export' is unknown"),
    (["--mode", "FSDP2 + TP", "--port", "torch", "--mesh", "data=2"],
     "mode 'FSDP2 + TP' is unknown"),
    (["--mode", "[/red]", "--port", "numpy"], "mode '[/red]' is unknown"),
    (["--preset", "nothing"], "preset"),
    (["--dtype", "int8"], "dtype"),
    (["--device", "abacus"], "device")])
def test_what_is_not_there_is_refused(words, said):
    with mock.patch.object(run, "cells", lambda *given: pytest.fail("begun")):
        result = invoke("check", "matrix", *words)
    assert result.exit_code == 2
    assert said in result.output + result.stderr


def test_each_cell_is_told_as_it_begins():
    """Which of how many; numbers of cells that need no time are left out."""
    wanted, told = run.Wanted(("numpy",), dtypes=("float64",)), []
    result = run.run("lesson", wanted, lambda *words: told.append(words))
    count = len(result.cells)
    assert run.count_of(wanted) == count and told[0] == (
        1, count, "starting numpy")
    assert told[1:] == [
        (place, count, f"{one.subject}: {one.work}")
        for place, one in enumerate(result.cells, 1)
        if one.subject.form == "fast"]


@PORTS
def test_every_mode_can_be_asked_for(engine):
    backend = ports.backend(engine.NAME)
    those = run.modes_of(run.Wanted((engine.NAME,), (backend,)))
    assert those == measuring.modes(workers.Workbench(engine))
    words = run.modes_of(run.Wanted(("torch",), meshes=("data=2,model=2",)))

    def given(text, known):
        return ports.split_words([text], known, "mode", spaces=False)
    assert given("FSDP2 + TP", words) == ["FSDP2 + TP"]
    assert given("eager, ONNX  Runtime", ("eager", "ONNX Runtime")) == [
        "eager", "ONNX Runtime"]
    assert given("eager,all", ("eager", "jit")) == ["eager", "jit"]


def test_nothing_compared_is_no_match():
    result = invoke(
        "check", "matrix", "--port", "numpy", "--form", "readable", "--work",
        "forward", "--dtype", "float64")
    assert result.exit_code == 4


def test_no_cell_at_all_is_said(tmp_path):
    result = invoke(
        "check", "matrix", "--port", "numpy", "--work", "gradients", "--dtype",
        "float16", "--markdown", tmp_path / "m.md")
    assert result.exit_code == 4
    assert "Nothing was compared" in result.output


@pytest.mark.long(4)
def test_an_earlier_run_is_shown_too(tmp_path):
    """What is measured again is new; all else is the earlier run's."""
    words = ["check", "matrix", "--port", "numpy", "--work", "forward",
             "--json"]
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    assert invoke(*words, first, "--dtype", "float64,float32").exit_code == 0
    page = tmp_path / "m.md"
    done = invoke(
        *words, second, "--dtype", "float32,float16", "--add", first,
        "--markdown", page)
    assert done.exit_code == 0, done.output
    matrix = cells.read_matrix(second)
    assert [(one.subject.dtype, one.place) for one in matrix.cells
            if one.subject.form == "fast"] == [
        ("float64", 1), ("float32", 0), ("float16", 0)]
    assert page.read_text("utf-8").count("cells: 20") == 1  # one place


@pytest.mark.long(4)
def test_other_presets_have_a_table(tmp_path):
    other, page = tmp_path / "1.json", tmp_path / "m.md"
    words = ["check", "matrix", "--port", "numpy", "--work", "forward",
             "--dtype", "float64"]
    assert invoke(
        *words, "--preset", "notebook", "--json", other).exit_code == 0
    done = invoke(*words, "--add", other, "--markdown", page)
    assert done.exit_code == 0, done.output
    text = page.read_text("utf-8")
    assert "| where | lesson | notebook |" in text
    assert "of all that was compared in float64," in text
    row = text.partition("| where | lesson | notebook |")[2].splitlines()[2]
    shares = [float(cell) for cell in row.split("|")[5:7]]
    assert all(0 < share < 1 for share in shares)


@pytest.mark.parametrize("text, said", [
    ("{}", "is no matrix"), ("[]", "is not a JSON object"),
    ('{"preset": "lesson", "places": [], "cells": [1]}', "is no matrix"),
    (json.dumps(cells.Matrix("practical", places=[run.here()]).as_json()),
     "not of lesson")])
def test_an_earlier_run_that_is_none_is_refused(text, said, tmp_path):
    file = tmp_path / "m.json"
    file.write_text(text)
    done = invoke("check", "matrix", "--port", "numpy", "--add", file)
    assert done.exit_code == 2
    assert said in done.output + done.stderr


def earlier(tmp_path, target=None, **changed):
    """What is said of an earlier run with a cell of these words."""
    cell = cells.SubjectCell(
        Subject("jax"), "forward", MATCH, "", 1e-15, 1e-12, "output", 1)
    words = cells.Matrix("lesson", [cell], [run.here()]).as_json()
    one = words["cells"][0]
    words |= {name: changed.pop(name) for name in set(words) & set(changed)}
    one["target"] |= target or {}
    one |= changed
    file = tmp_path / "m.json"
    file.write_text(json.dumps(words))
    return invoke(
        "check", "matrix", "--port", "numpy", "--form", "fast", "--work",
        "forward", "--dtype", "float64", "--add", file, "--markdown",
        tmp_path / "m.md", "--html", tmp_path / "m.html")


@pytest.mark.parametrize("changed", [
    {"verdict": "fine"}, {"error": None}, {"error": "x"}, {"work": "dance"},
    {"work": "training", "target": {"dtype": "float16"}},
    {"place": 1}, {"places": None}, {"cells": "abc"}, {"schema": None},
    {"preset": "nothing"}], ids=str)
def test_an_earlier_run_has_known_types_and_words(changed, tmp_path):
    with mock.patch.object(run, "cells", lambda *given: pytest.fail("begun")):
        done = earlier(tmp_path, **changed)
    assert done.exit_code == 2, done.output
    assert "is no matrix; give" in done.stderr
    assert done.stderr.count("\n") == 1 and done.stderr.endswith("wrote.\n")


def test_an_earlier_run_that_is_not_there_is_told_in_a_sentence():
    done = invoke("check", "matrix", "--port", "numpy", "--add", "/nope")
    assert done.exit_code == 2
    assert done.stderr == ("parity: '/nope' cannot be read (No such file or "
                           "directory); check the path.\n")


def test_an_earlier_run_of_a_newer_version_is_refused(tmp_path):
    done = earlier(tmp_path, schema=2)
    assert done.exit_code == 2
    assert "newer version" in done.output + done.stderr


def test_an_earlier_match_above_its_limit_is_none(tmp_path):
    done = earlier(tmp_path, error=1.0)
    assert done.exit_code == 1
    assert "DIVERGENCE: jax: forward: output: above its limit" in done.output


@pytest.mark.parametrize("changed", [
    {"verdict": "divergence", "cause": "[/b]"},
    {"verdict": "not checked", "error": None, "limit": None, "tensor": "",
     "compared": 0},
    {"places": [run.here() | {
        "processor": "[/b] | a\n\n# title"}], "reason": ""}], ids=str)
def test_foreign_words_are_no_markup(changed, tmp_path):
    """Brackets in a terminal, bars and new lines in Markdown, tags in HTML."""
    words = "[/__w/gloo/pair.cc:534] closed :boom: | a\n\n# title <b>"
    done = earlier(tmp_path, **{"reason": words} | changed)
    assert done.exit_code == int("cause" in changed), done.output
    assert ("[/b]" in done.output) == ("cause" in changed)
    if "places" not in changed:
        assert "[/__w/gloo/pair.cc:534] closed :boom: | a" in done.output
    html = (tmp_path / "m.html").read_text("utf-8")
    assert ("&lt;b&gt;" in html) == ("places" not in changed)
    assert "title <b>" not in html and "<script" not in html
    assert ("Verdict: <span class=\"verdict divergence\">" in html) == (
        "cause" in changed)
    page = (tmp_path / "m.md").read_text("utf-8")
    assert "\n# title" not in page
    tables = [part.splitlines() for part in page.split("\n\n")
              if part.startswith("|")]
    assert len(tables) == 5
    for table in tables:  # each has as many columns everywhere
        assert len({len(re.findall(r"(?<!\\)\|", line))
                    for line in table}) == 1


def test_every_cell_is_a_number_or_a_reason():
    matrix = cells.Matrix("lesson", [
        cells.left_out(Subject("torch"), "forward", "it rains"),
        cells.failed(Subject("jax"), "forward", "its process ended")])
    assert matrix.status == 1
    assert tables.reasons(matrix) == {
        "it rains": ["torch (forward in float64)"]}
    assert tables.shown(matrix.cells[1]) == "DIVERGES"


@pytest.mark.skipif(not pathlib.Path("/proc/self/clear_refs").exists(),
                    reason="not checked: this system tells no peak of memory")
def test_repeats_and_costs_are_measured():
    """A model that drifts, whose rows depend on others, and that needs room."""
    asked = iter(range(100))

    def predictor_of(inputs):
        def predict():
            # Its own pages: the C library may keep what it was given back.
            room = np.frombuffer(mmap.mmap(-1, len(inputs[0]) * 2**18))
            room[:] = 1.0
            return (room.reshape(-1, 2**15)[:, :3] + len(inputs[0])) * (
                1 + next(asked) * 1e-3)
        return predict

    found = repeats.measured(
        predictor_of, [np.ones((2, 4))], Subject("jax"))
    assert found["again"] == pytest.approx(10e-3, rel=1e-6)
    assert found["alone"] == pytest.approx(1 - 2 * 1.001 / 3, rel=1e-6)
    assert found["threads"] is None and found["large"] > 0
    rows = 2 * repeats.BATCHES
    # Linux counts pages in lots, and may be a few behind.
    assert .9 * rows * 2**18 < found["memory"] < 2 * rows * 2**18
