"""The pytest plugin, in runs of pytest inside these."""

import tomllib

import pytest

# Runs inside may not be first to import this.
import parity.assertions.assert_parity  # noqa: F401
from parity import ports, pytest_plugin
from parity_tests.support.places import ROOT

pytest_plugins = ["pytester"]

PROJECT = tomllib.loads(
    (ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

#: Where an installation finds the plugin.
DECLARED = PROJECT["entry-points"]["pytest11"]["parity"]

#: Loaded by name, with or without an entry point in the installation.
LOAD = "-p", pytest_plugin.__name__


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Other plugins that are installed here are left out: it is quicker."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


TWO = """
import numpy as np

def test_good(assert_parity):
    x = np.arange(1.0, 7.0).reshape(2, 3)
    assert_parity(x * (1 + 2e-13), x, name="close")
    assert_parity({"a": x, "b": x * (1 + 1e-15)}, {"a": x, "b": x})

def test_bad(assert_parity):
    x = np.arange(1.0, 7.0).reshape(2, 3)
    assert_parity(x * 2, x, name="logits")
"""


@pytest.fixture
def run(pytester):
    """Run pytest on a file: run(text, *options)."""
    def ran(text, *options):
        pytester.makepyfile(text)
        return pytester.runpytest_inprocess(*LOAD, *options)
    return ran


def test_summary(run):
    done = run(TWO)
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines([
        "*AssertionError: logits: 1.0e+00 > 1.0e-12, 2 times expected*",
        "*1 of 1 comparison diverges:",
        "*name * shape * error * limit * worst at * actual * expected",
        "*logits * 2×3 * 1.0e+00 * 1.0e-12 *",
        "*a constant factor: actual is 2 times expected*",
        "*= parity =*",
        "4 comparisons in 2 tests on cpu, 1 diverged",
        "closest to their limits:",
        " * 20.0% of 1.0e-12: error 2.0e-13, close, *::test_good",
        " * of 1.0e-12: error *, b, *::test_good",
        "numpy *",
        "not checked: torch, *",
        "not checked: jax, *",
        "FAILED *::test_bad - AssertionError: logits: 1.0e+00 > *"])
    text = done.stdout.str()
    assert "asserting.py" not in text and "def fail_on" not in text


def test_what_is_closest_is_what_is_closest_of_all(run):
    done = run("""
import numpy as np, pytest

@pytest.mark.parametrize("i", range(1, 9))
def test_one(assert_parity, i):
    for k in range(9):
        assert_parity(np.array([1 + (10 * i + k) * 1e-14]), np.ones(1))
""")
    lines = [line.split()[0] for line in done.stdout.lines
             if " of 1.0e-12: error" in line]
    assert len(lines) == pytest_plugin.CLOSEST
    assert [round(float(line.rstrip("%"))) for line in lines] == [
        88, 87, 86, 85, 84]
    done.stdout.fnmatch_lines(["72 comparisons in 8 tests on cpu"])


def test_nothing_compared_fails(run):
    done = run("""
import numpy as np, pytest

def test_forgot(assert_parity):
    assert np.allclose(1, 1)

def test_raises_first(assert_parity):
    raise KeyError("mine")

def test_skips(assert_parity):
    pytest.skip("no data")

def test_expects_a_divergence(assert_parity):
    with pytest.raises(AssertionError):
        assert_parity(np.ones(2), np.zeros(2))

@pytest.mark.xfail(reason="known", strict=True)
def test_known(assert_parity):
    assert_parity(np.ones(2), 2 * np.ones(2))

def test_without():
    pass
""")
    done.assert_outcomes(passed=2, failed=2, skipped=1, xfailed=1)
    done.stdout.fnmatch_lines(["*nothing was compared: the test takes*"])
    done.stdout.fnmatch_lines(["*KeyError: 'mine'"])


def test_quiet_where_it_is_not_used(run):
    done = run("def test_one(): pass")
    done.assert_outcomes(passed=1)
    assert "comparisons" not in done.stdout.str()


def test_device(run):
    text = "def test_it(parity_device): assert parity_device == 'cuda'"
    run(text, "--parity-device", "cuda").assert_outcomes(passed=1)
    run(text).assert_outcomes(failed=1)
    done = run(text, "--parity-device", "gpu0")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["ERROR: --parity-device 'gpu0' is unknown; *"])


def test_required_and_absent(run, monkeypatch):
    monkeypatch.setattr(ports, "engine", lambda name: ports.NotChecked(
        name, f"{name} is not installed"))
    done = run("raise SystemExit('collected')",
               "--parity-require", "torch,keras")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([
        "ERROR: --parity-require: torch cannot be checked, because torch is "
        "not installed; *"])
    assert "collected" not in done.stdout.str()


def test_required_and_unknown(run):
    done = run("", "--parity-require", "mxnet")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["ERROR: --parity-require: port 'mxnet' is *"])


