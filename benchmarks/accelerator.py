"""Check all ports on an accelerator, then time them: in eight minutes.

``python -m benchmarks.accelerator --device cuda --json gpu.json`` compares
every port and form with the reference in float64 and float32. Then it times
training and decoding of two models in three precisions, beside peers. What was
not reached when the minutes were over is said. ``--device cpu --quick`` does
all of it in a small way, to see that it runs.
"""

import importlib
import json
import os
import pathlib
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from typing import Annotated, Optional

import typer
from rich.table import Table

from parity_io.files import check_writable, write_json
from parity.commands.options import Json
from parity.commands.shell import told_plainly
from parity.ports import split_words

ROOT = pathlib.Path(__file__).parent.parent

#: Which share of the minutes the check has at most.
CHECKING = 0.35

#: Operations per second of products without sparsity, by precision, and bytes
#: per second of memory, by a word in the card's name: the makers' data sheets.
CARDS = {
    "H200": {"float32": 67e12, "tf32": 494e12, "bfloat16": 989e12,
             "bandwidth": 4.8e12},
    "H100": {"float32": 67e12, "tf32": 494e12, "bfloat16": 989e12,
             "bandwidth": 3.35e12},
    "A100": {"float32": 19.5e12, "tf32": 156e12, "bfloat16": 312e12,
             "bandwidth": 2.0e12},
}

#: How many turns a run is timed, and how far a loss may be from the first
#: implementation's in float32.
TURNS, FAR = 5, {"float32": 1e-4, "tf32": 3e-3, "bfloat16": 3e-2}

#: What the check compares of each port; of all presets would take too long.
CHECKED = "--preset", "lesson,complete,practical", "--no-full-size"
TINY = "--preset", "lesson", "--no-full-size"

COLUMNS = ("work", "model", "precision", "implementation", "ms", "tokens/s",
           "of the peak", "ratio", "GB")


def child(name, device):
    """Time every Job of an implementation; print a line of JSON for each."""
    table = importlib.import_module("benchmarks.accelerator_implementations")
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not enter the pipe
    one = table.IMPLEMENTATIONS[name]
    if one.port == "torch":
        say(pipe, {"card": card(device), "rates": rates(table, device)})
    for job in jobs(table, device):
        if job.work not in table.works(name):
            continue
        told = {"work": job.work, "preset": job.preset,
                "precision": job.precision}
        try:
            say(pipe, told | timed(one.make(job), job))
        except Exception as error:  # of one job; the next may run
            say(pipe, told | {
                "failure": f"{type(error).__name__}: {error}"[:300]})


def jobs(table, device):
    """Yield every Job, what matters most first."""
    for preset in table.PRESETS:
        for precision in table.PRECISIONS:
            for work in table.SHAPES:
                yield table.Job(work, preset, precision, device)


def say(pipe, words):
    """Print a line of JSON at once."""
    print(json.dumps(words), file=pipe, flush=True)


def timed(ready, job):
    """What a job takes, as plain data; its first result beside it."""
    began = time.perf_counter()
    first = ready.to_numpy(ready.run()).tolist()
    preparing = time.perf_counter() - began
    ready.run()
    seconds = []
    for _ in range(TURNS):
        start = time.perf_counter()
        ready.run()
        seconds.append(time.perf_counter() - start)
    flops, size = job.needs
    return {"seconds": statistics.median(seconds), "preparing": preparing,
            "tokens": job.tokens, "flops": flops, "bytes": size,
            "first": first, "memory": memory(job.device),
            "versions": ready.versions, "note": ready.note}


def memory(device):
    """The most bytes that torch held on a device; None elsewhere."""
    if device != "cuda" or "torch" not in sys.modules:
        return None
    cuda = sys.modules["torch"].cuda
    most = cuda.max_memory_allocated()
    cuda.empty_cache()
    cuda.reset_peak_memory_stats()
    return most


def card(device):
    """The name of what computes."""
    if device == "cuda":
        import torch
        return torch.cuda.get_device_name()
    return importlib.import_module("benchmarks.harness").cpu_model()


