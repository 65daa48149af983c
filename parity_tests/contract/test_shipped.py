"""The files that come with the project: in a wheel, sound, and our own."""

import shutil
import tomllib

import pytest

from transformer_contract import shipped, tokenizer
from parity_io.errors import InputError
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
        *(ROOT / name / "x" for name in (
            "parity_io", "transformer_contract", "parity"))]}


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
