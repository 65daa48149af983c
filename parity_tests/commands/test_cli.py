"""The command line: what it prints, and the JSON report."""

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from transformer_contract.config import TransformerConfig
from transformer_contract.training import TrainingConfig
from parity import ports
from parity.check.report import Report, Row
from parity.cli import app, entries
from parity.commands import doctor
from parity.commands.shell import OLD_NAMES, OLD_OPTIONS
from parity.numerics.comparator import MATCH, Difference
from parity.render.terminal import counted
from parity_tests.support.places import ROOT
from parity_tests.support.processes import python

KEYS = {"preset", "case", "name", "port", "form", "mode", "dtype", "device",
        "mesh", "backend", "shape", "error", "limit", "verdict"}


def check(port, *words, **environment):
    return CliRunner().invoke(app, [
        "check", "--port", port.NAME, "--preset", "lesson", "--dtype",
        "float64", "--no-full-size", *map(str, words)], env=environment)


@pytest.mark.long(12)
def test_json_report(port, tmp_path):
    done = check(port, "--json", tmp_path / "r.json")
    assert done.exit_code == 0
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["schema"] == 1 and found["verdict"] == "match"
    assert found["compared"] == found["expected"] == len(found["comparisons"])
    assert found["not_checked"] == [] and found["seconds"] > 0
    for comparison in found["comparisons"]:
        assert KEYS <= comparison.keys()
        assert comparison["verdict"] == "match"
        assert comparison["port"] == port.NAME
        assert comparison["error"] <= comparison["limit"]
    named = {c["name"] for c in found["comparisons"]
             if c["case"] == "transformer"}
    assert "decoder.layers.2.cross_attention.weights" in named
    environment = found["environment"]["ports"][port.NAME]
    assert environment["versions"] and "cpu" in environment["devices"]
    assert environment["canary_eps"]["cpu"] < 30
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.long(12)
def test_a_screen_or_two(port):
    """A line a model, a line a component; each with the port's errors."""
    done = check(port)
    assert done.exit_code == 0
    lines = [line.split() for line in done.output.splitlines()]
    assert len(lines) < 60
    named = {line[0]: line for line in lines if line}
    for name in ("lesson", "norm", "cross_attention", "AdamW", "transformer"):
        _, steps, error, verdict = named[name]
        assert int(steps) > 0 and verdict == "match"
        assert error == "0" or float(error) < 1e-12
    assert not any("encoder.layers" in line[0] for line in lines if line)
    assert "Nearest to its limit: " + port.NAME in done.output
    assert "verdict: match" in done.output


@pytest.mark.long(12)
def test_a_row_a_step(port):
    """Name, shape, error, limit and verdict stand on one line."""
    done = check(port, "--steps")
    line = next(text for text in done.output.splitlines()
                if "encoder.layers.1.self_attention.weights" in text)
    words = line.split()
    assert words[1] == "5×6×11×11"
    assert float(words[2]) < 1e-13 and float(words[3]) == 1e-12
    assert words[4] == "match"
    assert "verdict: match" in done.output
    assert " compared, all match; " in done.output


@pytest.mark.long(8)
def test_plain_output_has_no_escapes():
    """Nothing moves and nothing is coloured where nobody watches."""
    done = python("-m", "parity", "check", "vectors",
                  "parity_tests/data/vectors", "--port", "torch", NO_COLOR="1")
    assert done.returncode in (0, 4)
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stderr == ""


