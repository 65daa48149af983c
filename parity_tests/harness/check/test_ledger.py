"""The ledger: an error that grows fails, and no entry is raised unseen."""

import dataclasses
import math

import pytest

from transformer_contract.config import PRESETS
from parity_io.errors import InputError
from parity import ports
from parity.check import ledger, run
from parity.check.ledger import Key
from parity.check.run import Report, Row
from parity.numerics import dtypes, tolerances
from parity.numerics.comparator import DIVERGENCE, MATCH, Difference
from parity_tests.support.commands import invoke

EPS = dtypes.EPS["float64"]
PORT = next((name for name in ports.known_ports()
             if not ports.missing(name)), None)
KEY = Key("lesson", "transformer", "scores", "torch", "float64", "cpu")


def row(error, name="encoder.layers.0.self_attention.scores", **changes):
    """A step of a model in one port, as the check has it."""
    verdict = MATCH if error <= 1e-12 else DIVERGENCE
    one = Difference(error, 1e-12, verdict)
    return dataclasses.replace(
        Row("lesson", "transformer", name, "float64", "cpu", (3, 4), 1e-12,
            {"torch": one}), **changes)


def command(*words):
    return invoke("check", "ledger", *map(str, words))


@pytest.fixture
def checked(monkeypatch):
    """Let the check find these Rows: checked([...])."""
    def let(rows):
        class Job:
            def __init__(self, *arguments, **keywords):
                assert keywords["full_size"] is False
                self.report = Report(engines={"torch": None})

            def groups(self):
                self.report.rows += rows
                yield rows

        monkeypatch.setattr(run, "Check", Job)
    return let


# What was committed

def test_the_committed_ledger_is_whole():
    recorded = ledger.read()
    assert {key.preset for key in recorded} == set(PRESETS)
    assert {key.port for key in recorded} == set(ports.known_ports())
    assert {key.dtype for key in recorded} == set(ledger.DTYPES)
    assert {key.device for key in recorded} == {"cpu"}
    for key, error in recorded.items():
        if key.dtype == "float64":
            assert error < tolerances.FLOAT64_LIMIT / 10, key


def test_the_committed_ledger_is_short_and_sorted():
    lines = ledger.PATH.read_text(encoding="utf-8").splitlines()
    assert 1000 < len(lines) < 3000
    assert lines[1:] == ["\t".join((*key, ledger.written(error)))
                         for key, error in sorted(ledger.read().items())]


@pytest.mark.skipif(PORT is None, reason="not checked: no framework is here")
def test_one_port_is_as_good_as_recorded():
    done = command("--check", "--preset", "lesson", "--port", PORT)
    assert done.exit_code == 0, done.output
    assert "no problems" in done.output


# What is recorded

def test_steps_of_one_kind_share_an_entry():
    found = ledger.achieved([
        row(1e-16), row(3e-16, "decoder.layers.2.cross_attention.scores"),
        row(2e-16, "memory"),
        row(9e-16, "normalized", case="norm"),
        row(4e-16, "output", case="norm"),
        row(0.0, "source_mask", case="masks", limit=0.0),
        row(1e-7, "product", case="precision canary")])
    assert found == {
        KEY: ledger.Achieved(3e-16, "decoder.layers.2.cross_attention.scores"),
        KEY._replace(kind="memory"): ledger.Achieved(2e-16, "memory"),
        KEY._replace(case="norm", kind="worst step"):
            ledger.Achieved(9e-16, "normalized")}


def test_bounds():
    assert ledger.bound(KEY, 100 * EPS) == 400 * EPS
    assert ledger.bound(KEY, 0.0) == 8 * EPS
    short = KEY._replace(dtype="float32")
    assert ledger.bound(short, 0.0) == 8 * dtypes.EPS["float32"]
    for case, times in (("norm, mean 100 deviations", 10),
                        ("self_attention, logits times 1000", 1000**0.5),
                        ("positional_encoding, 5000 positions", 1),
                        ("loss, label smoothing 0.1, kl", 1)):
        assert ledger.floor(KEY._replace(case=case)) == 2 * times * EPS


