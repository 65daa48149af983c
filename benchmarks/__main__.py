"""How fast each form of each implementation is here: ``python -m benchmarks``.
"""

import importlib
import os
import pathlib
from typing import Annotated, Optional

import typer

from parity_io.errors import InputError, one_of
from parity_io.files import check_writable
from parity.commands.options import Html, Json, Words
from parity.commands.shell import Command, Commands, told_plainly
from parity.ports import split_words

#: Who is timed.
PORTS = "numpy", "torch", "keras", "jax"

#: The variables by which everything is tiny, or small so that long batches take
#: seconds; benchmarks/workload.py reads them.
QUICK, GROW = "PARITY_BENCH_QUICK", "PARITY_BENCH_GROW"

#: Of what it is measured how times grow.
GROWN = "forward", "training", "generation", "attention"


def bench(
    work: Annotated[Optional[list[str]], typer.Argument(
        metavar="[WORK]…", help="forward, training, padded, generation, "
        "attention, loading.  [default: forward training]")] = None,
    port: Annotated[Words, typer.Option(
        "--port", metavar="NAME", help="numpy, torch, keras, jax or all; each "
        "beside its framework's own layers.  [default: all]")] = None,
    threads: Annotated[Optional[int], typer.Option(
        min=1, max=1024, help="Threads of each library; 1 also pins all to "
        "one core and counts CPU time.  [default: one a core]",
        show_default=False)] = None,
    against: Annotated[Optional[str], typer.Option(
        metavar="NAME", help="Whom every ratio is to; an unknown name lists "
        "those that there are.  [default: each one's own peer]",
        show_default=False)] = None,
    rounds: Annotated[Optional[int], typer.Option(
        min=1, help="Turns of each implementation.  [default: 5, with --quick "
        "1]", show_default=False)] = None,
    repeats: Annotated[int, typer.Option(
        min=1, help="Timed passes in a turn.")] = 1,
    longest: Annotated[Optional[int], typer.Option(
        min=32, max=2048, help="The longest targets that generation "
        "writes.  [default: 128]", show_default=False)] = None,
    search: Annotated[Words, typer.Option(
        "--search", metavar="NAME", help="What generation times: greedy-1, "
        "greedy-8, greedy-32 (sources at once), beam-1 or all.  "
        "[default: all]", show_default=False)] = None,
    quick: Annotated[bool, typer.Option(
        "--quick", help="A model of milliseconds, to see that all runs: its "
        "times say nothing.")] = False,
    grow: Annotated[bool, typer.Option(
        "--grow", help="How times grow with the length, to 2,048 tokens, and "
        "with the batch, to 64, of a small model's fast forms and peers, in "
        "exponents.  [default: forward training generation attention]",
    )] = False,
    profile: Annotated[bool, typer.Option(
        "--profile", help="Also show where the time of each goes, by its "
        "library's profiler; not of loading.")] = False,
    loud: Annotated[bool, typer.Option(
        "--loud", help="Show what the libraries print.")] = False,
    json_file: Json = None,
    html: Html = None,
    markdown: Annotated[Optional[pathlib.Path], typer.Option(
        metavar="FILE", help="Replace the table of each work in FILE, between "
        "comments such as 'bench forward, 2 threads'.",
        show_default=False)] = None,
):
    """Time implementations in turn, each validated first, beside peers."""
    with told_plainly():
        ports = split_words(port or ["all"], PORTS, "port")
        check_writable(json_file, html, markdown)
        if quick:
            os.environ[QUICK] = "1"  # for the processes that are timed too
        rounds = rounds or (1 if quick else 5)
        if grow:
            if against or longest or search or profile or html or repeats > 1:
                raise InputError(
                    "--grow goes with works, --port, --threads, --rounds, "
                    "--quick, --loud, --json and --markdown alone; leave the "
                    "other options out.")
            works = [one_of(name, GROWN, "work of --grow")
                     for name in work or GROWN]
            os.environ[GROW] = "1"
            growth = importlib.import_module("benchmarks.growth")
            growth.run(works, ports, threads, rounds, quick, loud,
                       json_file, markdown)
            return
        command = importlib.import_module("benchmarks.command")
        works = [one_of(name, command.WORKS, "work")
                 for name in work or command.DEFAULT]
        if (search or longest) and "generation" not in works:
            raise InputError(
                f"{'--search' if search else '--longest'} is of generation, "
                "which is not among the works; name it too.")
        command.run(works, ports, threads, against, rounds, repeats,
                    longest or 128, quick, loud, json_file, profile, html,
                    markdown, search)


app = typer.Typer(
    cls=Commands, add_completion=False, rich_markup_mode=None,
    pretty_exceptions_enable=False)
app.command(name="bench", cls=Command)(bench)

if __name__ == "__main__":
    app(prog_name="python -m benchmarks")
