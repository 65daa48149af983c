"""How times grow with the length and with the batch: ``--grow``.

Each implementation stays in its process and is given one size after another,
of a small model, so that long batches are timed in seconds. An exponent is the
slope of log time by log size: 1 where twice as much takes twice as long.
"""

import contextlib
import math
import pathlib
import platform
import statistics
import tempfile
import typing

import numpy as np
import typer

from benchmarks import (
    attention, attention_implementations, generation, harness, workload)
from benchmarks.limits import exponent, roofline
from benchmarks.passes import PASSES
from benchmarks.texts import (
    TINY, between, milliseconds, number, of_works, replace_between)
from benchmarks.worker import Worker
from parity_io.errors import plural
from parity_io.files import write_json

#: The sizes that one row of the table has, by what grows; of one row each, or
#: of one length.
AXES = {"length": [(1, length) for length in workload.LENGTHS],
        "batch": [(rows, workload.SHORT) for rows in workload.BATCHES]}

#: Passes of a turn are repeated until this many seconds have gone by.
LEAST = 0.05

#: The fields of a row.
FIELDS = ("work", "implementation", "form", "peer", "grows", "sizes", "times",
          "exponent", "ratio", "limit")


class Grown(typing.NamedTuple):
    """A work of which it is measured how its times grow.

    Attributes:
        known: its implementations by name.
        case: (rows, length) -> what a worker's "choose" is given.
        needs: (rows, length) -> (operations of products, bytes read).
        error: (output, truth) -> the error; infinite for other tokens.
        limit: which error is too much.
        weights: folder -> the paths of the float64 and float32 weights.
        truth: (rows, length) -> the truth, or None where a worker in float64
            has to say it.
        about: what is computed, in words.
    """

    known: dict
    case: typing.Callable
    needs: typing.Callable
    error: typing.Callable
    limit: float
    weights: typing.Callable
    truth: typing.Callable | None
    about: str


def of_pass(name, times):
    """The Grown of a pass that takes so many times forward's products."""
    def needs(rows, length):
        config = workload.config()
        return times * workload.matmul_flops(
            config, rows, length, length), 4 * workload.parameters()

    return Grown(
        PASSES[name].implementations,
        lambda rows, length: {"rows": rows, "length": length}, needs,
        harness.relative_l2, harness.LIMIT, harness.write_weights, None,
        f"{name}: B rows of T + T tokens")


def of_generation():
    """The Grown of greedy targets of a forced length."""
    def search(rows):
        return f"greedy, B = {rows}"

    def error(tokens, truth):
        shared = min(tokens.shape[1], truth.shape[1], workload.LENGTHS[0])
        return 0.0 if np.array_equal(
            tokens[:, :shared], truth[:, :shared]) else math.inf

    return Grown(
        {name: one for name, one in generation.IMPLEMENTATIONS.items()
         if one.searches == tuple(generation.SEARCHES)},
        lambda rows, length: {"search": search(rows), "length": length},
        lambda rows, length: generation.needs(search(rows), length), error,
        0.5, generation.write_weights, None,
        f"generation: sources of {workload.LENGTH} tokens, T tokens written "
        f"greedily, of which the first {workload.LENGTHS[0]} are the "
        "reference's")


def of_attention():
    """The Grown of attention alone."""
    def case(rows, length):
        return {"case": attention_implementations.grown(rows, length)}

    return Grown(
        attention_implementations.IMPLEMENTATIONS, case,
        lambda rows, length: attention.needs(**case(rows, length)),
        harness.relative_l2, attention.LIMIT, lambda folder: (None, None),
        lambda rows, length: attention.truth_of(**case(rows, length)),
        f"attention: 8 heads of {attention_implementations.FEATURES} features")


WORKS = {"forward": lambda: of_pass("forward", 1),
         "training": lambda: of_pass("training", 3),
         "generation": of_generation, "attention": of_attention}


def chosen(known, ports):
    """The names of each port's fast form and of their peers."""
    fast = {}
    for name, one in known.items():
        if one.form == "fast" and one.port in ports:
            fast.setdefault(one.port, name)
    needed = {*fast.values(), *(known[name].peer for name in fast.values())}
    return [name for name, one in known.items()
            if name in needed or not one.port]


def measured(work, ports, settled, rounds, loud, notes):
    """Validate and time every size, in turn: the report, as plain data.

    Args:
        work: of WORKS.
        ports: of numpy, torch, keras, jax.
        settled: what ``harness.settle`` returned.
        rounds: turns of each.
        loud: whether what libraries print is shown.
        notes: a Console for progress.
    """
    threads, cores, clock = settled
    grown = WORKS[work]()
    names = harness.installed({
        name: grown.known[name].libraries
        for name in chosen(grown.known, ports)}, notes)
    sizes = list(dict.fromkeys(sum(AXES.values(), [])))
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory()))
        exact, rounded = grown.weights(folder)
        truths = {size: grown.truth(*size) for size in sizes} if (
            grown.truth) else asked(
                work, grown, sizes, exact, threads, folder, loud)
        workers = []
        for name in names:
            workers.append(Worker(work, name, rounded, threads, loud=loud))
            stack.callback(workers[-1].close)
        for worker in workers:
            for size in sizes:
                worker.ask("choose", **grown.case(*size))
                error = grown.error(
                    harness.output_of(worker, folder)[0], truths[size])
                if not error < grown.limit:
                    raise SystemExit(
                        f"{worker.name} is off by {error:.1e} (B = {size[0]}, "
                        f"T = {size[1]}): it computes something else.")
            notes.print(f"{work}, {worker.name}: validated")
        turns = {}
        for _ in harness.told(rounds, notes.print, f"{work}: "):
            for worker in workers:
                harness.await_quiet(clock)
                for size in sizes:
                    worker.ask("choose", **grown.case(*size))
                    turns.setdefault((worker.name, size), []).append(
                        harness.take_turn(worker, 1, clock, wait=False,
                                          warm=False, least=LEAST))
        results = {worker.name: {
            **worker.ask("describe"), **harness.rates(worker, clock)}
            for worker in workers}
    seconds = {case: statistics.median(harness.quiet_turns(
        {"turns": kept}, clock)) for case, kept in turns.items()}
    return {"threads": threads, "cores": cores, "cpu": harness.cpu_model(),
            "clock": clock, "rounds": rounds, "repeats": 1,
            "platform": platform.platform(), "results": results,
            "words": grown.about,
            "rows": list(rows(work, grown, names, seconds, results))}


