"""The command line: what it prints, and the JSON report."""

import contextlib
import json
import os
import pty
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from parity.cli import app

KEYS = {"preset", "case", "name", "port", "form", "dtype", "device", "shape",
        "error", "limit", "verdict"}


def check(port, *words, **environment):
    return CliRunner().invoke(app, [
        "check", "--port", port.NAME, "--preset", "lesson", "--dtype",
        "float64", "--no-full-size", *map(str, words)], env=environment)


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
    assert "compared" in done.output and "expected" in done.output


def test_plain_output_has_no_escapes():
    """Nothing moves and nothing is coloured where nobody watches."""
    done = subprocess.run(
        [sys.executable, "-m", "parity", "vectors", "parity_tests/data/vectors",
         "--port", "torch"], capture_output=True, text=True,
        env={**os.environ, "NO_COLOR": "1"})
    assert done.returncode in (0, 4)
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stderr == ""


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
            [sys.executable, "-m", "parity", "vectors",
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


@pytest.mark.parametrize("command", ["check", "vectors", "weights"])
def test_help(command):
    done = CliRunner().invoke(app, [command, "--help"])
    assert done.exit_code == 0 and "Usage" in done.output
