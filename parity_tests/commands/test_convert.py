"""``parity convert``: a mapping, there and back, and what is refused."""

import re
import textwrap

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from parity_io.checkpoints import safetensors_file
from parity.commands import convert as commands

pytest.importorskip("torch")

APP = typer.Typer()
APP.command()(commands.convert)

SCRIPT = """
import torch
from torch import nn

X = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(2, 6)


class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = nn.Parameter(torch.randn(6, 8))
        self.shift = nn.Parameter(torch.randn(8))
        self.last = nn.Linear(8, 3)
        self.double()

    def forward(self, x):
        return self.last(torch.tanh(x @ self.kernel + self.shift))


def a():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)
                         ).double(), X

def b():
    return Other(), X

def rough():
    class Rough(Other):
        def forward(self, x):
            return super().forward(x) * 1.001
    return Rough(), X

def by_name():
    return Other(), (), {"x": X}

def dictionary():
    class Dict(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Other()
        def forward(self, given):
            return {"y": self.inner(given["x"])}
    return Dict(), {"x": X}

def empty():
    class Empty(nn.Module):
        def forward(self):
            return None
    return Empty(), ()

def fails():
    return Other(), X[:, :3]

def more():
    made, x = a()
    return nn.Sequential(*made, nn.Linear(3, 3).double()), x
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command in a folder with the script; its words."""
    (tmp_path / "m.py").write_text(textwrap.dedent(SCRIPT))
    monkeypatch.chdir(tmp_path)

    def run(line, status):
        result = CliRunner().invoke(APP, line.split())
        assert result.exit_code == status, result.output
        return result.output
    return run


def test_there_and_back(run, tmp_path):
    assert "4 of B's 4 parameters" in run(
        "m.py:a m.py:b --out m.toml", 0)
    said = run("--apply m.toml m.py:a m.py:b --out b.safetensors", 0)
    assert "to the bit" in said and "outputs differ by" in said
    run("--apply m.toml --reverse b.safetensors --out a.npz", 0)
    run("--apply m.toml a.npz --out again.safetensors", 0)
    one, two = (safetensors_file.read(tmp_path / f"{name}.safetensors")[0]
                for name in ("b", "again"))
    assert all(np.array_equal(one[name], two[name]) for name in one)


def test_outputs_that_differ_are_told_in_words(run):
    for line in ("m.py:a m.py:rough --out m.toml",
                 "--apply m.toml m.py:a m.py:rough --out b.npz"):
        said = run(line, 1)
        assert "differ by 1.0e-03" in said
        assert "The first divergence is the output of (model)" in said
        assert "<" not in said


@pytest.mark.parametrize("other", ["by_name", "dictionary"])
def test_inputs_of_every_sort(run, other):
    run(f"m.py:a m.py:{other} --out m.toml", 0)


def test_what_is_left_over(run, tmp_path):
    said = run("m.py:more m.py:b --out m.toml", 1)
    assert "'3.weight' of A" in said and "no mapping found" in said
    assert "draft m.toml" in said and said.count("\n") == 1
    assert (tmp_path / "m.toml").read_text().startswith("# THIS IS A DRAFT")
    assert "does not use" in run(
        "--apply m.toml m.py:more m.py:b", 2)


@pytest.mark.parametrize("line, words", [
    ("m.py:a m.py:b", "name it with --out"),
    ("m.py:a --out m.toml", "give A and B"),
    ("m.py:a folder --out m.toml", "is no SCRIPT.py:FUNCTION"),
    ("m.py:a m.py:empty --out m.toml", "nothing to convert|failed"),
    ("m.py:a m.py:fails --out m.toml", "failed"),
    ("m.py:a m.py:b --reverse --out m.toml", "give it with --apply"),
    ("m.py:a m.py:b --out m.toml --leave-out no", "neither model has"),
    ("--apply none.toml m.py:a m.py:b", "check the path|cannot be read"),
    ("--apply m.py m.py:a m.py:b", "is no TOML"),
    ("--apply . m.py:a m.py:b", "^parity: '.' cannot be read"),
    ("--apply none.toml m.py:a", "nothing would come of it"),
])
def test_a_sentence_each(run, tmp_path, line, words):
    before = sorted(tmp_path.iterdir())
    said = run(line, 2)
    assert re.search(words, said), said
    assert "Traceback" not in said
    assert [path for path in sorted(tmp_path.iterdir())
            if path.name != "__pycache__"] == before


@pytest.mark.parametrize("out", ["b.pt", "b", "b.weights.h5", "no/b.npz"])
def test_files_that_cannot_be_written(run, out):
    run("m.py:a m.py:b --out m.toml", 0)
    run(f"--apply m.toml m.py:a m.py:b --out {out}", 2)


def test_other_weights(run, tmp_path):
    run("m.py:a m.py:b --out m.toml", 0)
    assert "does not know" in run("--apply m.toml m.py:more m.py:b", 2)
    np.savez(tmp_path / "a.npz", **{"0.weight": np.zeros((8, 6))})
    assert "there is no '0.bias'" in run(
        "--apply m.toml a.npz --out b.npz", 2)
    assert not (tmp_path / "b.npz").exists()