def asked(work, grown, sizes, path, threads, folder, loud):
    """What the reference in float64 says of each size."""
    worker, truths = Worker(
        work, "numpy", path, threads, loud=loud), {}
    try:
        for size in sizes:
            worker.ask("choose", **grown.case(*size))
            truths[size] = harness.output_of(worker, folder)[0]
        return truths
    finally:
        worker.close()


def rows(work, grown, names, seconds, results):
    """Yield a row of each axis of each implementation, and of the limit."""
    for axis, sizes in AXES.items():
        plain = [size[axis == "length"] for size in sizes]
        limits = [roofline(results.values(), *grown.needs(*size))[0]
                  for size in sizes]
        yield dict(zip(FIELDS, (
            work, "the limit", "", None, axis, plain, limits,
            exponent(plain, limits), None, 1.0)))
        for name in names:
            one = grown.known[name]
            times = [seconds[name, size] for size in sizes]
            peer = seconds.get((one.peer, sizes[-1]))
            yield dict(zip(FIELDS, (
                work, one.title, one.form,
                peer and grown.known[one.peer].title, axis, plain, times,
                exponent(plain, times), peer and times[-1] / peer,
                limits[-1] / times[-1])))


def columns():
    """The heads of the table, as texts."""
    return ("work", "implementation", "form", "grows", "ms of the smallest",
            "middle", "largest", "exponent", "ratio", "of limit")


def texts_of(row):
    """A row of the table, as texts."""
    mark = {"length": "T", "batch": "B"}[row["grows"]]
    return (row["work"], row["implementation"], row["form"],
            f"{mark} = {', '.join(map(str, row['sizes']))}",
            *map(milliseconds, row["times"]),
            number(row["exponent"], ".2f"), number(row["ratio"], ".2f"),
            number(row["limit"], ".0%"))


def table_of(every):
    """The rows as a table for a terminal; an implementation tells its form."""
    return of_works(("smallest, ms", *columns()[5:]), [
        (f"{work}, {sizes}", title, *texts) for work, title, _, sizes, *texts
        in map(texts_of, every)])


def markdown(every):
    """The rows as a table of Markdown, as lines."""
    return [f"| {' | '.join(line)} |" for line in (
        columns(), ["---"] * 4 + ["---:"] * (len(columns()) - 4),
        *map(texts_of, every))]


def caption(reports):
    """What was measured and on what, as lines."""
    first = reports[0]
    sizes = workload.SIZES[workload.MODEL][-1]
    yield ("Exponents are slopes of log time by log size; ratio and share of "
           "the limit are those of the largest size.")
    yield (f"A small model: {', '.join(f'{n} {v}' for n, v in sizes.items())}, "
           f"vocabulary {workload.VOCAB}, float32. Lengths T are of one row, "
           f"batches B of {workload.SHORT} tokens.")
    for report in reports:
        yield f"{report['words']}."
    yield (f"{harness.machine(first)}; {plural(first['rounds'], 'turn')}, each "
           f"of passes for {LEAST * 1000:.0f} ms or one.")
    versions = {}
    for report in reports:
        for result in report["results"].values():
            versions |= result["versions"]
    yield ", ".join(f"{name} {version}" for name, version in versions.items())


#: The comment of a Markdown file between which the table stands.
MARK = "growth"


def run(works, ports, threads, rounds, quick, loud, json_file, markdown_file):
    """Time some works, print their table, and write it where asked.

    Args:
        works: of WORKS.
        ports: of numpy, torch, keras, jax.
        threads: of each library; None for one a core.
        rounds: turns of each.
        quick: whether the model is one of milliseconds.
        loud: whether what libraries print is shown.
        json_file, markdown_file: paths, or None.

    Raises:
        InputError: the Markdown lacks the comments.
        typer.Exit: status 1, after all else, if a work was not timed since an
            implementation computes something else.
    """
    console, notes = harness.consoles()
    settled = harness.settle(threads, -1)
    if markdown_file:
        between(markdown_file, harness.mark(MARK, settled[0]))
    reports, off = [], []
    for work in works:
        try:
            reports.append(measured(
                work, ports, settled, rounds, loud, notes))
        except SystemExit as failure:  # the other works are timed all the same
            off.append(f"Not timed: {work}; {failure}")
    every = [row for report in reports for row in report["rows"]]
    lines = [*([TINY] if quick else []), *off, *(
        caption(reports) if reports else ())]
    console.print(table_of(every))
    for line in lines:
        console.print(line, highlight=False)
    if json_file:
        write_json(json_file, {"schema": 1, "rows": every, "notes": lines})
    if markdown_file:
        replace_between(
            markdown_file, harness.mark(MARK, settled[0]),
            "\n".join([*markdown(every), "", *lines]))
    if off:
        raise typer.Exit(1)
