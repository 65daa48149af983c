"""The command parity mutate: its words, its exit statuses, its file."""

import json

import pytest
from typer.testing import CliRunner

from parity import ports
from parity.cli import app
from parity_tests.support.engines import usable


def run(*words):
    return CliRunner().invoke(app, ["mutate", *map(str, words)])


@pytest.mark.parametrize("words, said", [
    (["--port", "mxnet"], "choose"), (["--port", "numpy"], "choose"),
    (["--port", "torch", "--file", "none.py"], "choose"),
    (["--port", "torch", "--json", "no/such/folder/r.json"], "folder")])
def test_bad_words(words, said):
    done = run(*words)
    assert done.exit_code == 2 and done.stderr.startswith("parity: ")
    assert said in done.stderr and done.stderr.count("\n") == 1


def test_a_port_has_to_be_named():
    assert run().exit_code == 2


def test_mutants_are_listed():
    done = run("--port", "torch", "--file", "masks.py", "--list")
    assert done.exit_code == 0
    assert any(line.startswith("masks.py:") and "!= → ==" in line
               for line in done.output.splitlines())


def test_a_port_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(ports, "missing", lambda name: name)
    assert run("--port", "torch", "--file", "masks.py").exit_code == 3


@pytest.mark.long(24)
def test_mutants_of_a_file_are_killed(tmp_path):
    usable("torch")
    path = tmp_path / "r.json"
    done = run("--port", "torch", "--file", "masks.py", "--sample", 4,
               "--seed", "a", "--json", path)
    assert done.exit_code == 0, done.output
    rows = json.loads(path.read_text())["mutants"]
    assert {row["verdict"] for row in rows} <= {"killed", "equivalent"}
    assert len(rows) == 4 and rows[0]["verdict"] == "killed"
    assert "0 survived" in done.output
    again = run("--port", "torch", "--file", "masks.py", "--sample", 4,
                "--seed", "a", "--json", path)
    assert again.exit_code == 0 and f"{len(rows)} mutants" in again.output
