"""``python -m benchmarks``: a tiny run of it, and what it refuses."""

import io
import json
import os
import re
from types import SimpleNamespace

import pytest
from rich.console import Console
from typer.testing import CliRunner

from transformer_contract.shipped import ROOT
from parity import ports
from parity_tests.support.engines import usable
from parity_tests.support.processes import printed

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").is_dir(), reason="not in a checkout")


def invoke(*words):
    """What ``python -m benchmarks WORDS`` prints and answers."""
    from benchmarks.__main__ import app
    return CliRunner().invoke(app, words)


FIELDS = {"work", "implementation", "form", "peer", "time", "ratio", "limit",
          "memory", "memory_ratio", "error"}


@pytest.mark.long
@pytest.mark.skipif(bool(ports.absent("torch")), reason="not checked: torch")
def test_a_quick_run_has_a_row_for_each(tmp_path):
    """In a process of its own, which it may pin and tell to be quick."""
    file = tmp_path / "bench.json"
    said = printed("-m", "benchmarks", "--quick", "--threads", 1, "--port",
                   "torch", "--json", file)
    report = json.loads(file.read_text())
    rows = report["rows"]
    assert {row["work"] for row in rows} == {"forward", "training"}
    for row in rows:
        assert row.keys() == FIELDS
        assert row["time"] > 0 and row["error"] < 1e-5
        assert row["peer"] == "torch.nn.Transformer"
    assert {row["form"] for row in rows} == {"", "readable", "fast"}
    assert sum(line.startswith("The limit of") for line in report["notes"]) == 2
    assert "PyTorch port, fast form" in said


@pytest.mark.parametrize("words, turns", [
    ((), 5), (("--quick",), 1), (("--quick", "--rounds", "2"), 2)])
def test_turns_that_are_asked_for_are_taken(monkeypatch, words, turns):
    """Five without --rounds, and with --quick one."""
    from benchmarks import __main__, command
    seen = []
    monkeypatch.setenv(__main__.QUICK, "")  # which --quick sets
    monkeypatch.setattr(command, "run", lambda *given: seen.append(given[4]))
    assert invoke(*words).exit_code == 0 and seen == [turns]


def test_tables_fit_80_columns_and_have_every_title():
    from benchmarks import command, growth
    from benchmarks.passes import PASSES
    row = {"time": 0.2412, "ratio": 10.23, "limit": 0.05, "memory": 1572e6,
           "memory_ratio": 10.23, "error": 2e-7, "peer": "theirs",
           "grows": "length", "sizes": [128, 512, 2048], "exponent": 1.25,
           "times": [0.0241, 0.241, 24.1]}
    titles = [one.title for work in PASSES.values()
              for one in work.implementations.values()]
    rows = [row | {"work": "forward", "implementation": title, "form": "fast"}
            for title in titles]
    for module in command, growth:
        console = Console(width=80, file=io.StringIO())
        console.print(module.table_of(rows))
        told = console.file.getvalue()
        assert "…" not in told and told.count("forward") == 1
        for title in titles:
            assert all(word in told for word in title.split())
        assert re.search(rf"{re.escape(titles[0])} .* 10.23 ", told)
        assert max(map(len, told.splitlines())) <= 80
    parts = [{"work": "forward", "implementation": "ours", "part": "a product",
              "time": 0.1, "share": 0.5, "calls": 7}]
    console = Console(width=80, file=io.StringIO())
    console.print(command.table_of_parts(parts))
    assert "forward: ours" in console.file.getvalue()


def test_it_is_told_how_long_is_left(monkeypatch):
    from benchmarks import harness
    now, said = [100.0], []
    monkeypatch.setattr(harness.time, "monotonic", lambda: now[0])
    for _ in harness.told(3, said.append):
        now[0] += 10
    assert said == ["round 1 of 3, about 20 s left",
                    "round 2 of 3, about 10 s left", "round 3 of 3"]


def test_times_are_a_page(tmp_path):
    """Which stands alone; also where no row has a peer."""
    from benchmarks import command
    row = dict.fromkeys(FIELDS) | {
        "work": "forward", "implementation": "ours <b>", "form": "fast",
        "peer": "theirs", "ratio": 0.5, "time": 0.25}
    parts = [{"work": "forward", "implementation": "ours", "part": "product",
              "time": None, "share": None, "calls": None}]
    path = tmp_path / "times.html"
    command.write_page(path, [
        row, row | {"work": "training", "ratio": None, "peer": None},
        row | {"ratio": 99.0}], ["A note."], parts)
    html = path.read_text("utf-8")
    assert "ours &lt;b&gt;" in html and "0.50" in html and "A note." in html
    assert html.count('class="bar"') == 2 and "H120" in html
    assert "<script" not in html and "src=" not in html
    command.write_page(path, [], [], [])
    assert "<h1>Times</h1>" in path.read_text("utf-8")