@pytest.mark.long(8)
def test_no_color_is_obeyed_on_a_terminal():
    shown = {}
    for no_color in ("", "1"):
        environment = {**os.environ, "TERM": "xterm-256color",
                       "COLUMNS": "120"}
        environment.pop("NO_COLOR", None)
        if no_color:
            environment["NO_COLOR"] = no_color
        terminal, theirs = pty.openpty()
        done = subprocess.Popen(
            [sys.executable, "-m", "parity", "check", "vectors",
             "parity_tests/data/vectors/notebook_feed_forward.safetensors",
             "--port", "torch"],
            stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
        os.close(theirs)
        output = bytearray()
        with contextlib.suppress(OSError):  # how a terminal ends
            while data := os.read(terminal, 4096):
                output += data
        assert done.wait() in (0, 4)
        os.close(terminal)
        shown[no_color] = bytes(output).decode()
    assert "\x1b[32m" in shown[""]
    assert "\x1b[32m" not in shown["1"] and "match" in shown["1"]


@pytest.mark.parametrize("command", ["check", "check vectors", "train weights"])
def test_help(command):
    done = CliRunner().invoke(app, [*command.split(), "--help"])
    assert done.exit_code == 0 and f"Usage: root {command} " in done.output


@pytest.mark.parametrize("command", get_command(app).commands)
def test_help_names_what_is_given_as_the_pages_do(command):
    """A FILE, a NAME, an N: no type of Python, no brackets in brackets."""
    told = CliRunner().invoke(app, [command, "--help"]).output
    assert not re.findall(r"<\w+.*?>|\[\[|\{", told)


@pytest.mark.parametrize("command", ["check", "train"])
def test_help_of_many_options_fits_a_screen(command):
    """And has every one of them."""
    told = CliRunner().invoke(
        app, [command, "--help"], terminal_width=78).output
    assert told.count("\n") <= 40
    assert max(map(len, told.splitlines())) < 80
    for option in get_command(app).commands[command].params:
        assert any(re.search(rf"{name}\b", told)
                   for name in (*option.opts, *option.secondary_opts)
                   ) or option.metavar in told, option


def test_a_mistake_of_ours_is_70(monkeypatch):
    def fail(*args):
        raise ZeroDivisionError("ours")
    monkeypatch.setattr(ports, "split_words", fail)
    found = CliRunner().invoke(app, ["check"])
    assert found.exit_code == 70 and "ZeroDivisionError: ours" in found.stderr
    assert "please report it" in found.stderr


@pytest.mark.parametrize("error, words", [
    (MemoryError(), "not enough memory"),
    (OSError(28, "No space left on device"), "make room"),
    (OSError(36, "File name too long", "a" * 5000), "choose another path"),
    (OSError(5, "Input/output error"), "its disk fails"),
    (EOFError(), "standard input")])
def test_what_the_machine_lacks_is_2(monkeypatch, error, words):
    def fail(*args):
        raise error
    monkeypatch.setattr(ports, "split_words", fail)
    found = CliRunner().invoke(app, ["check"])
    assert found.exit_code == 2 and words in found.stderr
    assert found.stderr.count("\n") == 1 and len(found.stderr) < 2100


def parity_process(*words, **more):
    return subprocess.run(
        [sys.executable, "-m", "parity", *words], capture_output=False,
        stderr=subprocess.PIPE, timeout=120, **more)


def test_an_output_that_is_full_or_closed():
    with open("/dev/full", "wb") as full:
        found = parity_process("translate", "1 May 2026", stdout=full)
    assert found.returncode == 2 and b"No space left" in found.stderr
    assert found.stderr.count(b"\n") == 1
    out, into = os.pipe()
    os.close(out)
    found = parity_process("translate", "1 May 2026", stdout=into)
    os.close(into)
    assert found.returncode == 141 and not found.stderr


def test_what_cannot_be_said_is_no_divergence():
    """Where standard output and error are full, or closed from the start."""
    with open("/dev/full", "wb") as full:
        for words in ("--help", "nowhere"):
            assert subprocess.run(
                [sys.executable, "-m", "parity", words], stdout=full,
                stderr=full, timeout=120).returncode == 2
    closed = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", sys.executable]
    assert subprocess.run(
        [*closed, "-m", "parity", "--version"], timeout=120).returncode == 0


@pytest.mark.long(3)
def test_arguments_that_are_not_utf8():
    for words in (["translate", b"\xff"], ["check", "--port", b"\xff"],
                  ["compare", b"\xff", b"\xfe"], [b"\xff"],
                  ["check", "--json", b"/nowhere/\xff"]):
        found = parity_process(*words, stdout=subprocess.DEVNULL)
        assert found.returncode == 2, found
        assert b"Traceback" not in found.stderr


def test_a_folder_that_was_removed(tmp_path):
    (tmp_path / "gone").mkdir()
    gone = ["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", sys.executable]
    found = subprocess.run(
        [*gone, "-m", "parity", "doctor"], cwd=tmp_path / "gone",
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True)
    assert found.returncode == 2 and not found.stdout
    assert b"this folder was removed" in found.stderr
    assert found.stderr.count(b"\n") == 1


def test_the_command_alone_shows_what_to_try():
    found = CliRunner().invoke(app, [])
    assert found.exit_code == 0 and found.stdout.count("\n") < 12
    commands = {line.split()[1] for line in found.stdout.splitlines()
                if line.startswith("  parity")}
    assert commands - {"--help"} <= dict(entries()).keys()
    assert CliRunner().invoke(app, ["--version"]).stdout == (
        f"parity {doctor.version()}\n")


def test_an_old_option_says_the_new_one():
    for command, options in OLD_OPTIONS.items():
        has = {name for param in get_command(app).commands[command].params
               for name in param.opts}
        assert has and not has & options.keys()
        for old, new in options.items():
            for words in [old, "1"], [f"{old}=1"]:
                found = CliRunner().invoke(app, [command, "dates", *words])
                assert found.exit_code == 2
                assert f"{old} {new}." in found.stderr
    fields = {word.partition("=")[0] for new in OLD_OPTIONS["train"].values()
              for word in new.split() if "=" in word}
    assert fields <= {*TransformerConfig().as_dict(),
                      *TrainingConfig().as_dict()}


@pytest.mark.parametrize("old, new", OLD_NAMES.items())
def test_an_old_name_says_the_new_one(old, new):
    """Before any of its options is read."""
    found = CliRunner().invoke(app, [old, "--nothing"])
    assert found.exit_code == 2 and f"is now called {new};" in found.stderr
    first, *others = new.split()
    if first == "parity":
        named = get_command(app).commands
        assert " ".join(others[:2]) in named or others[0] in named


def test_quiet_leaves_the_exit_status():
    found = CliRunner().invoke(app, ["--quiet", "translate", "1 May 2026"])
    assert (found.exit_code, found.output) == (0, "")
    found = CliRunner().invoke(app, ["--quiet", "check", "--port", "x"])
    assert found.exit_code == 2 and found.stderr.count("\n") == 1


@pytest.mark.parametrize("given, meant", [
    ("--port pytorch", "torch"), ("--port Tensorflow", "keras"),
    ("--port jaxx", "jax"), ("--device gpu", "cuda"),
    ("--dtype fp32", "float32"), ("--preset leson", "lesson")])
def test_did_you_mean(given, meant):
    found = CliRunner().invoke(app, ["check", *given.split()])
    assert found.exit_code == 2
    assert f"(did you mean {meant}?)" in found.stderr


@pytest.mark.parametrize("words", [
    "check --port numpy", "check --require torch,numpy",
    "check faults --port np"])
def test_the_reference_is_no_port(words):
    found = CliRunner().invoke(app, words.split())
    assert found.exit_code == 2
    assert "is the reference, with which every port is" in found.stderr


def test_doctor(monkeypatch):
    found = CliRunner().invoke(app, ["doctor"])
    assert found.exit_code == 0, found.output
    for name in ("python", "numpy", "torch", "keras", "jax", "files"):
        assert f"\n{name}" in found.stdout
    monkeypatch.setitem(ports.NEEDS, "torch", {"torch": "99"})
    monkeypatch.setitem(ports.NEEDS, "jax", {"nowhere": "1"})
    ports.engine.cache_clear()
    found = CliRunner().invoke(app, ["doctor"])
    ports.engine.cache_clear()
    assert found.exit_code == 2 and "is too old" in found.stdout
    assert "nowhere is not installed; pip install" in found.stdout


def test_the_public_names_are_listed():
    import parity
    assert dir(parity) == sorted(parity.PUBLIC)


@pytest.mark.parametrize("compared, own, absent, diverging, words", [
    (12, 0, (), 0, "12 compared, all match; 0.0 seconds"),
    (1200, 8, (["keras"], ["jax"]), 0,
     "1,200 compared, all match; 2,400 not checked (keras and jax); "
     "0.0 seconds"),
    (1200, 0, (), 3, "1,200 compared, 3 diverge; 0.0 seconds"),
    (12, 0, (), 1, "12 compared, 1 diverges; 0.0 seconds"),
    (0, 0, (["torch"],), 0,
     "nothing was compared; 7 not checked (torch); 0.0 seconds"),
    (8, 8, (["torch", "cuda"],), 0,
     "nothing was compared; 7 not checked (torch on cuda); 0.0 seconds"),
])
def test_what_was_compared_in_words(
        compared, own, absent, diverging, words):
    missing = {0: 0, 2: 2400, 1: 7}[len(absent)]
    report = SimpleNamespace(
        compared=compared, own=own, expected=compared + missing,
        not_compared=missing,
        not_checked=[ports.NotChecked(port, "why", *device)
                     for port, *device in absent],
        divergences=lambda: [None] * diverging, seconds=0.0)
    assert counted(report) == words


def test_the_references_own_searches_are_no_ports():
    same = Difference(0.0, 0.0, MATCH)
    row = Row("dates", "greedy", "tokens", "float64", "cpu", (1,), 0.0,
              {"numpy": same})
    alone = Report(rows=[row], expected=8, not_compared=7, own=1)
    assert (alone.verdict, alone.status) == ("nothing compared", 4)
    row.differences["torch"] = same
    assert Report(rows=[row], expected=2, own=1).status == 0
