"""Time generation, token by token: ``python -m benchmarks.generation``."""

import contextlib
import pathlib
import platform
import statistics
import tempfile
from typing import Annotated, Optional

import numpy as np
import typer
from rich.table import Table

from benchmarks import harness, workload
from benchmarks.generation_implementations import (
    IMPLEMENTATIONS, LENGTHS, SEARCHES, weights)
from benchmarks.worker import Worker
from contract.files import write_json
from contract.weights import save

#: Against whom ratios stand, and how a column says it.
PEERS = {"ctranslate2": "CT2", "hugging_face": "HF"}

#: Targets of this length or more are written once only, but where the exponent
#: of time is judged.
LONG, JUDGED = 512, "greedy, B = 1"

#: Where the reorder's share is taken.
REORDERED = {"search": "beam of 4, B = 1", "length": 128}

WORDS = (
    f"{workload.PRESET}, vocabulary {workload.VOCAB}, tied, halves, sources "
    f"of {workload.LENGTH} tokens, targets of a forced length N, float32.")


def written(worker, search, folder):
    """A worker's shortest targets of a search: [B N]."""
    worker.ask("choose", search=search, length=LENGTHS[0])
    return harness.output_of(worker, folder)[0]


def truth_of(path, threads, folder, loud):
    """The reference's in float64, by search."""
    worker = Worker("generation", "numpy", path, threads, loud=loud)
    try:
        return {search: written(worker, search, folder)
                for search in SEARCHES}
    finally:
        worker.close()


def validate(workers, truth, folder, progress):
    """Stop unless every worker writes the reference's tokens."""
    for worker in workers:
        for search, tokens in truth.items():
            if not IMPLEMENTATIONS[worker.name].has(search, LENGTHS[0]):
                continue
            own = written(worker, search, folder)
            if not np.array_equal(own, tokens):
                raise SystemExit(
                    f"{worker.name} writes other tokens ({search}): it "
                    "computes something else.")
        progress(f"{worker.name}: the reference's tokens")


def measure(workers, lengths, rounds, clock, progress):
    """Time every case of every worker, in turn.

    Returns:
        (name, search, length) -> turns, as harness.quiet_turns takes them.
    """
    turns = {}
    for number in range(rounds):
        for search in SEARCHES:
            for length in lengths:
                if number and length >= LONG and search != JUDGED:
                    continue
                for worker in workers:
                    implementation = IMPLEMENTATIONS[worker.name]
                    if not implementation.has(search, length):
                        continue
                    worker.ask("choose", search=search, length=length)
                    turns.setdefault((worker.name, search, length), []).append(
                        harness.take_turn(
                            worker, 1, clock,
                            warm=not number and implementation.compiles))
        progress(f"round {number + 1} of {rounds}")
    return turns


def reorderings(workers, clock):
    """name -> the share of a run that the beam's reorder takes."""
    shares = {}
    for worker in workers:
        if IMPLEMENTATIONS[worker.name].reorders:
            worker.ask("choose", **REORDERED)
            shares[worker.name] = worker.ask("reordering", clock=clock)
    return shares


def slope(seconds):
    """The exponent of time by length, from {length: seconds}."""
    if len(seconds) < 3:
        return None
    lengths, times = np.log(list(seconds)), np.log(list(seconds.values()))
    return float(np.polyfit(lengths, times, 1)[0])


def rows(turns, clock):
    """The tables' rows as plain data, by search."""
    tables = {search: {} for search in SEARCHES}
    for (name, search, length), kept in turns.items():
        tables[search].setdefault(name, {})[length] = statistics.median(
            harness.quiet_turns({"turns": kept}, clock))
    return {search: [{
        "name": name, "title": IMPLEMENTATIONS[name].title,
        "seconds": seconds, "exponent": slope(seconds),
        "rates": {length: SEARCHES[search][1] * length / spent
                  for length, spent in seconds.items()},
        "ratios": {peer: {
            length: table[peer][length] / spent
            for length, spent in seconds.items()
            if length in table.get(peer, {})} for peer in PEERS}}
        for name, seconds in table.items()]
        for search, table in tables.items()}


def columns(lengths):
    """What a table's columns are called."""
    return ("implementation", *(f"N = {length}" for length in lengths),
            *(f"× {peer}, {length}" for peer in PEERS.values()
              for length in lengths), "exponent")


def cells(row, lengths):
    """A row of a table as text."""
    def texts(values, form):
        return (format(values[length], form) if length in values else ""
                for length in lengths)

    return (row["title"], *texts(row["rates"], ".1f"),
            *(text for peer in PEERS
              for text in texts(row["ratios"][peer], ".2f")),
            "" if row["exponent"] is None else f"{row['exponent']:.2f}")


def caption(report):
    """What was measured and on what, as lines."""
    if report["reorder"]:
        yield (f"Share of reorder ({REORDERED['search']}, N = "
               f"{REORDERED['length']}): " + ", ".join(
                   f"{name} {share:.1%}"
                   for name, share in report["reorder"].items()) + ".")
    yield WORDS
    yield (f"{harness.machine(report)}; rounds: {report['rounds']}, of "
           f"N = {LONG} one, but all of '{JUDGED}'.")
    shares = [others for *_, kept in report["turns"] for _, others in kept]
    yield ("Other programs had "
           f"{statistics.median(shares):.0%} of the processor meanwhile.")
    yield from harness.libraries(report)