def test_where_time_goes_is_told():
    from benchmarks import profiles

    def work():
        return sorted(range(10**5), key=lambda x: -x)

    rows = profiles.profiled(work, ("numpy",))
    assert any("sorted" in name for name, _, _ in rows)
    assert any("lambda" in name and calls == 10**5
               for name, _, calls in rows)
    many = profiles.rows_of([(str(i), 1.0, 1) for i in range(99)] * 2)
    assert len(many) == 1 + profiles.MOST
    assert sum(seconds for _, seconds, _ in many) == 2 * 99
    assert "told nothing" in str(profiles.rows_of([]))


def test_what_a_library_keeps_is_asked_of_itself(monkeypatch):
    """Pages that it keeps for the next run are no memory that a run takes."""
    from benchmarks import worker
    from benchmarks.products import Ready
    asked = iter([(40, 900), (70, 100)])
    held = {"VmRSS": 1000, "VmHWM": 1005}
    monkeypatch.setattr(worker, "memory", held.get)
    far = worker.Far.__new__(worker.Far)
    far.ready = Ready(lambda: None, None, None, {}, pool=lambda: next(asked))
    assert far.held() == 5 + 100 - 40
    far.ready = Ready(lambda: None, None, None, {})
    assert far.held() == 5


@pytest.mark.skipif(bool(ports.absent("keras")), reason="not checked: Keras")
@pytest.mark.skipif(not os.path.exists("/proc/self/status"),
                    reason="the system does not say what a process holds")
@pytest.mark.long
@pytest.mark.parametrize("onednn", ["0", "1"])
def test_the_memory_of_tensorflow_is_known(onednn):
    """With oneDNN it keeps what is freed, without it does not."""
    code = """
import tensorflow as tf
from benchmarks import worker
from benchmarks.products import Ready, tensorflow_pool
far = worker.Far.__new__(worker.Far)
x = tf.ones((1024, 4096))
far.ready = Ready(lambda: x + 1.0, None, None, {}, pool=tensorflow_pool)
print(*(far.held() for _ in range(3)))
"""
    answer = printed("-c", code, TF_ENABLE_ONEDNN_OPTS=onednn)
    for held in map(int, answer.split()):
        assert held == pytest.approx(2**24, rel=0.1)


def test_operations_of_a_trace():
    """Those that XLA runs in Python's own thread, and nothing around them."""
    from benchmarks import profiles

    def line(name, *events):
        return SimpleNamespace(name=name, events=[SimpleNamespace(
            name=event, start_ns=start, duration_ns=length)
            for event, start, length in events])

    events = (("call", 0, 9), ("ThunkExecutor::Execute", 2, 4),
              ("dot.2", 3, 1), ("end: dot.2", 4, 0), ("array", 8, 1))
    for name, expected in (("python", ["dot.2"]),
                           ("pool", ["dot.2", "array"])):
        assert [event.name for event in profiles.operations(
            line(name, *events))] == expected
    assert [profiles.NUMBERED.sub("", name) for name in (
        "dot.12", "MatMul_1.58", "net_1/layer_2_1/MatMul:BatchMatMulV2",
        "while/body/_1/while/query_3/MatMul:MatMul")] == [
            "dot", "MatMul", "net/layer/MatMul:BatchMatMulV2",
            "query/MatMul:MatMul"]
    loop = ("while", 0, 9), ("while/body/_1/while/add:AddV2", 1, 1)
    assert len(profiles.operations(line("pool", *loop))) == 1


def test_what_is_off_leaves_the_other_works(monkeypatch, tmp_path):
    """One that computes something else is told, and the status is 1."""
    from benchmarks import command

    def timed(options, notes):
        return [dict.fromkeys(FIELDS) | {
            "work": "loading", "implementation": "ours", "form": "fast"}
        ], ["A note."], []

    def off(options, notes):
        raise SystemExit("torch is off by 2e-03, over 1e-05")

    monkeypatch.setattr(command, "TIMED", {
        "attention": off, "loading": timed})
    path = tmp_path / "bench.json"
    told = invoke("attention", "loading", "--json", str(path))
    assert told.exit_code == 1
    assert "Not timed: attention; torch is off by 2e-03" in told.output
    report = json.loads(path.read_text("utf-8"))
    assert [row["work"] for row in report["rows"]] == ["loading"]
    assert report["notes"][0].startswith("Not timed: attention")


