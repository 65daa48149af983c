"""What docs/agents.md and docs/SKILL.md say is so: their commands are run."""

import json
import re
import runpy
import shlex
import sys

import pytest
from typer.main import get_command

from parity.cli import app
from parity_tests.support.commands import invoke
from parity_tests.support.engines import usable
from parity_tests.support.places import ROOT

yaml = pytest.importorskip(
    "yaml", reason="not checked: pyyaml, of the extra test, is not installed")

PAGE, SKILL = (ROOT / "docs" / name for name in ("agents.md", "SKILL.md"))


def blocks(path, kind):
    """The blocks of code of a kind in a page."""
    return re.findall(rf"^ *```{kind}\n(.*?)^ *```", path.read_text("utf-8"),
                      flags=re.M | re.S)


def files():
    """{name: text} of the page's files."""
    return dict(re.match(r"# file: (\S+)\n(.*)", block, re.S).groups()
                for block in blocks(PAGE, "python"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    usable("torch")
    monkeypatch.chdir(tmp_path)
    for name, text in files().items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("page", [PAGE, SKILL])
def test_the_commands_end_as_is_said(folder, page):
    lines = [line for block in blocks(page, "sh")
             for line in block.splitlines()]
    assert lines
    for line in lines:
        command, _, status = line.partition("# exit ")
        words = shlex.split(command)
        done = invoke(*words[1:])
        assert words[0] == "parity"
        assert done.exit_code == int(status), (line, done.output)


def test_the_fields_are_there(folder):
    done = invoke(
        "compare", "port.py:original", "port.py:ours", "--evidence", "e")
    assert done.exit_code == 1, done.output
    data = json.loads((folder / "e" / "evidence.json").read_text())
    table = PAGE.read_text("utf-8").partition("| field |")[2].partition(
        "\n\n")[0]
    named = re.findall("`([a-z_]+)`", table)
    card = data["card"]
    rows = {**data, **data["first"], **data["explanations"][0], **card,
            **card["causes"][0]}
    assert len(named) > 15 and set(named) <= rows.keys()
    page = (folder / "e" / "evidence.md").read_text()
    assert page.startswith("# Parity: divergence\n") and "epsilon" in page
    assert "parity compare port.py:original port.py:ours" in page
    assert data["sides"]["a"]["numbers"] == 99
    assert data["sides"]["b"]["parameters"]["1.weight"] == {
        "dtype": "float64", "shape": [8]}
    assert all(row["times"] >= 1 for row in data["headroom"])


def test_the_recipe_for_pytest_fails_with_the_cause(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    recipe = runpy.run_path(str(folder / "test_port.py"))
    monkeypatch.delitem(sys.modules, "port")
    with pytest.raises(
            AssertionError,
            match=r"epsilon  module 1\n +A .+ \+ 1e-05 .+\n +B .+ \+ 0\.001 "):
        recipe["test_port"]()


def test_the_action_is_pinned():
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    steps = action["runs"]["steps"]
    assert action["runs"]["using"] == "composite"
    for step in steps:
        used = step.get("uses", f"x@{'0' * 40}")
        assert re.fullmatch(r".+@[0-9a-f]{40}", used)
        # What a user gives comes by the environment, never into a script.
        assert "${{" not in step.get("run", "")
    words = " ".join(step.get("run", "") for step in steps)
    command = get_command(app).commands["compare"]
    assert "--evidence" in words
    assert set(re.findall(r"(--[a-z-]+)", words)) <= {
        option for parameter in command.params for option in parameter.opts}