# What fails

def test_more_than_four_times_the_recorded_error_fails():
    recorded = {KEY: 10 * EPS}
    assert not list(ledger.problems([row(40 * EPS)], recorded))
    text, = ledger.problems([row(41 * EPS)], recorded)
    assert text.startswith(
        "lesson, transformer, scores (torch, float64, cpu): error 9.1e-15 at "
        "encoder.layers.0.self_attention.scores, more than 4 ×")


def test_zeros_are_not_brittle():
    assert not list(ledger.problems([row(8 * EPS)], {KEY: 0.0}))
    assert list(ledger.problems([row(9 * EPS)], {KEY: 0.0}))


def test_a_row_that_either_side_lacks_is_told():
    other = KEY._replace(kind="weights")
    text, = ledger.problems([row(0.0)], {KEY: 0.0, other: 0.0})
    assert text == f"{other}: in the ledger, and no longer compared"
    text, = ledger.problems([row(0.0)], {})
    assert text.startswith(f"{KEY}: not in the ledger")
    for change in ({"port": "jax"}, {"preset": "notebook"},
                   {"dtype": "float32"}, {"device": "cuda"}):
        apart = {KEY: 0.0, other._replace(**change): 0.0}
        assert not list(ledger.problems([row(0.0)], apart))


def test_a_divergence_fails():
    text, = ledger.problems([row(1e-9)], {KEY: 1e-9})
    assert text.endswith("scores diverges")
    with pytest.raises(InputError, match="not recorded"):
        ledger.propose(ledger.achieved([row(1e-9)]), {}, True)


@pytest.mark.skipif(PORT is None, reason="not checked: no framework is here")
def test_a_fabricated_regression_is_caught(monkeypatch):
    """A twentieth of the limit, and far more than rounding."""
    engine = ports.engine(PORT)
    build = engine.build

    def worse(component, config, weights, *rest):
        weights = {name: array * (1 + 5e-14) if name.endswith("query.kernel")
                   else array for name, array in weights.items()}
        return build(component, config, weights, *rest)

    job = run.Check(["lesson"], [PORT], ["float64"], full_size=False)
    monkeypatch.setattr(engine, "build", worse)
    for _ in job.groups():
        pass
    assert job.report.verdict == MATCH
    found = list(ledger.problems(job.report.rows))
    assert any(f"lesson, transformer, query ({PORT}" in text
               for text in found)
    assert not any("in the ledger" in text for text in found)
    assert not any("token_embedding" in text for text in found)


# Proposals

def proposed(error, old, allow_raise=False):
    made, changes = ledger.propose(
        ledger.achieved([row(error)]), {KEY: old}, allow_raise)
    return made[KEY], [change.kind for change in changes]


def test_proposals():
    assert proposed(90 * EPS, 10 * EPS) == (10 * EPS, ["raised"])
    assert proposed(90 * EPS, 10 * EPS, True) == (2.0e-14, ["raised"])
    assert proposed(3 * EPS, 10 * EPS) == (6.7e-16, ["lowered"])
    for steady in (6, 19):
        assert proposed(steady * EPS, 10 * EPS) == (10 * EPS, [])
    assert proposed(3 * EPS, 0.0) == (0.0, [])  # below twice the floor
    assert proposed(0.0, 2 * EPS) == (2 * EPS, [])


def test_proposals_leave_alone_what_was_not_run():
    other = KEY._replace(port="jax")
    gone = KEY._replace(kind="weights")
    made, changes = ledger.propose(
        ledger.achieved([row(EPS)]), {other: 1e-15, gone: 1e-15})
    assert made == {KEY: 2.2e-16, other: 1e-15}
    assert [(c.kind, c.key) for c in changes] == [("new", KEY), ("gone", gone)]