def rates(table, device):
    """Operations per second of a large product, by precision."""
    size = 8192 if device == "cuda" else 256
    found = {}
    for precision in table.PRECISIONS:
        multiply = table.torch_product(
            table.Job("training", table.PRESETS[0], precision, device), size)
        multiply()
        best = float("inf")
        for _ in range(TURNS):
            start = time.perf_counter()
            multiply()
            best = min(best, time.perf_counter() - start)
        found[precision] = 2 * size**3 / best
    return found


def lines_until(process, deadline):
    """Yield what a process prints, line by line, until a time has come."""
    lines: queue.Queue = queue.Queue()

    def read():
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    while (left := deadline - time.monotonic()) > 0:
        try:
            line = lines.get(timeout=left)
        except queue.Empty:
            break
        if line is None:
            break
        yield line
    process.kill()
    process.wait()


def environment(device):
    """Variables for the processes that compute."""
    return os.environ | {
        "TF_CPP_MIN_LOG_LEVEL": "3", "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "JAX_PLATFORMS": "cpu" if device == "cpu" else "cuda,cpu"} | (
        {} if device == "cpu" else {"KERAS_BACKEND": os.environ.get(
            "KERAS_BACKEND", "jax")})


def checked(ports, device, quick, seconds):
    """Compare every port and form, all at once: a row each.

    Args:
        seconds: after which what has not ended is given up.
    """
    with tempfile.TemporaryDirectory() as folder:
        began, running = time.monotonic(), {}
        for port in ports:
            for form in ("readable", "fast"):
                file = pathlib.Path(folder, f"{port}-{form}.json")
                running[port, form] = file, subprocess.Popen(
                    [sys.executable, "-m", "parity", "check", "--device",
                     device, "--port", port, "--form", form, "--json",
                     str(file), *(TINY if quick else CHECKED)],
                    cwd=ROOT, env=environment(device),
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                if quick:  # on a processor with as little as two cores
                    running[port, form][1].wait(seconds)
        rows = []
        for (port, form), (file, process) in running.items():
            row = {"port": port, "form": form}
            try:
                row["status"] = process.wait(
                    max(0.0, began + seconds - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                row["status"] = None
            if file.exists():
                row |= shares(json.loads(file.read_text()))
            rows.append(row)
        return rows


def shares(report):
    """How many comparisons a report has, and the largest shares of limits."""
    found: dict = {"comparisons": report["compared"], "shares": {}}
    for one in report["comparisons"]:
        if one["limit"] and one["error"] is not None:
            shares = found["shares"]
            shares[one["dtype"]] = max(shares.get(one["dtype"], 0.0),
                                       one["error"] / one["limit"])
    return found


def words_of(row):
    """What a check says, in a line."""
    says = {None: "not ended in time", 0: "matches", 1: "DIVERGES",
            4: "nothing was compared"}.get(row["status"], "failed")
    parts = [f"largest share of a limit in {dtype} {share:.2g}"
             for dtype, share in row.get("shares", {}).items()]
    if "comparisons" in row:
        parts.insert(0, f"{row['comparisons']:,} comparisons")
    return f"{row['port']}, {row['form']}: {', '.join([says, *parts])}."


def judged(rows, peaks):
    """Rows with their shares and ratios; who computes something else is told.

    Args:
        rows: of all implementations, as ``child`` prints them, with "name".
        peaks: by precision, and of "bandwidth", if it is known.
    """
    for row in rows:
        if "failure" in row:
            continue
        same = [other for other in rows if "failure" not in other and (
            other["work"], other["preset"]) == (row["work"], row["preset"])]
        truth = next((other for other in same
                      if other["precision"] == "float32"), None)
        if row["work"] == "training" and truth:
            loss, right = (flat(each["first"]) for each in (row, truth))
            if not abs(loss - right) < FAR[row["precision"]] * abs(right):
                row["failure"] = f"it computes something else: {loss:.6g}"
                continue
        bandwidth = peaks.get("bandwidth")
        least = row["flops"] / peaks[row["precision"]] + (
            row["bytes"] / bandwidth if bandwidth else 0.0)
        row["share"] = least / row["seconds"]
        peer = min((other["seconds"] for other in same
                    if other["peer"] and other["precision"]
                    == row["precision"]), default=None)
        row["ratio"] = peer and row["seconds"] / peer


def flat(value):
    """A number, or the first of a list of one."""
    while isinstance(value, list):
        value = value[0]
    return value


def table_of(rows, titles):
    """The rows as a table for a terminal."""
    table = Table(*COLUMNS)
    for row in sorted(rows, key=lambda row: (
            row["work"], row["preset"], row["precision"])):
        first = (row["work"], row["preset"], row["precision"],
                 titles[row["name"]])
        if "failure" in row:
            table.add_row(*first, row["failure"])
            continue
        table.add_row(
            *first, f"{row['seconds'] * 1e3:.3g}",
            f"{row['tokens'] / row['seconds']:,.0f}", f"{row['share']:.1%}",
            "" if row["ratio"] is None else f"{row['ratio']:.2f}",
            "" if row["memory"] is None else f"{row['memory'] / 1e9:.1f}")
    return table


def main(
    device: Annotated[str, typer.Option(
        metavar="NAME", help="cuda or cpu.")] = "cuda",
    port: Annotated[Optional[list[str]], typer.Option(
        "--port", metavar="NAME", help="torch, jax, keras or all, each with "
        "its peers.  [default: all]")] = None,
    minutes: Annotated[float, typer.Option(
        min=0.1, max=60, help="How long all of it may take.")] = 8,
    quick: Annotated[bool, typer.Option(
        "--quick", help="Tiny models, to see that all runs.")] = False,
    json_file: Json = None,
):
    """Check and time all ports on an accelerator."""
    with told_plainly():
        ports = split_words(port or ["all"], ("torch", "jax", "keras"), "port")
        check_writable(json_file)
    end = time.monotonic() + minutes * 60
    if quick:
        os.environ["PARITY_BENCH_QUICK"] = "1"
    from benchmarks import harness
    table = importlib.import_module("benchmarks.accelerator_implementations")
    console, notes = harness.consoles()
    checks = checked(ports, device, quick, minutes * 60 * CHECKING)
    for row in checks:
        console.print(words_of(row), highlight=False)
    names = harness.installed({
        name: one.libraries for name, one in table.IMPLEMENTATIONS.items()
        if one.port in ports}, notes)
    rows, facts, lines = [], {}, []
    for place, name in enumerate(names):
        now = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-c", "import sys; from benchmarks.accelerator "
             "import child; child(*sys.argv[1:])", name, device], cwd=ROOT,
            env=environment(device), stdout=subprocess.PIPE, text=True,
            stderr=subprocess.DEVNULL)
        one, own = table.IMPLEMENTATIONS[name], []
        for line in lines_until(
                process, now + (end - now) / (len(names) - place)):
            words = json.loads(line)
            if "card" in words:
                facts |= words
                continue
            own.append(words | {"name": name, "peer": one.form == ""})
            notes.print(f"{one.title}: {words['work']}, {words['preset']}, "
                        f"{words['precision']}")
        every = sum(job.work in table.works(name)
                    for job in jobs(table, device))
        if len(own) < every:
            lines.append(f"{one.title}: {every - len(own)} of {every} cases "
                         "were not reached.")
        rows += own
    peaks = next((peaks for word, peaks in CARDS.items()
                  if word in facts.get("card", "")), facts.get("rates"))
    if peaks:
        judged(rows, peaks)
        console.print(table_of(rows, {
            name: table.IMPLEMENTATIONS[name].title for name in names}))
    for name, rate in facts.get("rates", {}).items():
        lines.append(f"A large product in {name}: {rate / 1e12:.3g} TFLOP/s, "
                     f"{rate / peaks[name]:.0%} of the peak.")
    lines.append(f"On {facts.get('card', device)}; the ratio is to the "
                 "quickest peer of the row's kind.")
    for line in lines:
        console.print(line, highlight=False)
    if json_file:
        write_json(json_file, {"schema": 1, "checks": checks, "rows": rows,
                               "notes": lines, **facts})
    raise typer.Exit(int(any(row["status"] != 0 for row in checks)))


if __name__ == "__main__":
    typer.run(main)
