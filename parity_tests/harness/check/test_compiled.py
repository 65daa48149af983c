"""How JAX compiles what a check runs."""

import os

import pytest

from parity import compiled
from parity_tests.support.commands import invoke
from parity_tests.support.engines import usable
from parity_tests.support.places import ROOT


def test_what_is_pinned_knows_the_options(monkeypatch):
    """When a library is raised, its options are tried anew: see KNOWN."""
    pinned = dict(line.split("==") for line in (
        ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    here = [(name, pinned[name]) for name in compiled.KNOWN if name in pinned]
    assert {name for name, _ in here} >= {"jaxlib", "tensorflow-cpu"}
    monkeypatch.delenv(compiled.OPTIONS, raising=False)
    monkeypatch.setattr(compiled, "installed", lambda names: here)
    assert compiled.quickly() == {compiled.OPTIONS: compiled.QUICKLY}


@pytest.mark.parametrize("name", compiled.KNOWN)
def test_another_version_is_given_no_option(name, monkeypatch):
    """XLA would end the process for one that it does not know."""
    monkeypatch.delenv(compiled.OPTIONS, raising=False)
    monkeypatch.setattr(compiled, "installed", lambda names: [(name, "99.1")])
    assert compiled.quickly() == {}


def test_options_that_are_set_stay(monkeypatch):
    monkeypatch.setenv(compiled.OPTIONS, "mine")
    assert compiled.quickly() == {}


def test_no_variable_is_left(monkeypatch):
    monkeypatch.delenv("PARITY_A", raising=False)
    monkeypatch.setenv("PARITY_B", "before")
    before = dict(os.environ)
    with compiled.environment({"PARITY_A": "1", "PARITY_B": "2"}):
        assert os.environ["PARITY_A"] == "1" and os.environ["PARITY_B"] == "2"
    assert os.environ == before


def test_a_command_keeps_what_jax_compiles(tmp_path, monkeypatch):
    """While it runs alone, and where a folder is made for that."""
    monkeypatch.delenv(compiled.KEPT, raising=False)
    monkeypatch.setattr(compiled, "folder", lambda: tmp_path)
    script = tmp_path / "mine.py"
    script.write_text("import os\n"
                      f"raise SystemExit(os.environ['{compiled.KEPT}'])")
    told = invoke(
        "dump", f"{script}:make", "--out", str(tmp_path / "out")).output
    assert str(tmp_path) in told
    assert compiled.KEPT not in os.environ


@pytest.mark.parametrize("options, unsure", [
    (None, []), (compiled.QUICKLY, []),
    (f"{compiled.QUICKLY} --mine=1", ["--mine=1"])])
def test_options_that_xla_may_not_know(options, unsure, monkeypatch):
    monkeypatch.delenv(compiled.OPTIONS, raising=False)
    if options:
        monkeypatch.setenv(compiled.OPTIONS, options)
    assert compiled.unsure() == unsure


def test_a_process_that_xla_ends_is_a_mistake_of_usage(monkeypatch):
    """In a sentence with the option, and no divergence."""
    usable("jax")
    monkeypatch.setenv(compiled.OPTIONS, "--xla_is_not_told_this=1")
    result = invoke(
        "check", "--port", "jax", "--preset", "lesson", "--dtype", "float64")
    assert result.exit_code == 2
    assert "take --xla_is_not_told_this=1 out of XLA_FLAGS" in " ".join(
        result.output.split())
