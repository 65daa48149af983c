"""Where the time of a run goes: by each library's own profiler."""

import cProfile
import collections
import concurrent.futures
import pathlib
import pstats
import re
import tempfile
from unittest import mock

#: Operations that hold others, whose time would count twice; not those of a
#: TensorFlow loop, whose names begin with its own.
OUTER = re.compile(
    r"(ThunkExecutor|ExecutorState|ExecutorDoneCallback|CpuExecutable|while"
    r"|cond|conditional|call|Pjit)\b(?!/)")

#: What numbers operations of a kind, each layer's and each call's, and the
#: names of TensorFlow's loops.
NUMBERED = re.compile(
    r"(_\d+)+(?=[/:.]|$)|\.\d+(?=[/:.]|$)|while(_\d+)?/(body/|cond/)?(_\d+/)?")

#: How many parts are told; the others are summed.
MOST = 12


def of_functions(run):
    """Python's functions and NumPy's calls, each without those it calls.

    What threads share out is done by one, which is the one looked into.
    """
    profiler, pool = cProfile.Profile(), concurrent.futures.ThreadPoolExecutor
    with mock.patch.object(pool, "map", lambda pool, *what: map(*what)):
        profiler.runcall(run)
    for (file, line, name), (_, calls, own, _, _) in pstats.Stats(
            profiler).stats.items():
        path = pathlib.Path(file)
        yield (f"{path.parent.name}/{path.name}:{line} {name}" if line
               else name), own, calls


def of_torch(run):
    """PyTorch's operations, each without those it calls."""
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        run()
    for event in profiler.key_averages():
        yield event.key, event.self_cpu_time_total / 1e6, event.count


def of_trace(folder):
    """XLA's and TensorFlow's operations, of a trace that was written."""
    from jax.profiler import ProfileData
    for file in pathlib.Path(folder).rglob("*.xplane.pb"):
        for plane in ProfileData.from_file(str(file)).planes:
            for line in plane.lines if "CPU" in plane.name else ():
                for event in operations(line):
                    yield (NUMBERED.sub("", event.name),
                           event.duration_ns / 1e9, 1)


def operations(line):
    """The events of a thread that are an operation each.

    In Python's own thread these are what XLA runs there, if anything.
    """
    events = [event for event in line.events
              if not event.name.startswith("end: ")]
    if line.name == "python":
        runs = [(event.start_ns, event.start_ns + event.duration_ns)
                for event in events if event.name.startswith("ThunkExecutor")]
        events = [event for event in events if any(
            start <= event.start_ns < end for start, end in runs)]
    return [event for event in events if not OUTER.match(event.name)]


def of_jax(run):
    """The operations of what XLA compiled."""
    import jax
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            run()
        yield from of_trace(folder)


def of_tensorflow(run):
    """The operations of TensorFlow's graph, and of XLA inside it."""
    import tensorflow as tf
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder):
            run()
        yield from of_trace(folder)


#: What each library's runs are looked into with; the first that is imported.
PROFILERS = {"torch": of_torch, "keras": of_tensorflow, "jax": of_jax,
             "numpy": of_functions}


def profiled(run, libraries):
    """Where the time of a run goes.

    Args:
        run: a function.
        libraries: what computes in it.

    Returns:
        [[name, seconds, calls]], what takes most first, or a sentence that
        says why it was not measured.
    """
    profiler = next(PROFILERS[name] for name in PROFILERS
                    if name in libraries)
    try:
        return rows_of(profiler(run))
    except ImportError as error:
        return f"not measured: {error}"


def rows_of(events):
    """(name, seconds, calls) summed by name, what takes most first."""
    seconds, calls = collections.Counter(), collections.Counter()
    for name, own, count in events:
        seconds[name] += own
        calls[name] += count
    if not seconds:
        return "not measured: the profiler told nothing of this run"
    rows = [[name, own, calls[name]] for name, own in seconds.most_common()]
    left = rows[MOST:]
    if left:
        rows = [*rows[:MOST], [f"{len(left)} others", sum(
            row[1] for row in left), sum(row[2] for row in left)]]
    return rows
