"""Ports that fail: each is a divergence of its own, and stops no other.

A port is a folder of its own on the path, here one whose engine hands on what
a sound one has, but for what is wrong with it.
"""

import functools
import json
import sys

import pytest

from parity import ports
from parity.check import port_properties, workers
from parity.ports import NotChecked
from parity_tests.support.commands import invoke

SOUND = next((name for name in ports.known_ports()
              if not isinstance(ports.engine(name), NotChecked)), None)
pytestmark = pytest.mark.skipif(
    SOUND is None, reason="not checked: no framework is here")

#: The reference's engine, under a port's name.
HANDED_ON = """
from reference_numpy.engine import *
from reference_numpy import engine as sound
import numpy as np
NAME = "bad"
"""

#: What is wrong -> (the end of an engine's file, part of what is said of it).
WRONG = {
    "a syntax error": ("def f(:", "SyntaxError"),
    "a name of its own that is not there": (
        "from reference_numpy import no_such_name", "ImportError"),
    "a file of its own that is not there": (
        "import impl_bad.no_such_file", "ModuleNotFoundError"),
    "an end of Python": ("import sys; sys.exit(0)", "SystemExit"),
    "devices raises": ("def devices(): raise OSError('no bus')", "no bus"),
    "devices answers None": ("def devices(): return None", "devices returned"),
    "no cpu": ("def devices(): return ['cuda']", "devices returned"),
    "set_precision raises": (
        "def set_precision(): raise KeyError('tf32')", "tf32"),
    "set_precision answers a list": (
        "def set_precision(): return []", "set_precision returned"),
    "versions answers what is no JSON": (
        "def versions(): return {'numpy': object()}", "JSON"),
    "versions raises": ("def versions(): return 1 / 0", "ZeroDivisionError"),
    "no component": (
        "def build(component, *_):\n    import impl_bad.feed_forward",
        "No module named 'impl_bad.feed_forward'"),
    "a call that is not there": ("del call", "AttributeError"),
    "lists": ("def call(*a, **k):\n    y, s = sound.call(*a, **k)\n"
              "    return y, {n: v.tolist() for n, v in s.items()}",
              "list"),
    "a list of steps": (
        "def masks(*a): return list(sound.masks(*a).values())",
        "it returned list, not arrays by name"),
    "None": ("def masks(*a): return None", "it returned NoneType"),
    "text": ("def loss(*a): return 'small'", "str"),
    "a generator": ("def loss(*a): return (x for x in a)", "generator"),
    "an end of Python in a call": (
        "def loss(*a): import sys; sys.exit()", "SystemExit"),
    "another shape": ("def loss(*a): return sound.loss(*a)[None]", "shape"),
    "NaN": ("def loss(*a): return np.full_like(sound.loss(*a), np.nan)",
            "NaN or infinity"),
    "a product of lists": (
        "def matmul(a, b, device): return (a @ b).tolist()",
        "AttributeError"),
    "inputs written to": (
        "def call(m, *a, **k):\n    r = sound.call(m, *a, **k)\n"
        "    a[0][...] = 0\n    return r", "it wrote into its input 0"),
    "weights written to": (
        "def build(c, k, w, *a):\n    m = sound.build(c, k, {\n"
        "        n: v.copy() for n, v in w.items()}, *a)\n"
        "    for v in w.values(): v[...] = 1\n    return m",
        "it wrote into the weights"),
}


@pytest.fixture
def bad(tmp_path, monkeypatch):
    """A function that makes the port "bad" of the end of an engine's file."""
    def make(end):
        folder = tmp_path / "impl_bad"
        folder.mkdir()
        (folder / "__init__.py").touch()
        (folder / "parameters.py").write_text(
            "from reference_numpy.parameters import modules\n")
        (folder / "engine.py").write_text(HANDED_ON + end)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(ports, "known_ports", lambda: (SOUND, "bad"))
    ports.engine.cache_clear()
    yield make
    for name in [n for n in sys.modules if n.startswith("impl_bad")]:
        del sys.modules[name]
    ports.engine.cache_clear()


