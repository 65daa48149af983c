"""Implementations in processes of their own, validated and timed in turn."""

import contextlib
import dataclasses
import importlib.util
import os
import pathlib
import platform
import statistics
import tempfile
import time
import typing
from typing import Annotated, Optional

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks import workload
from benchmarks.worker import Worker
from contract import weights
from contract.errors import amount
from contract.files import write_json

#: Seconds between turns, so that threads of the last one have gone to sleep,
#: and the longest wait for other programs to leave the processor idle.
PAUSE, PATIENCE = 0.1, 3.0

#: The share of the processor that other programs may have had in a turn.
QUIET = 0.05


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """What is timed and how it is told.

    Attributes:
        name: "forward" or "training", which stands in comments of the README
            and names the module of the implementations.
        implementations: name -> Timed.
        always: the names that take part in every run.
        truth: the name of the one whose float64 the others are held against.
        limit: the relative L2 distance from it that is too far.
        columns: of the table, the implementation's title first.
        rows: (results, clock) -> the table's rows as plain data.
        cells: a row -> its texts.
        workload: what is computed, as plain data, and in words.
    """

    name: str
    implementations: dict
    always: tuple
    truth: str
    limit: float
    columns: tuple
    rows: typing.Callable
    cells: typing.Callable
    workload: tuple


def cpu_model():
    """The processor's name."""
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def lacks(libraries):
    """The first library that is not installed; None if all are."""
    return next((library for library in libraries
                 if importlib.util.find_spec(library) is None), None)


def relative_l2(x, truth):
    """|x - truth| / |truth|, in float64."""
    x = x.astype(np.float64)
    return float(np.linalg.norm(x - truth) / np.linalg.norm(truth))


def busy_seconds():
    """CPU seconds that all programs have had; 0 where Linux does not say."""
    try:
        words = pathlib.Path("/proc/stat").read_text().split()
    except OSError:
        return 0.0
    user, nice, system, _idle, _wait, *interrupts = map(int, words[1:9])
    return sum((user, nice, system, *interrupts)) / os.sysconf("SC_CLK_TCK")


def await_quiet(clock):
    """Pause; where wall time counts, until the machine is nearly idle."""
    deadline = time.monotonic() + PATIENCE
    while True:
        before = busy_seconds()
        time.sleep(PAUSE)
        idle = busy_seconds() - before < QUIET * os.cpu_count() * PAUSE
        if idle or clock == "cpu" or time.monotonic() > deadline:
            return


def take_turn(worker, repeats, clock, **how):
    """The median time of a turn, and the share that other programs had."""
    await_quiet(clock)
    start, before = time.monotonic(), busy_seconds()
    times, own = worker.ask("turn", repeats=repeats, clock=clock, **how)
    others = busy_seconds() - before - own
    share = others / (os.cpu_count() * (time.monotonic() - start))
    return statistics.median(times), max(share, 0.0)


def quiet_turns(result, clock):
    """The turns that other programs left alone; all, if those are few."""
    kept = [seconds for seconds, others in result["turns"]
            if clock == "cpu" or others < QUIET]
    return kept if len(kept) >= 3 else [
        seconds for seconds, _ in result["turns"]]


def write_weights(folder):
    """The model's weights in float64 and float32; two paths."""
    arrays = weights.probe_weights(workload.config())
    paths = []
    for dtype in ("float64", "float32"):
        paths.append(folder / f"{dtype}.safetensors")
        weights.save(paths[-1], {name: array.astype(np.float32).astype(dtype)
                                 for name, array in arrays.items()})
    return paths


def output_of(worker, folder):
    """A worker's output, by way of a file."""
    path = folder / "output.npy"
    worker.ask("validate", path=str(path))
    output = np.load(path)
    path.unlink()
    return output


def truth_of(benchmark, path, threads, folder, loud):
    """The reference's output in float64."""
    worker = Worker(benchmark.name, benchmark.truth, path, threads, loud=loud)
    try:
        return output_of(worker, folder)
    finally:
        worker.close()