def test_a_table_of_markdown_is_replaced(monkeypatch, tmp_path):
    """Between two comments; without them nothing is timed."""
    from benchmarks import command

    def timed(options, notes):
        return [dict.fromkeys(FIELDS) | {
            "work": f"greedy, N = {length}", "implementation": "ours",
            "time": length / 1000, "ratio": 0.5, "limit": 0.25}
            for length in (32, 128)
        ], ["A note."], []

    monkeypatch.setattr(command, "TIMED", {"generation": timed})
    page = tmp_path / "page.md"
    words = "generation", "--threads", "2", "--markdown", str(page)
    page.write_text("above\n")
    told = invoke(*words)
    assert told.exit_code == 2
    assert "lacks the lines <!-- bench generation, 2 threads -->" in " ".join(
        told.output.split())
    comments = ("<!-- bench generation, 2 threads -->\n",
                "<!-- end bench generation, 2 threads -->\n")
    page.write_text("above\n" + "old\n".join(comments) + "below\n")
    assert invoke(*words).exit_code == 0
    assert page.read_text() == "above\n" + """\
| search | implementation | N = 32, ms | ratio | of limit | N = 128, ms \
| ratio | of limit |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |
| greedy | ours | 32 | 0.50 | 25% | 128 | 0.50 | 25% |

A note.
""".join(comments) + "below\n"


@pytest.mark.long(3)
@pytest.mark.skipif(bool(ports.absent("torch")), reason="not checked: torch")
def test_how_times_grow(tmp_path):
    """In a process of its own, for it pins itself and takes a small model."""
    file, page = tmp_path / "grow.json", tmp_path / "page.md"
    page.write_text("<!-- bench growth, 1 thread -->\n"
                    "<!-- end bench growth, 1 thread -->\n")
    printed("-m", "benchmarks", "--grow", "--quick", "--threads", 1, "--port",
            "torch", "--json", file, "--markdown", page)
    rows = json.loads(file.read_text())["rows"]
    kinds = {(row["work"], row["grows"]) for row in rows}
    assert kinds == {(work, grows) for work in (
        "forward", "training", "generation", "attention")
        for grows in ("length", "batch")}
    from benchmarks import limits
    for row in rows:
        assert len(row["times"]) == 3 and min(row["times"]) > 0
        assert row["exponent"] == pytest.approx(
            limits.exponent(row["sizes"], row["times"]))
        assert (row["limit"] == 1) == (row["implementation"] == "the limit")
    assert "PyTorch port, fast form" in page.read_text()


def test_an_exponent_is_a_slope():
    from benchmarks import limits
    assert limits.exponent((1, 10, 100), (3, 300, 30_000)) == pytest.approx(2)
    assert limits.exponent((1, 2), (1, 2)) is None


@pytest.mark.parametrize("words, told", [
    (("bakcward",), "work 'bakcward' is unknown"),
    (("loading", "--grow"), "work of --grow 'loading' is unknown"),
    (("--grow", "--against", "numpy"), "leave the other options out"),
    (("forward", "--port", "tf"), "port 'tf' is unknown"),
    (("forward", "--against", "peers"), "did you mean peer"),
    (("forward", "loading", "--against", "torch"), "'torch' is unknown"),
    (("forward", "--threads", "100000"), "1024"),
    (("attention", "--against", "jnp"), "'jnp' is unknown"),
    (("forward", "--port", "mlx"), "port 'mlx' is unknown"),
    (("generation", "--search", "greedy"), "choose one of greedy-1, greedy-8"),
    (("forward", "--search", "greedy-1"), "--search is of generation"),
    (("forward", "--longest", "64"), "--longest is of generation"),
])
def test_what_it_does_not_know_is_refused(words, told):
    found = invoke(*words)
    assert found.exit_code == 2
    assert told in found.output


@pytest.mark.long(10)
@pytest.mark.parametrize("port, beside", [
    ("torch", ["marian", "torch_peer"]), ("jax", ["jax_peer"]), ("keras", [])])
def test_what_an_accelerator_is_asked(tmp_path, port, beside):
    """In a small way, on the processor, with the peers beside."""
    usable(port)
    file = tmp_path / "accelerator.json"
    printed("-m", "benchmarks.accelerator", "--device", "cpu", "--quick",
            "--port", port, "--json", file)
    report = json.loads(file.read_text())
    assert [(row["port"], row["form"], row["status"])
            for row in report["checks"]] == [
        (port, "readable", 0), (port, "fast", 0)]
    assert all(row["shares"]["float64"] < 1 for row in report["checks"])
    rows = {(row["name"], row["work"], row["preset"], row["precision"]): row
            for row in report["rows"]}
    for precision in ("float32", "tf32", "bfloat16"):
        for name in (port, *beside):
            for work in ("training", "decoding"):
                if work == "decoding" and name.endswith("_peer"):
                    continue  # its decoder keeps no keys and values
                row = rows[name, work, "vaswani2017_base", precision]
                assert row["seconds"] > 0, row
                # torch measures what the processor can at most.
                assert ("share" in row) == (port == "torch"), row
                assert 0 < row.get("share", 0.5) < 1, row
    assert not any("not reached" in line for line in report["notes"])


def test_how_long_a_command_is_waited_for():
    from benchmarks import waits
    row = waits.row_of("help", 1)
    assert len(row["seconds"]) == 1 and row["cpu"] > 0
    with pytest.raises(SystemExit, match="ended with 2"):
        waits.waited(["nothing"], 0)
