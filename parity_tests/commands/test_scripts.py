"""What scripts of users do to the command that runs them."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import pytest

from parity_io.errors import InputError
from parity.commands import scripts
from parity_tests.support import disks

SCRIPT = """
import os, torch

class Odd(BaseException):
    pass

class Model(torch.nn.Linear):
    def forward(self, x):
        if self.how == "ends":
            os._exit(0)
        if self.how == "odd":
            raise Odd("tea")
        return super().forward(x)

def make(how=""):
    model = Model(3, 3)
    model.how = how
    return model, torch.ones(2, 3)

def ends():
    return make("ends")

def odd():
    return make("odd")

def at_once():
    os._exit(0)
"""

WORDS = {"ends": "calls os._exit(0)", "odd": "(Odd: tea)",
         "at_once": "calls os._exit(0)"}


def parity(*words, python=()):
    return subprocess.run(
        [sys.executable, *python, "-m", "parity", *map(str, words)],
        capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": os.getcwd()}, check=False)


@pytest.mark.parametrize("function", WORDS)
def test_a_script_that_ends_is_no_verdict(tmp_path, function):
    """However user code ends, the status is that of a mistake of theirs."""
    pytest.importorskip("torch", reason="the script's model is of torch")
    (tmp_path / "model.py").write_text(SCRIPT)
    done = parity("dump", f"{tmp_path}/model.py:{function}",
                  "--out", tmp_path / "dump")
    assert done.returncode == 2 and WORDS[function] in done.stderr
    assert not (tmp_path / "dump").exists()


def test_without_docstrings():
    done = parity("check", python=["-OO"])
    assert done.returncode == 2 and "use -O" in done.stderr


def test_a_loop_of_links(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    done = parity("compare", loop, tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr


@pytest.mark.parametrize("target, words", [
    ("model.py", "model.py:make (it has make, ends, odd, at_once)"),
    ("none.py", "none.py:make (it has none that takes no arguments)"),
    ("lost.py", "there is no script 'lost.py'")])
def test_a_script_without_a_function(tmp_path, monkeypatch, target, words):
    """Those that it has are named."""
    monkeypatch.chdir(tmp_path)
    pathlib.Path("model.py").write_text(SCRIPT)
    pathlib.Path("none.py").write_text("x = 3\n")
    with pytest.raises(InputError, match=re.escape(words)):
        scripts.script_result(target)


def test_a_script_without_room_for_temporary_files(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", None)  # so that one is looked for
    script = tmp_path / "model.py"
    script.write_text("def make():\n    return 3\n")
    with disks.full(0):
        assert scripts.script_result(f"{script}:make") == 3


def test_a_function_that_a_script_has_not(tmp_path):
    script = tmp_path / "model.py"
    script.write_text("def make():\n    pass\n")
    with pytest.raises(InputError, match=r"'mkae'.*\(it has make\)"):
        scripts.script_result(f"{script}:mkae")