def measure(workers, truth, limit, folder, rounds, repeats, clock, progress):
    """Validate every worker, then time them in turn.

    Returns:
        name -> {"error", "turns", "rates", "peak", "versions", "blas"}; a
        turn is the median of its repeats, in seconds, and the share of the
        processor that other programs had meanwhile.
    """
    results = {}
    for worker in workers:
        error = relative_l2(output_of(worker, folder), truth)
        progress(f"{worker.name}: relative L2 {error:.1e}")
        if not error < limit:
            raise SystemExit(f"{worker.name} is off by {error:.1e}, over "
                             f"{limit:.0e}: it computes something else.")
        results[worker.name] = {
            "error": error, "turns": [], "rates": [],
            **worker.ask("describe")}
    for number in range(rounds):
        for worker in workers:
            result = results[worker.name]
            result["turns"].append(take_turn(worker, repeats, clock))
            if "peak" not in result:  # before the products take their part
                result["peak"] = worker.ask("peak")
            result["rates"].append(
                worker.ask("multiply", repeats=4, clock=clock))
            result["bandwidth"] = max(result.get("bandwidth", 0), worker.ask(
                "bandwidth", clock=clock))
        progress(f"round {number + 1} of {rounds}")
    return results


def timings(benchmark, results, flops, clock):
    """Yield (name, result, a row with what every table tells)."""
    rates = {name: max(map(max, result["rates"]))
             for name, result in results.items()}
    best = max(rates.values())
    for name, result in results.items():
        turns = quiet_turns(result, clock)
        median = statistics.median(turns)
        yield name, result, {
            "name": name,
            "title": benchmark.implementations[name][1],
            "median": median,
            "fastest": min(turns),
            "turns": len(turns),
            "rate": flops / median,
            "own": rates[name],
            "share_of_own": flops / median / rates[name],
            "share_of_best": flops / median / best,
            "error": result["error"],
        }


def peered(benchmark, results, flops, clock):
    """A row for each implementation, with its memory and its peer's ratios."""
    measured = {name: (row, result) for name, result, row in timings(
        benchmark, results, flops, clock)}
    for row, result in measured.values():
        row["peak"] = result["peak"] and result["peak"] - result["imported"]
    for name, (row, _) in measured.items():
        against, _ = measured.get(
            benchmark.implementations[name].peer, (None, None))
        yield row | {
            "ratio": against and row["median"] / against["median"],
            "memory": against and row["peak"] and (
                row["peak"] / against["peak"])}


def megabytes(size):
    """Bytes as text; empty where the system does not say."""
    return "" if size is None else f"{size / 1e6:.0f}"


def caption(report):
    """What was measured and on what, as lines."""
    yield report["words"]
    yield (f"{machine(report)}; {amount(report['rounds'], 'round')} of "
           f"{report['repeats']}.")
    yield from libraries(report)


def machine(report):
    """Threads, clock and processor in words."""
    cores = "1 thread on 1 core, CPU time" if report["threads"] == 1 else (
        f"{report['threads']} threads on {report['cores']} cores, wall time")
    return f"{cores}, {report['cpu']}"


def libraries(report):
    """What computed, as lines."""
    versions = {}
    for result in report["results"].values():
        versions |= result["versions"]
    yield ", ".join(f"{name} {version}" for name, version in versions.items())
    yield f"NumPy's BLAS: {', '.join(report['results']['numpy']['blas'])}."
    for name, result in report["results"].items():
        if result.get("note"):
            yield f"{name}: {result['note']}."


def markdown(report, benchmark):
    """The table in Markdown, its caption below it."""
    columns = benchmark.columns
    lines = ["| " + " | ".join(columns) + " |",
             "|---" + "|---:" * (len(columns) - 1) + "|"]
    lines += ["| " + " | ".join(benchmark.cells(row)) + " |"
              for row in report["rows"]]
    return "\n".join([*lines, "", *caption(report)])


def replace_between(path, mark, text):
    """Replace what stands between two comments of a Markdown file."""
    begin, end = f"<!-- {mark} -->", f"<!-- end {mark} -->"
    before, first, rest = path.read_text().partition(begin)
    _, last, after = rest.partition(end)
    if not (first and last):
        raise SystemExit(f"{path} lacks the comments {begin} and {end}.")
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def show(report, benchmark, console):
    """Print the table and its caption."""
    table = Table(*benchmark.columns)
    for i, column in enumerate(table.columns):
        column.no_wrap = True
        column.justify = "right" if i else "left"
    for row in report["rows"]:
        table.add_row(*benchmark.cells(row))
    console.print(table)
    for line in caption(report):
        console.print(line, highlight=False)


