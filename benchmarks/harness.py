"""Implementations in processes of their own, validated and timed in turn."""

import contextlib
import dataclasses
import os
import pathlib
import platform
import statistics
import tempfile
import time

import numpy as np
from rich.console import Console

from benchmarks import workload
from benchmarks.worker import Worker
from transformer_contract import weights
from parity_io.errors import not_installed, plural

#: Seconds between turns, so that threads of the last one have gone to sleep,
#: and the longest wait for other programs to leave the processor idle.
PAUSE, PATIENCE = 0.1, 3.0

#: The share of the processor that other programs may have had in a turn.
QUIET = 0.05


#: The relative L2 distance from the reference in float64 that is too far.
LIMIT = 1e-5


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """What is timed and how it is told.

    Attributes:
        name: of benchmarks.passes; it names the module of the implementations.
        implementations: name -> Timed; "numpy" is the truth in float64.
        workload: what is computed, as plain data, and in words.
    """

    name: str
    implementations: dict
    workload: tuple


def cpu_model():
    """The processor's name."""
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


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
    """Pause; where wall time counts, until the machine is nearly idle.

    Times of the quick model say nothing, so that it waits for nobody.
    """
    if workload.MODEL == "quick":
        return
    deadline = time.monotonic() + PATIENCE
    while True:
        before = busy_seconds()
        time.sleep(PAUSE)
        idle = busy_seconds() - before < QUIET * os.cpu_count() * PAUSE
        if idle or clock == "cpu" or time.monotonic() > deadline:
            return


def take_turn(worker, repeats, clock, wait=True, **how):
    """The median time of a turn, and the share that other programs had.

    Args:
        wait: whether it begins when the machine is nearly idle.
    """
    if wait:
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
    return write_both(folder, weights.probe_weights(workload.config()))


def write_both(folder, arrays):
    """Arrays by name, rounded to float32, in float64 and in that; two paths."""
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
    worker = Worker(benchmark.name, "numpy", path, threads, loud=loud)
    try:
        return output_of(worker, folder)
    finally:
        worker.close()


def measure(workers, truth, folder, rounds, repeats, clock, progress):
    """Validate every worker, then time them in turn.

    Returns:
        name -> {"error", "turns", "rates", "peak", "versions", "blas"}; a
        turn is the median of its repeats, in seconds, and the share of the
        processor that other programs had meanwhile.
    """
    results = {}
    for place, worker in enumerate(workers, 1):
        error = relative_l2(output_of(worker, folder), truth)
        progress(f"validated {place} of {len(workers)}: {worker.name}, "
                 f"relative L2 {error:.1e}")
        if not error < LIMIT:
            raise SystemExit(f"{worker.name} is off by {error:.1e}, over "
                             f"{LIMIT:.0e}: it computes something else.")
        results[worker.name] = {
            "error": error, "turns": [], "rates": [],
            **worker.ask("describe")}
    for _ in told(rounds, progress):
        for worker in workers:
            result = results[worker.name]
            result["turns"].append(take_turn(worker, repeats, clock))
            if "peak" not in result:  # before the products take their part
                result["peak"] = worker.ask("peak")
            now = rates(worker, clock)
            result["rates"] += now["rates"]
            result["bandwidth"] = max(
                result.get("bandwidth", 0), now["bandwidth"])
    return results


def told(rounds, progress, what=""):
    """Yield the number of each round, and say after it how long is left."""
    start = time.monotonic()
    for number in range(rounds):
        yield number
        done = number + 1
        left = (time.monotonic() - start) / done * (rounds - done)
        progress(f"{what}round {done} of {rounds}"
                 f"{f', about {left:.0f} s left' if left else ''}")


def rates(worker, clock):
    """The rates of a worker's products, and its bandwidth."""
    return {"rates": [worker.ask("multiply", repeats=4, clock=clock)],
            "bandwidth": worker.ask("bandwidth", clock=clock)}


def rows(benchmark, results, clock):
    """Yield what every table tells of an implementation, as plain data."""
    for name, result in results.items():
        yield {
            "name": name,
            "title": benchmark.implementations[name].title,
            "median": statistics.median(quiet_turns(result, clock)),
            "peak": result["peak"] and result["peak"] - result["imported"],
            "error": result["error"],
        }


def caption(report):
    """What was measured and on what, as lines."""
    yield report["words"]
    yield (f"{machine(report)}; {plural(report['rounds'], 'round')} of "
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


def mark(work, threads):
    """The comment of a Markdown file between which a work's table stands."""
    return f"bench {work}, {plural(threads, 'thread')}"


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
        if words := not_installed(needed):
            notes.print(f"{name} is left out: {words}")
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
        results = measure(workers, truth, folder, rounds, repeats,
                          clock, notes.print)
        for worker in workers if profile else ():
            results[worker.name]["profile"] = worker.ask("profile")
    data, words = benchmark.workload
    return {
        "workload": data, "words": words,
        "threads": threads, "cores": cores, "cpu": cpu_model(),
        "clock": clock,
        "platform": platform.platform(), "rounds": rounds,
        "repeats": repeats, "results": results,
        "rows": list(rows(benchmark, results, clock)),
    }
