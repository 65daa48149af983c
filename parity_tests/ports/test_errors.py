"""Bad input: one sentence that names the thing, and nothing half-written."""

import json

import numpy as np
import pytest

from transformer_contract import checks
from parity_io.errors import InputError
from parity import ports
from parity.check import cases, golden
from parity.ports import NotChecked
from parity_tests.support.commands import invoke

CONFIG = cases.test_size("complete")


def model(engine):
    return engine.build("transformer", CONFIG, golden.shipped("complete"))


def batch(**changes):
    found = cases.padded_batch(CONFIG)
    return [changes.get(name, value)
            for name, value in zip(golden.INPUTS, found)]


def ids(value, name):
    array = getattr(cases.padded_batch(CONFIG), name).copy()
    array[1, 2] = value
    return array


@pytest.mark.long(24)
@pytest.mark.parametrize("name, wrong, words", [
    *((name, ids(value, name), rf"the {name} id {value} at \[1, 2\]")
      for name, value in (("source", 37), ("source", -1), ("target", 41),
                          ("target", 10**9))),
    ("source", np.ones((5, 11)), "float64"),
    ("source", np.ones(11, int), "shape"),
    ("source", np.ones((0, 11), int), "empty"),
    ("source", np.ones((5, 0), int), "empty"),
    ("source", np.ones((4, 11), int), "as many"),
    *((name, np.ones(shape, bool), "mask has shape") for name, shape in (
        ("source_mask", (5, 11)), ("source_mask", (5, 1, 1, 10)),
        ("source_mask", (5, 1, 11, 1)), ("target_mask", (5, 1, 1, 11)),
        ("target_mask", (5, 1, 10, 10)), ("target_mask", (1, 5, 9, 9))))])
def test_wrong_inputs_are_named(engine, name, wrong, words):
    """Each would be NaN, broadcast, or fail deep inside, in some port."""
    with pytest.raises(InputError, match=words):
        engine.forward(model(engine), *batch(**{name: wrong}))


@pytest.mark.parametrize("kind", [np.int64, np.float32, np.float64])
def test_mask_must_be_boolean(engine, kind):
    """0 and 1, or 0 and -inf: nobody can tell what a number means."""
    given = batch()
    wrong = batch(source_mask=given[2].astype(kind))
    with pytest.raises(InputError, match="True where a query may attend"):
        engine.forward(model(engine), *wrong)
    attention = engine.build("multi_head_attention", CONFIG, {
        name.removeprefix("encoder.layers.0.self_attention."): array
        for name, array in golden.shipped("complete").items()
        if name.startswith("encoder.layers.0.self_attention.")})
    x = np.ones((5, 11, CONFIG.d_model))
    with pytest.raises(InputError, match="True where a query may attend"):
        engine.run(attention, x, x, given[2].astype(kind), cache=None)


def test_the_checks_let_good_inputs_through():
    checks.tokens(np.zeros((1, 1), int), 1, 1, "source")
    checks.mask(np.ones((1, 1, 1, 3), bool), (2, 4, 5, 3))


def run(*words):
    return invoke(*words)


def told(done, *words):
    """Exit 2 and one sentence on standard error, with these words in it."""
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("parity: ")
    assert done.stderr.count("\n") == 1 and done.stderr.endswith(".\n")
    assert "Traceback" not in done.output
    for word in words:
        assert word in done.stderr
    return True


@pytest.mark.parametrize("option, value", [
    ("--preset", "annotated"), ("--port", "mxnet"), ("--dtype", "float128"),
    ("--device", "abacus"), ("--require", "mxnet"), ("--preset", "lesson,no"),
    ("--preset", ","), ("--port", "numpy")])
def test_unknown_words(option, value):
    unknown = value.split(",")[-1]
    assert told(run("check", option, value), unknown, "choose")


@pytest.mark.parametrize("command", [
    ["check"], ["check", "vectors", "parity_tests/data/vectors"]])
@pytest.mark.parametrize("name", ["no/such/folder/r.json", "."])
def test_a_report_that_cannot_be_written(tmp_path, command, name):
    """Said before the work, not after it."""
    words = [*command, "--json", tmp_path / name]
    assert told(run(*words), name.split("/")[0].strip("."))


@pytest.mark.parametrize("content", [None, b"", b"text"])
def test_unreadable_vectors(tmp_path, content):
    path = tmp_path / "v.safetensors"
    if content is not None:
        path.write_bytes(content)
    report = tmp_path / "r.json"
    assert told(run("check", "vectors", path, "--json", report),
                "v.safetensors")
    assert not report.exists()


def test_a_whole_disk_is_not_searched_for_vectors(tmp_path, monkeypatch):
    monkeypatch.setattr("parity.check.vectors.MOST", 3)
    for i in range(2):
        (tmp_path / f"{i}").mkdir()
    assert told(run("check", "vectors", tmp_path), "no .safetensors file")
    (tmp_path / "2").mkdir()
    assert told(run("check", "vectors", tmp_path), "holds more than 3 others")


def test_usage_errors_exit_with_2():
    for words in (["check", "--no-such-option"], ["no-such-command"],
                  ["check", "vectors"]):
        assert run(*words).exit_code == 2


@pytest.fixture
def without_torch(monkeypatch):
    """A machine on which torch is not installed."""
    real = ports.missing
    monkeypatch.setattr(ports, "missing", lambda name: (
        "torch is not installed" if name == "torch" else real(name)))
    ports.engine.cache_clear()
    yield
    ports.engine.cache_clear()


@pytest.mark.long(8)
def test_a_required_port_that_is_missing(without_torch, tmp_path):
    report = tmp_path / "r.json"
    done = run("check", "--require", "torch", "--json", report)
    assert done.exit_code == 3
    assert done.stderr == ("parity: torch is required and cannot be checked: "
                           "torch is not installed.\n")
    assert not report.exists()


def test_nothing_compared(without_torch, tmp_path):
    report = tmp_path / "r.json"
    done = run("check", "--port", "torch", "--preset", "lesson",
               "--no-full-size", "--json", report)
    assert done.exit_code == 4
    found = json.loads(report.read_text())
    assert found["verdict"] == "nothing compared"
    assert found["compared"] == 0 and found["expected"] > 0
    assert found["not_checked"] == [
        {"port": "torch", "reason": "torch is not installed", "device": ""}]


def test_a_device_that_is_not_here(port):
    missing = next(d for d in ("tpu", "xpu") if d not in port.devices())
    done = run("check", "--port", port.NAME, "--preset", "lesson", "--device",
               missing, "--no-full-size")
    assert done.exit_code == 4
    assert f"no device {missing}" in done.output


@pytest.mark.long(8)
def test_a_missing_port_does_not_count_as_passed(without_torch, tmp_path):
    """The others are compared; torch stands as not checked."""
    names = [n for n in ports.known_ports()
             if not isinstance(ports.engine(n), NotChecked)]
    if not names:
        pytest.skip("not checked: no framework is installed")
    report = tmp_path / "r.json"
    done = run("check", "--port", f"torch,{names[0]}", "--preset", "lesson",
               "--dtype", "float64", "--no-full-size", "--json", report)
    assert done.exit_code == 0
    assert "not checked: torch, torch is not installed" in done.output
    found = json.loads(report.read_text())
    assert found["expected"] == 2 * found["compared"] > 0
    assert {c["port"] for c in found["comparisons"]} == {names[0]}