def settle(threads, core):
    """Pin this process and its workers, if they have one thread each.

    Returns:
        The threads of each library, the number of cores, and the clock.
    """
    cores = sorted(os.sched_getaffinity(0)) if hasattr(
        os, "sched_getaffinity") else list(range(os.cpu_count()))
    threads = threads or len(cores)
    if threads == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [cores[core]])  # the workers inherit it
    return threads, len(cores), "cpu" if threads == 1 else "wall"


def consoles():
    """Where tables are printed, and where notes are."""
    console, notes = Console(), Console(stderr=True)
    if not console.is_terminal:
        console.width = 140
    return console, notes


def installed(libraries, notes):
    """The names whose libraries are there; a note of each that is left out."""
    names = []
    for name, needed in libraries.items():
        if missing := lacks(needed):
            notes.print(f"{name} is left out: {missing} is not installed")
        else:
            names.append(name)
    return names


def measured(benchmark, names, settled, rounds, repeats, loud, notes,
             profile=False):
    """Validate and time implementations: the report, as plain data.

    Args:
        names: of those that take part; of these, whose libraries are there.
        settled: what ``settle`` returned.
        rounds, repeats: turns of each, and timed passes of a turn.
        loud: whether what libraries print is shown.
        notes: a Console for progress.
        profile: whether it is also told where the time goes.
    """
    threads, cores, clock = settled
    names = installed({name: benchmark.implementations[name].libraries
                       for name in names}, notes)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory()))
        exact, rounded = write_weights(folder)
        truth = truth_of(benchmark, exact, threads, folder, loud)
        workers = []
        for name in names:
            workers.append(Worker(
                benchmark.name, name, rounded, threads, loud=loud))
            stack.callback(workers[-1].close)
        results = measure(workers, truth, benchmark.limit, folder, rounds,
                          repeats, clock, notes.print)
        for worker in workers if profile else ():
            results[worker.name]["profile"] = worker.ask("profile")
    data, words = benchmark.workload
    return {
        "workload": data, "words": words,
        "threads": threads, "cores": cores, "cpu": cpu_model(),
        "clock": clock,
        "platform": platform.platform(), "rounds": rounds,
        "repeats": repeats, "results": results,
        "rows": list(benchmark.rows(results, clock)),
    }


def command(benchmark):
    """The command line of a benchmark: a function for typer."""

    def main(
        json_file: Annotated[Optional[pathlib.Path], typer.Option(
            "--json", metavar="FILE", help="Write everything as JSON.")] = None,
        markdown_file: Annotated[Optional[pathlib.Path], typer.Option(
            "--markdown", metavar="FILE", help="Put the table into FILE, "
            f"between the comments '{benchmark.name} threads N' and "
            f"'end {benchmark.name} threads N'.")] = None,
        threads: Annotated[Optional[int], typer.Option(
            min=1, help="Threads of each library; 1 also pins all to one "
            "core.  [default: one a core]", show_default=False)] = None,
        core: Annotated[int, typer.Option(
            help="Which core that is, counted from 0; -1 is the last.")] = -1,
        rounds: Annotated[int, typer.Option(
            min=1, help="Turns of each implementation.")] = 15,
        repeats: Annotated[int, typer.Option(
            min=1, help="Timed passes in a turn.")] = 3,
        loud: Annotated[bool, typer.Option(
            "--loud", help="Show what the libraries print.")] = False,
        quick: Annotated[bool, typer.Option(
            "--quick", help="3 rounds of 1, for a first look.")] = False,
        only: Annotated[Optional[list[str]], typer.Option(
            metavar="NAME", help=f"Of {', '.join(benchmark.implementations)}; "
            f"{' and '.join(benchmark.always)} always take part.")] = None,
    ):
        if quick:
            rounds, repeats = 3, 1
        known = benchmark.implementations
        if unknown := set(only or ()) - set(known):
            raise typer.BadParameter(
                f"no implementation is named {min(unknown)}.")
        threads, cores, clock = settle(threads, core)
        console, notes = consoles()
        names = [name for name in known
                 if not only or name in (*only, *benchmark.always)]
        report = measured(benchmark, names, (threads, cores, clock), rounds,
                          repeats, loud, notes)
        show(report, benchmark, console)
        if json_file:
            write_json(json_file, report)
        if markdown_file:
            replace_between(markdown_file, f"{benchmark.name} threads "
                            f"{threads}", markdown(report, benchmark))

    return main