def test_required_without_the_device(run, monkeypatch):
    class Engine:
        @staticmethod
        def devices():
            return ["cpu"]

    monkeypatch.setattr(ports, "engine", lambda name: Engine)
    text = "def test_one(): pass"
    run(text, "--parity-require", "jax").assert_outcomes(passed=1)
    done = run(text, "--parity-require=jax", "--parity-device=tpu")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["ERROR: *: jax has no device tpu here; *"])


@pytest.mark.parametrize("name", ["terminal", "junitxml", "parity-summary"])
def test_it_needs_no_other_plugin(run, name):
    assert run(TWO, "-p", f"no:{name}").ret == pytest.ExitCode.TESTS_FAILED


def test_found_by_itself_and_left_out(pytester, monkeypatch):
    """By an entry point as pyproject.toml declares it, and -p no:parity."""
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    info = pytester.mkdir("declares_it-1.0.dist-info")
    (info / "METADATA").write_text("Name: declares-it\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[pytest11]\nparity = {DECLARED}\n")
    pytester.syspathinsert()
    pytester.makepyfile(TWO)
    done = pytester.runpytest_inprocess()
    done.assert_outcomes(passed=1, failed=1)
    done = pytester.runpytest_inprocess("-p", "no:parity")
    done.assert_outcomes(errors=2)


def test_a_report_in_xml(run, pytester):
    run(TWO, "--junit-xml", "report.xml")
    assert "parity" not in (pytester.path / "report.xml").read_text().replace(
        "assert_parity", "").replace("parity.", "")


def test_workers(run):
    pytest.importorskip("xdist")
    done = run(TWO, "-p", "xdist", "-n", "1")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines([
        "4 comparisons in 2 tests on cpu, 1 diverged",
        " * 20.0% of 1.0e-12: error 2.0e-13, close, *::test_good"])


def test_it_imports_no_framework(pytester):
    pytester.makepyfile("""
import sys

def test_none(request):
    assert request.config.pluginmanager.has_plugin("parity-summary")
    assert not {"torch", "tensorflow", "keras", "jax", "numpy",
                "parity.ports"} & sys.modules.keys()
""")
    done = pytester.runpytest_subprocess(*LOAD)
    done.assert_outcomes(passed=1)
    assert "\nparity: device" not in done.stdout.str()


def test_header_and_frameworks(pytester):
    """In a process of its own, for torch is imported there."""
    pytest.importorskip("torch")
    pytester.makepyfile("""
import numpy as np, torch

def test_one(assert_parity):
    x = np.arange(1.0, 5.0)
    assert_parity(torch.tensor(x), x)
""")
    done = pytester.runpytest_subprocess(*LOAD, "--parity-require", "torch")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines([
        "parity: device cpu",
        "  torch *; float32_matmul_precision=*, cuda.matmul.allow_tf32=*",
        "1 comparison in 1 test on cpu",
        "torch *; float32_matmul_precision=*",
        "not checked: keras, *"])
    assert "not checked: torch" not in done.stdout.str()