def test_a_file_with_the_name_of_a_framework(bad, tmp_path, monkeypatch):
    """It lies where Python looks first; the port is fine."""
    bad("from tokenizers import no_such_name")
    monkeypatch.setitem(ports.NEEDS, "bad", {"tokenizers": "0.1"})
    with pytest.raises(ImportError):
        ports.engine("bad")
    other = tmp_path / "tokenizers.py"
    other.touch()
    monkeypatch.delitem(sys.modules, "tokenizers", raising=False)
    found = ports.engine("bad")
    assert found.reason.startswith(f"{str(other)!r} stands in the way of")


#: A check that takes seconds.
LESSON = ("check", "--preset", "lesson", "--dtype", "float64",
          "--no-full-size")


def checked(tmp_path, *words):
    """The result of a check of the sound port and the bad one, and the JSON."""
    done = invoke(*LESSON, "--json", tmp_path / "r.json", *words)
    return done, json.loads((tmp_path / "r.json").read_text())


@pytest.mark.long(24)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_failure_is_a_divergence_of_its_port_alone(
        wrong, bad, tmp_path, monkeypatch):
    """Exit 1, a sentence, a traceback; the sound port matches beside it."""
    end, words = WRONG[wrong]
    bad(end)
    monkeypatch.setattr(workers, "open_ports", functools.partial(
        opened_here, workers.open_ports))
    done, found = checked(tmp_path, "--html", tmp_path / "r.html")
    assert done.exit_code == 1, done.output
    assert found["verdict"] == "divergence" and not found["not_checked"]
    reasons = [one["reason"] for one in found["comparisons"]
               if one["port"] == "bad" and one["verdict"] == "divergence"]
    reasons += [one["reason"] for one in found["failures"]]
    assert any(words in reason for reason in reasons), reasons[:3]
    assert words in done.output
    assert all(one["port"] == "bad" and "Traceback" in one["traceback"]
               for one in found["failures"])
    sound = [one for one in found["comparisons"] if one["port"] == SOUND]
    assert len(sound) > 300
    assert {one["verdict"] for one in sound} == {"match"}
    page = (tmp_path / "r.html").read_text()
    assert "Traceback" in page or not found["failures"]


def opened_here(open_ports, names, apart, on_work):
    """Ports in this process, where ones of their own would take seconds."""
    return open_ports(names, False, on_work)


def test_what_is_raised_in_a_thread_is_said(bad):
    bad("import threading\ndef predict(*a):\n"
        "    if threading.current_thread() is not threading.main_thread():\n"
        "        raise RuntimeError('one at a time')\n"
        "    return sound.predict(*a)")
    with pytest.raises(RuntimeError, match="one at a time"):
        list(port_properties.two_threads(ports.engine("bad")))


#: The same, of what only searches, training and gradients ask.
WRONG_LATER = {
    "generate returns lists": (
        "def generate(*a, **k):\n    return {n: v.tolist() for n, v in "
        "sound.generate(*a, **k).items()}"),
    "generate returns None": "def generate(*a, **k): return None",
    "generate writes into its sources": (
        "def generate(m, s, *a, **k):\n    r = sound.generate(m, s, *a, **k)\n"
        "    s[...] = 1\n    return r"),
    "train_step returns None": "def train_step(*a): return None",
    "moments returns a list": "def moments(t): return []",
    "export returns None": "def export(t): return None",
    "trainer raises": "def trainer(*a): raise ValueError('none')",
    "gradients returns None": "def gradients(*a): return None",
}


@pytest.mark.long
@pytest.mark.parametrize("wrong", WRONG_LATER)
def test_so_is_one_of_a_search_or_of_training(
        wrong, bad, tmp_path, monkeypatch):
    bad(WRONG_LATER[wrong])
    monkeypatch.setattr(workers, "open_ports", functools.partial(
        opened_here, workers.open_ports))
    done, found = checked(
        tmp_path, "--gradients", "--train", 1, "--generate")
    assert done.exit_code == 1, done.output
    assert {one["port"] for one in found["comparisons"]
            if one["verdict"] == "divergence"} == {"bad"}


