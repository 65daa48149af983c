"""How long a person waits for a command: ``python -m benchmarks.waits``.

Each command runs three times, one after another. The time by the clock is what
is waited; that of the processor, of all its processes, is what a busy machine
does not change.
"""

import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time
from typing import Annotated, Optional

import typer
from rich.table import Table

from benchmarks import harness
from benchmarks.texts import between, replace_between
from parity.commands.options import Json
from parity.commands.shell import told_plainly
from parity.ports import split_words
from parity_io.files import check_writable, write_json

ROOT = pathlib.Path(__file__).parent.parent

#: A model, and the same in another framework.
MINE, OTHER = "examples/mine_torch.py:make", "examples/mine_jax.py:make"

#: What is waited for: name -> (words of ``parity``, the most seconds that are
#: aimed at, the exit status).
WAITS = {
    "help": (("--help",), 0.5, 0),
    "doctor": (("doctor",), 5, 0),
    "compare-within": (("compare", MINE, MINE), 2.5, 0),
    "compare-across": (("compare", MINE, OTHER), 5, 1),
    "check-lesson": (
        ("check", "--preset", "lesson", "--port", "torch"), 2.5, 0),
    "check": (("check",), 25, 0),
    "generate": (("check", "--generate"), 120, 0),
    "train": (("check", "--train", "20"), 120, 0),
}

#: What is measured where nothing is named: the others take minutes.
USUAL = tuple(WAITS)[:6]

COLUMNS = ("wait", "seconds, three runs", "median", "CPU s", "aim")


def waited(words, status):
    """(seconds by the clock, CPU seconds) of a command.

    Raises:
        SystemExit: it ended with another exit status.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "parity", *words], cwd=ROOT,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != status:
        raise SystemExit(f"parity {' '.join(words)} ended with "
                         f"{done.returncode}: {done.stderr[-500:]}")
    return seconds, (after.ru_utime + after.ru_stime
                     - before.ru_utime - before.ru_stime)


def row_of(name, runs):
    """A row of the table, as plain data."""
    words, aim, status = WAITS[name]
    times = [waited(words, status) for _ in range(runs)]
    return {"wait": name, "command": f"parity {' '.join(words)}",
            "seconds": [seconds for seconds, _ in times],
            "cpu": statistics.median(cpu for _, cpu in times), "aim": aim}


def texts_of(row):
    """A row of the table, as texts."""
    return (f"`{row['command']}`",
            ", ".join(f"{seconds:.1f}" for seconds in row["seconds"]),
            f"{statistics.median(row['seconds']):.1f}", f"{row['cpu']:.1f}",
            f"{row['aim']:g}")


def main(
    wait: Annotated[Optional[list[str]], typer.Argument(
        metavar="WAIT…", help=f"{', '.join(WAITS)} or all.  [default: "
        f"{' '.join(USUAL)}]")] = None,
    runs: Annotated[int, typer.Option(min=1, help="Of each.")] = 3,
    markdown: Annotated[Optional[pathlib.Path], typer.Option(
        metavar="FILE", help="Replace the table between the comments "
        "'bench waits' in FILE.", show_default=False)] = None,
    json_file: Json = None,
):
    """Measure how long commands take."""
    with told_plainly():
        names = split_words(wait or USUAL, tuple(WAITS), "wait")
        check_writable(json_file, markdown)
        if markdown:
            between(markdown, "bench waits")
    console, notes = harness.consoles()
    rows, table = [], Table(*COLUMNS)
    for name in names:
        rows.append(row_of(name, runs))
        notes.print(*texts_of(rows[-1]))
        table.add_row(*texts_of(rows[-1]))
    console.print(table)
    line = f"{os.cpu_count()} cores, {harness.cpu_model()}."
    console.print(line, highlight=False)
    if markdown:
        lines = [COLUMNS, ["---", *["---:"] * 4], *map(texts_of, rows)]
        replace_between(markdown, "bench waits", "\n".join(
            [*(f"| {' | '.join(texts)} |" for texts in lines), "", line]))
    if json_file:
        write_json(json_file, {"schema": 1, "rows": rows})


if __name__ == "__main__":
    typer.run(main)