def markdown(report):
    """The tables in Markdown, their caption below."""
    lengths, lines = report["lengths"], []
    names = columns(lengths)
    for search, table in report["rows"].items():
        lines += [f"{search[0].upper()}{search[1:]}, tokens per second:", "",
                  "| " + " | ".join(names) + " |",
                  "|---" + "|---:" * (len(names) - 1) + "|"]
        lines += ["| " + " | ".join(cells(row, lengths)) + " |"
                  for row in table]
        lines.append("")
    return "\n".join([*lines, *caption(report)])


def show(report, console):
    """Print the tables and their caption."""
    for search, rows in report["rows"].items():
        table = Table(*columns(report["lengths"]), title=search)
        for i, column in enumerate(table.columns):
            column.justify = "right" if i else "left"
        for row in rows:
            table.add_row(*cells(row, report["lengths"]))
        console.print(table)
    for line in caption(report):
        console.print(line, highlight=False)


def measured(names, settled, rounds, longest, reorder, loud, notes,
             profile=False):
    """Validate and time searches: the report, as plain data.

    Args:
        names: of those that take part; of these, whose libraries are there.
        settled: what ``harness.settle`` returned.
        rounds, longest, reorder, loud: see ``main``.
        notes: a Console for progress.
        profile: whether it is also told where the time goes.
    """
    threads, cores, clock = settled
    names = harness.installed(
        {name: IMPLEMENTATIONS[name].libraries for name in names}, notes)
    lengths = [length for length in LENGTHS if length <= longest]
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory()))
        rounded = weights()
        paths = {dtype: folder / dtype for dtype in ("float64", "float32")}
        for dtype, path in paths.items():
            save(path, {name: array.astype(dtype)
                        for name, array in rounded.items()})
        truth = truth_of(paths["float64"], threads, folder, loud)
        workers = []
        for name in names:
            workers.append(Worker("generation", name, paths["float32"],
                                  threads, loud=loud))
            stack.callback(workers[-1].close)
        validate(workers, truth, folder, notes.print)
        turns = measure(workers, lengths, rounds, clock, notes.print)
        shares = reorderings(workers, clock) if reorder else {}
        results = {worker.name: worker.ask("describe") for worker in workers}
        for worker in workers if profile else ():
            worker.ask("choose", search=JUDGED, length=LENGTHS[0])
            results[worker.name]["profile"] = worker.ask("profile")
    return {
        "words": WORDS, "threads": threads, "cores": cores,
        "cpu": harness.cpu_model(), "clock": clock,
        "platform": platform.platform(), "rounds": rounds,
        "lengths": lengths, "results": results, "reorder": shares,
        "rows": rows(turns, clock),
        "turns": [[*case, kept] for case, kept in turns.items()],
    }


def main(
    json_file: Annotated[Optional[pathlib.Path], typer.Option(
        "--json", metavar="FILE", help="Write everything as JSON.")] = None,
    markdown_file: Annotated[Optional[pathlib.Path], typer.Option(
        "--markdown", metavar="FILE", help="Put the tables into FILE, between "
        "the comments 'generation threads N' and 'end generation threads "
        "N'.")] = None,
    threads: Annotated[Optional[int], typer.Option(
        min=1, help="Threads of each library; 1 also pins all to one core.  "
        "[default: one a core]", show_default=False)] = None,
    core: Annotated[int, typer.Option(
        help="Which core that is, counted from 0; -1 is the last.")] = -1,
    rounds: Annotated[int, typer.Option(
        min=1, help="Turns of each case.")] = 3,
    longest: Annotated[int, typer.Option(
        help="The longest targets that are written.")] = LONG,
    reorder: Annotated[bool, typer.Option(
        help="Take the share of the beam's reorder.")] = True,
    loud: Annotated[bool, typer.Option(
        "--loud", help="Show what the libraries print.")] = False,
    only: Annotated[Optional[list[str]], typer.Option(
        metavar="NAME", help=f"Of {', '.join(IMPLEMENTATIONS)}; numpy always "
        "takes part.")] = None,
):
    """Time generation by every implementation, validated first."""
    if unknown := set(only or ()) - set(IMPLEMENTATIONS):
        raise typer.BadParameter(
            f"no implementation is named {min(unknown)}.")
    settled = threads, _, _ = harness.settle(threads, core)
    console, notes = harness.consoles()
    report = measured(
        [name for name in IMPLEMENTATIONS
         if not only or name in (*only, "numpy")],
        settled, rounds, longest, reorder, loud, notes)
    show(report, console)
    if json_file:
        write_json(json_file, report)
    if markdown_file:
        harness.replace_between(
            markdown_file, f"generation threads {threads}", markdown(report))


if __name__ == "__main__":
    typer.run(main)
