"""Known differences: each is as recorded, and a change would be seen."""

import dataclasses
import io
import json
import math

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from parity import ports
from parity.commands import differences
from parity.differences import asking, registry
from parity.differences.asking import (
    CHANGED, HIDDEN, NEEDS, OURS, RECORDED, TOPICS, UNCHECKED, demonstrate,
    framework, same)
from parity.differences.registry import REGISTRY
from parity_tests.support.processes import python

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
app.command()(differences.differences)

#: A quick row that asks NumPy and frameworks.
ROW = "std_of_four"


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.fixture
def changed(monkeypatch):
    """Let one answerer of ROW answer 7."""
    known = REGISTRY[ROW]
    answers = {**known.answers, "numpy": lambda: 7.0}
    monkeypatch.setitem(
        REGISTRY, ROW, dataclasses.replace(known, answers=answers))


@pytest.fixture
def without(monkeypatch):
    """Let frameworks be absent."""
    def take_away(*names):
        real = asking.absent

        def absent(name):
            if name in names:
                return f"{name} is not installed"
            return real(name)

        monkeypatch.setattr(asking, "absent", absent)
    return take_away


def everyone():
    return [name for name in NEEDS if name not in OURS]


@pytest.mark.long(48)
@pytest.mark.parametrize("name", REGISTRY)
def test_as_recorded(name):
    """Each row, and its effect: nonzero, hidden just where it says so."""
    found = demonstrate(REGISTRY[name])
    assert found.status != CHANGED, found.reason()
    if found.effect is not None and not isinstance(
            found.effect, ports.NotChecked):
        effect = found.known.effect
        assert set(effect.hidden) <= set(found.effect)
        for label, value in found.effect.items():
            assert 0 < value < math.inf, label
            assert (value < HIDDEN) == (label in effect.hidden), (label, value)
    if found.status == UNCHECKED:
        pytest.skip(f"not checked: {found.reason()}")
    assert found.status == RECORDED


def test_registry():
    """Many rows, every topic, plain answers, and somebody to ask."""
    assert len(REGISTRY) >= 80
    assert {known.topic for known in REGISTRY.values()} == set(TOPICS)
    for name, known in REGISTRY.items():
        assert name == known.name and name.isidentifier()
        assert known.answers.keys() == known.expected.keys()
        assert known.about.endswith(".") and len(known.about) < 400
        assert {framework(who) for who in known.answers} <= set(NEEDS)
        for value in known.expected.values():
            json.dumps(asking.plain(value), allow_nan=False)
        if known.effect:
            assert set(known.effect.needs) <= set(NEEDS)
    assert all(reason for reason in asking.LEFT_OUT.values())


def test_a_changed_default_is_caught(changed):
    found = demonstrate(REGISTRY[ROW])
    assert found.status == CHANGED
    assert found.changed == ("numpy",)
    assert found.reason() == "numpy from 1.118 to 7"


def test_a_framework_that_raises_has_changed(monkeypatch):
    def gone():
        raise AttributeError("no such function")

    known = REGISTRY[ROW]
    monkeypatch.setitem(REGISTRY, ROW, dataclasses.replace(
        known, answers={**known.answers, "numpy": gone}))
    found = demonstrate(REGISTRY[ROW])
    assert found.status == CHANGED
    assert found.answers["numpy"] == "AttributeError"


def test_an_absent_framework_is_not_checked(without):
    without(*everyone())
    found = demonstrate(REGISTRY[ROW])
    assert found.status == UNCHECKED and found.checked == 0
    assert set(found.missing) == set(found.answers) - {"numpy"}
    assert "torch is not installed" in found.reason()


def test_one_absent_framework_leaves_the_others(without, changed):
    without("torch")
    found = demonstrate(REGISTRY[ROW])
    assert found.missing == ("torch",) and found.changed == ("numpy",)
    assert found.status == CHANGED


def test_an_effect_without_its_framework(without):
    without("flax")
    found = demonstrate(REGISTRY["fast_variance"])
    assert isinstance(found.effect, ports.NotChecked)
    assert found.status == UNCHECKED


def test_a_framework_that_is_not_there_at_all(monkeypatch):
    monkeypatch.setitem(NEEDS, "nothing", ("no_such_module",))
    assert asking.absent("nothing") == "no_such_module is not installed"


@pytest.mark.parametrize("found, recorded, equal", [
    (1.0001, 1.0, True), (1.01, 1.0, False), (math.nan, math.nan, True),
    (0.0, math.nan, False), (3, 3, True), (3.0, 3, False), (3, 3.0, True),
    ("a", "b", False), ((1, "a"), (1, "a"), True), ((1,), (1, 2), False),
    ("ValueError", 1.0, False), (0.0, 0.0, True), (1e-9, 0.0, False),
    (True, 1.0, False), (math.inf, math.inf, True)])
def test_same(found, recorded, equal):
    assert same(found, recorded, 1e-3) is equal


