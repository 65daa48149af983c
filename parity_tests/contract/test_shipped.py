"""The files that come with the project: in a wheel, sound, and our own."""

import os
import shutil
import subprocess
import sys
import tomllib

import pytest

from contract import shipped, tokenizer
from contract.errors import InputError
from parity_tests.support.places import ROOT


def test_a_wheel_has_every_file_that_is_read():
    """Under the names that they have here, in shipped.INSTALLED."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))[
        "tool"]["hatch"]["build"]["targets"]["wheel"]
    inside = build["force-include"]
    folder = shipped.INSTALLED.relative_to(shipped.PACKAGES)
    assert inside == {name: str(folder / name) for name in inside}
    for path in (shipped.WEIGHTS, shipped.LESSONS, shipped.VECTORS,
                 shipped.LEDGER, shipped.ROOT / "RULINGS.md"):
        assert path.exists()
        assert any(path.is_relative_to(ROOT / name) for name in inside), path
    assert set(build["packages"]) == {path.parent.name for path in [
        *ROOT.glob("impl_*/__init__.py"), *ROOT.glob("*/engine.py"),
        ROOT / "contract" / "x", ROOT / "parity" / "x"]}


@pytest.mark.parametrize("folder", [shipped.WEIGHTS, shipped.DATA])
def test_every_file_is_listed_and_sound(folder):
    names = shipped.sums(folder)
    here = {str(path.relative_to(folder)) for path in folder.rglob("*")
            if path.is_file()}
    assert here - {shipped.SUMS, "README.md"} == set(names)
    for name in names:
        assert shipped.sound(name, folder) == folder / name


@pytest.mark.parametrize("name, read", [
    ("tokenizer.json", tokenizer.Tokenizer.load),
    ("sentences.tsv", tokenizer.read_pairs)])
def test_damaged_data_of_the_checks_is_refused(
        tmp_path, monkeypatch, name, read):
    shutil.copytree(shipped.DATA, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(tokenizer, "DATA", tmp_path)
    assert read()
    content = bytearray((tmp_path / name).read_bytes())
    content[-3] ^= 1
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        read()


@pytest.fixture(params=["contract.py", "contract/__init__.py"])
def another(tmp_path, request):
    """(run(words) in a folder with another's ``contract``, its path)."""
    path = tmp_path / request.param
    path.parent.mkdir(exist_ok=True)
    path.write_text("")

    def run(*words):
        return subprocess.run(
            [sys.executable, *words], capture_output=True, text=True,
            cwd=tmp_path, env={
                **os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"})
    return run, path


@pytest.mark.parametrize("line", [
    "from parity import compare", "import parity; parity.trace"])
def test_a_package_of_the_same_name_is_told(another, line):
    run, path = another
    found = run("-c", line)
    assert found.returncode == 1
    assert str(path) in found.stderr.splitlines()[-1]
    assert "needs its own package 'contract'" in found.stderr


def test_a_command_tells_of_it_in_a_sentence(another):
    run, path = another
    found = run("-m", "parity", "doctor")
    assert found.returncode == 2 and found.stdout == ""
    assert found.stderr.startswith("parity: parity needs its own package")
    assert str(path) in found.stderr and found.stderr.count("\n") == 1


def test_tests_of_another_contract_run_beside_the_plugin(another):
    """pytest loads the plugin for them too, and nothing of it is used."""
    run, path = another
    folder = path.parents[path.name == "__init__.py"]
    (folder / "test_own.py").write_text(
        "import contract\n\n\ndef test_own():\n    assert contract\n")
    found = run("-m", "pytest", "-q", "-p", "parity.pytest_plugin",
                "-p", "no:cacheprovider")
    assert found.returncode == 0, found.stdout + found.stderr
