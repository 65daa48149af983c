"""Time generation, token by token, as a search writes it."""

import contextlib
import pathlib
import platform
import statistics
import tempfile

import numpy as np

from benchmarks import harness, workload
from benchmarks.generation_implementations import (
    EVERY, IMPLEMENTATIONS, LENGTHS, SEARCHES, settings, weights)
from benchmarks.limits import exponent
from benchmarks.worker import Worker
from parity_io.errors import plural

#: Targets of this length or more are written once only, but where the exponent
#: of time is judged.
LONG, JUDGED = 512, ("greedy, B = 1", "beam of 4, B = 1")

WORDS = (
    f"{workload.PRESET}, vocabulary {workload.VOCAB}, tied, halves, sources "
    f"of {workload.LENGTH} tokens, targets of a forced length N, float32.")


def write_weights(folder):
    """The model's weights in float64 and float32; two paths."""
    return harness.write_both(folder, weights())


def written(worker, search, folder):
    """A worker's shortest targets of a search: [B N]."""
    worker.ask("choose", search=search, length=LENGTHS[0])
    return harness.output_of(worker, folder)[0]


def truth_of(path, searches, threads, folder, loud):
    """The reference's in float64, by search."""
    worker = Worker("generation", "numpy", path, threads, loud=loud)
    try:
        return {search: written(worker, search, folder)
                for search in searches}
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


def measure(workers, searches, lengths, rounds, clock, progress):
    """Time every case of every worker, in turn.

    Returns:
        (name, search, length) -> turns, as harness.quiet_turns takes them.
    """
    turns = {}
    for number in harness.told(rounds, progress):
        for search in searches:
            for length in lengths:
                if number and length >= LONG and search not in JUDGED:
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
    return turns


def needs(search, length):
    """What writing targets needs: (operations of products, bytes read)."""
    method, rows, _ = EVERY[search]
    return workload.needs_of_search(
        workload.config(), rows, workload.LENGTH, length,
        settings(search, length).beam if method == "beam" else 1)


def rows(turns, clock):
    """{search: {name: {length: seconds}}}, each the median of its turns."""
    tables = {}
    for (name, search, length), kept in turns.items():
        seconds = tables.setdefault(search, {}).setdefault(name, {})
        seconds[length] = statistics.median(
            harness.quiet_turns({"turns": kept}, clock))
    return tables


def caption(report):
    """What was measured and on what, as lines."""
    for search, table in report["rows"].items():
        slopes = [f"{IMPLEMENTATIONS[name].title} "
                  f"{exponent([*seconds], [*seconds.values()]):.2f}"
                  for name, seconds in table.items() if len(seconds) > 2]
        if slopes:
            yield (f"Time grows with the length of the target to the power, "
                   f"{search}: {', '.join(slopes)}.")
    yield WORDS
    long = report["lengths"][-1] >= LONG
    yield f"{harness.machine(report)}; {plural(report['rounds'], 'turn')}" + (
        f"; of targets of {LONG} tokens and more one turn, but of "
        f"{' and '.join(JUDGED)}." if long else ".")
    shares = [others for *_, kept in report["turns"] for _, others in kept]
    yield ("Other programs had "
           f"{statistics.median(shares):.0%} of the processor meanwhile.")
    yield from harness.libraries(report)


def measured(names, settled, rounds, longest, loud, notes, profile=False,
             searches=tuple(SEARCHES)):
    """Validate and time searches: the report, as plain data.

    Args:
        names: of those that take part; of these, whose libraries are there.
        settled: what ``harness.settle`` returned.
        rounds: turns of each case.
        longest: the longest targets that are written.
        loud: whether what libraries print is shown.
        notes: a Console for progress.
        profile: whether it is also told where the time goes, in the first
            search.
        searches: of SEARCHES.
    """
    threads, cores, clock = settled
    names = harness.installed(
        {name: IMPLEMENTATIONS[name].libraries for name in names}, notes)
    lengths = [length for length in LENGTHS if length <= longest]
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory()))
        exact, rounded = write_weights(folder)
        truth = truth_of(exact, searches, threads, folder, loud)
        workers = []
        for name in names:
            workers.append(Worker(
                "generation", name, rounded, threads, loud=loud))
            stack.callback(workers[-1].close)
        validate(workers, truth, folder, notes.print)
        turns = measure(
            workers, searches, lengths, rounds, clock, notes.print)
        results = {worker.name: {
            **worker.ask("describe"), **harness.rates(worker, clock)}
            for worker in workers}
        for worker in workers if profile else ():
            if not IMPLEMENTATIONS[worker.name].has(searches[0], LENGTHS[0]):
                continue
            worker.ask("choose", search=searches[0], length=LENGTHS[0])
            results[worker.name]["profile"] = worker.ask("profile")
    return {
        "words": WORDS, "threads": threads, "cores": cores,
        "cpu": harness.cpu_model(), "clock": clock,
        "platform": platform.platform(), "rounds": rounds,
        "lengths": lengths, "results": results,
        "rows": rows(turns, clock),
        "turns": [[*case, kept] for case, kept in turns.items()],
    }