def test_command(tmp_path):
    done = run(ROW, "--json", tmp_path / "d.json",
               "--markdown", tmp_path / "d.md")
    found = json.loads((tmp_path / "d.json").read_text())
    row, = found["differences"]
    assert row["name"] == ROW and row["topic"] == "normalisation"
    assert row["status"] in (RECORDED, UNCHECKED)
    assert row["answers"]["numpy"] == {
        "expected": 1.118, "found": pytest.approx(1.118034), "status": RECORDED
    }
    assert found["schema"] == 1 and found["versions"]["numpy"]
    assert found["status"] == done.exit_code
    assert done.exit_code in (0, 4)
    assert ROW in done.output and "1 difference:" in done.output
    page = (tmp_path / "d.md").read_text()
    assert "## Normalisation" in page and "| NumPy | 1.118 |" in page
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.json", "d.md"]


def test_brackets_are_shown():
    """Rich would take E[x²] for a style and leave it out."""
    known = REGISTRY["fast_variance"]
    found = asking.Found(known, dict(known.expected), None, (), ())
    out = Console(record=True, width=132, file=io.StringIO())
    differences.print_rows(out, [found])
    assert "E[x²] − E[x]²" in out.export_text()


def test_command_by_topic(without):
    without(*everyone())
    done = run("--run", "--topic", "normalisation")
    assert done.exit_code == 4 and "1.118" in done.output
    assert "not checked: torch, torch is not installed" in done.output
    assert "gelu" not in done.output


def test_command_says_what_changed(changed, tmp_path):
    done = run(ROW, "--json", tmp_path / "d.json",
               "--markdown", tmp_path / "d.md")
    assert done.exit_code == 1 and "CHANGED" in done.output
    assert f"changed: {ROW}, numpy from 1.118 to 7" in done.output
    found = json.loads((tmp_path / "d.json").read_text())
    assert found["status"] == 1
    assert found["differences"][0]["answers"]["numpy"]["status"] == CHANGED
    assert "7 (recorded: 1.118)" in (tmp_path / "d.md").read_text()


def test_a_change_counts_where_frameworks_are_absent(changed, without):
    without(*everyone())
    assert run("--run", ROW).exit_code == 1


@pytest.mark.parametrize("words, text", [
    (["no_such_row"], "no_such_row"), (["--topic", "cooking"], "cooking"),
    ([ROW, "--topic", "loss"], ROW),
    ([ROW, "--json", "no/such/folder/d.json"], "no/such/folder")])
def test_usage(words, text):
    done = run(*words)
    assert done.exit_code == 2
    assert text in done.output and "Traceback" not in done.output


def test_what_is_recorded_is_shown_at_once(changed, without):
    """Nobody is asked, so nothing can have changed and nothing is absent."""
    without(*everyone())
    done = run(ROW)
    assert done.exit_code == 0
    assert ROW in done.output and "1.118" in done.output
    assert "not checked" not in done.output and "CHANGED" not in done.output


def test_between_two():
    rows = registry.between(list(REGISTRY.values()), ["torch", "jax"])
    assert 10 < len(rows) < len(REGISTRY)
    for row in rows:
        sides = {asking.framework(who) for who in row.expected}
        assert "torch" in sides and sides & {"jax", "flax", "optax"}
        assert not sides & {"keras", "tensorflow", "numpy", "onnx"}
        assert row.answers.keys() == row.expected.keys()
    done = run("--between", "torch,jax", "layer_norm_epsilon")
    assert done.exit_code == 0
    assert "1e-05" in done.output and "1e-06" in done.output
    assert "Keras" not in done.output and "0.001" not in done.output


@pytest.mark.parametrize("words, says", [
    (["--between", "torch"], "give two of"),
    (["--between", "torch,torch"], "give two of"),
    (["--between", "torch,jx"], "did you mean jax?"),
    (["--between", "torch,numpy", "fused_moments"], "difference"),
    (["--between", "torch,tokenizers", "layer_norm_epsilon"],
     "none is between torch and tokenizers"),
])
def test_between_others(words, says):
    done = run(*words)
    assert done.exit_code == 2 and says in done.output + done.stderr


@pytest.mark.long(8)
def test_tensorflows_log_is_kept_away():
    """Its first lines come before any setting of it is read."""
    if asking.absent("tensorflow"):
        pytest.skip("not checked: tensorflow is not installed")
    done = python("-c", "from parity.differences import asking; "
                  "asking.absent('tensorflow')")
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_left_out_is_not_asked():
    """Neither for its answer nor for an effect; what is recorded stays."""
    def never():
        raise AssertionError
    known = asking.Known(
        "x", "loss", "", {"torch": never, "numpy": lambda: 1.0},
        {"torch": 2.0, "numpy": 1.0},
        effect=asking.Effect("", never, needs=("torch",)))
    found = asking.demonstrate(known, {"torch": "why not"})
    assert found.missing == ("torch",) and found.reason() == "torch: why not"
    assert found.answers["numpy"] == 1.0 and found.status == asking.UNCHECKED
    assert found.effect.reason == "why not"