@pytest.mark.long(24)
@pytest.mark.parametrize("end", [
    "raise ImportError('ours')", "import os; os._exit(0)",
    "def loss(*a): return (x for x in a)", "def loss(*a): import os; "
    "os.abort()"])
def test_in_a_process_of_its_own(bad, tmp_path, monkeypatch, end):
    bad(end)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    done, found = checked(tmp_path)
    assert done.exit_code == 1 and "failed: bad" in done.output
    assert {one["port"] for one in found["failures"]} == {"bad"}
    sound = [one for one in found["comparisons"] if one["port"] == SOUND]
    assert len(sound) > 300
    assert {one["verdict"] for one in sound} == {"match"}


def test_a_framework_too_old_is_a_failure_of_its_port_alone(
        bad, tmp_path, monkeypatch):
    """It is installed, so that nobody asked for it to be left out."""
    bad("")
    monkeypatch.setitem(ports.NEEDS, "bad", {"numpy": "99.1"})
    monkeypatch.setattr(workers, "open_ports", functools.partial(
        opened_here, workers.open_ports))
    words = ("is too old; install 99.1 or later")
    done, found = checked(tmp_path, "--html", tmp_path / "r.html")
    assert done.exit_code == 1 and words in done.output
    assert "has the traceback" not in done.output
    failure, = found["failures"]
    assert failure["port"] == "bad" and words in failure["reason"]
    assert not found["not_checked"]
    sound = [one for one in found["comparisons"] if one["port"] == SOUND]
    assert len(sound) > 300
    assert {one["verdict"] for one in sound} == {"match"}
    assert words in (tmp_path / "r.html").read_text()


def test_what_else_asks_for_a_framework_too_old(bad, monkeypatch):
    """One sentence, and exit 1 as well; 3 where another is not installed."""
    bad("")
    monkeypatch.setitem(ports.NEEDS, "bad", {"numpy": "99.1"})
    for words in (["check", "--seeds", 1, "--port", "bad"],
                  [*LESSON, "--port", "bad", "--require", "bad"],
                  ["check", "--port", SOUND, "--require", "bad"]):
        done = invoke(*words)
        assert done.exit_code == 1, (words, done.output)
        assert "is too old; install 99.1 or later" in done.output
    monkeypatch.setattr(ports, "missing", lambda name: (
        "torch is not installed" if name == SOUND else ""))
    ports.engine.cache_clear()
    assert invoke("check", "--seeds", 1, "--require",
                  f"bad,{SOUND}").exit_code == 3


def test_a_framework_that_cannot_be_imported_is_not_checked(
        bad, tmp_path, monkeypatch):
    """It is installed, and broken; the port's own files are not at fault."""
    (tmp_path / "broken_framework.py").write_text("raise OSError('no .so')")
    bad("import broken_framework")
    monkeypatch.setitem(ports.NEEDS, "bad", {"broken_framework": "0"})
    assert isinstance(ports.engine("bad"), NotChecked)
    assert "no .so" in ports.engine("bad").reason


def test_the_oldest_versions_are_those_that_are_declared():
    import tomllib
    from parity_tests.support.places import ROOT
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())[
        "project"]["optional-dependencies"]
    for name, needs in ports.NEEDS.items():
        for need, oldest in needs.items():
            assert any(one.startswith((f"{need}>={oldest}",
                                       f"{need}-cpu>={oldest}"))
                       for one in extras[name])


def test_what_a_dtype_does_not_have_is_said(tmp_path):
    done = invoke("check", "--preset", "lesson", "--dtype", "bfloat16",
                  "--port", SOUND, "--gradients", "--generate", "--train", 1,
                  "--no-full-size", "--json", tmp_path / "r.json")
    found = json.loads((tmp_path / "r.json").read_text())
    assert done.exit_code == 0
    for what in ("gradients", "searches", "training"):
        words = f"{what} in bfloat16; compared in "
        assert f"not done: {words}" in done.output
        assert any(one.startswith(words) for one in found["not_done"])
    assert not [one for one in found["comparisons"]
                if one["case"] == "gradients"]