def test_the_file_is_read_as_written(tmp_path):
    book = {KEY: 2.2e-16, KEY._replace(port="jax"): 0.0}
    ledger.write(book, tmp_path / "l.tsv")
    assert ledger.read(tmp_path / "l.tsv") == book
    assert [path.name for path in tmp_path.iterdir()] == ["l.tsv"]
    assert (tmp_path / "l.tsv").read_text() == (
        "preset\tcase\tkind\tport\tdtype\tdevice\terror\n"
        "lesson\ttransformer\tscores\tjax\tfloat64\tcpu\t0\n"
        "lesson\ttransformer\tscores\ttorch\tfloat64\tcpu\t2.2e-16\n")


@pytest.mark.parametrize("text, words", [
    (None, "cannot be read"),
    ("", "is no ledger"),
    ("a\tb\n", "is no ledger"),
    (f"{ledger.HEADER}\nlesson\t1e-16\n", "line 2 .* is no row"),
    (ledger.HEADER + "\na\tb\tc\td\tfloat64\tf\t-1\n", "line 2"),
    (ledger.HEADER + "\na\tb\tc\td\tfloat64\tf\tinf\n", "line 2"),
    (ledger.HEADER + "\na\tb\tc\td\tfloat63\tf\t0\n", "line 2"),
    (ledger.HEADER + "\na\tb\tc\td\tfloat64\tf\t0" * 2, "3 .* repeats"),
])
def test_a_bad_file_is_told(text, words, tmp_path):
    path = tmp_path / "l.tsv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=words):
        ledger.read(path)


# The command

def test_check_and_propose(checked, tmp_path):
    """From nothing to a ledger, a regression, and a raise that is allowed."""
    path = tmp_path / "l.tsv"
    some = "--port", "torch", "--preset", "lesson", "--file", path
    assert command("--check", *some).exit_code == 2
    checked([row(10 * EPS)])
    done = command("--propose", *some)
    assert done.exit_code == 0 and "1 entry: 1 new" in done.output
    assert command("--check", *some).exit_code == 0
    before = path.read_text()

    checked([row(50 * EPS)])
    done = command("--check", *some)
    assert done.exit_code == 1
    assert "more than 4 × the recorded 2.2e-15" in done.output
    assert "1 problem\n" in done.output
    done = command("--propose", *some)
    assert done.exit_code == 1 and path.read_text() == before
    assert "raised  2.2e-15 → 1.1e-14  × 5  lesson, transf" in done.output
    assert "1 would be raised and stay as they were" in done.output
    done = command("--propose", "--allow-raise", *some)
    assert done.exit_code == 0 and "1 raised" in done.output
    assert ledger.read(path) == {KEY: 1.1e-14}

    checked([row(1e-9)])
    assert command("--check", *some).exit_code == 1
    done = command("--propose", "--allow-raise", *some)
    assert done.exit_code == 2 and ledger.read(path) == {KEY: 1.1e-14}


def test_a_raise_within_the_bound_is_kept_and_no_failure(checked, tmp_path):
    path = tmp_path / "l.tsv"
    ledger.write({KEY: 10 * EPS}, path)
    checked([row(30 * EPS)])
    done = command("--propose", "--port", "torch", "--file", path)
    assert done.exit_code == 0 and "stay as they were" in done.output
    assert math.isclose(ledger.read(path)[KEY], 10 * EPS, rel_tol=0.05)


def test_nothing_compared(monkeypatch):
    there = ports.engine
    monkeypatch.setattr(ports, "engine", lambda name: (
        there(name) if name == "numpy" else
        ports.NotChecked(name, f"{name} is not installed")))
    done = command("--check", "--port", "jax", "--preset", "lesson")
    assert done.exit_code == 4
    assert "not checked: jax, jax is not installed" in done.output


@pytest.mark.parametrize("words, told", [
    ((), "say either --check or --propose"),
    (("--check", "--propose"), "say either"),
    (("--check", "--allow-raise"), "needs --propose"),
    (("--check", "--dtype", "bfloat16"), "dtype 'bfloat16' is unknown"),
    (("--propose", "--file", "/nowhere/at/all.tsv"), "cannot be written"),
])
def test_usage(words, told):
    done = command(*words)
    assert done.exit_code == 2 and told in done.output
