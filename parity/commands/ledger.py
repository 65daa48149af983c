"""The command ``parity check ledger``: no error grows unseen."""

import gc
import math
import pathlib
from typing import Annotated, Optional

import typer

from transformer_contract.config import PRESETS
from parity_io.errors import InputError, plural
from parity_io.files import check_writable
from parity import ports
from parity.check import ledger as book
from parity.commands.options import Port, Words
from parity.commands.shell import DIVERGED, NOTHING, told_plainly
from parity.render import terminal

#: How many changes of a kind are listed; raised ones always all.
LISTED = 40


def ledger(
    check: Annotated[bool, typer.Option(
        "--check", help="Run the check and compare its errors with the "
        "ledger's; write nothing.")] = False,
    propose: Annotated[bool, typer.Option(
        "--propose", help="Run the check, write what the ledger should be, "
        "and show what changes.")] = False,
    allow_raise: Annotated[bool, typer.Option(
        "--allow-raise", help="With --propose, raise entries too.")] = False,
    preset: Annotated[Words, typer.Option(
        "--preset", metavar="NAME", help=f"{', '.join(PRESETS)} or all; "
        "repeat it or separate names by commas.  [default: all]")] = None,
    port: Port = None,
    dtype: Annotated[Words, typer.Option(
        "--dtype", metavar="NAME", help="float64, float32 or all.  "
        "[default: all]")] = None,
    file: Annotated[Optional[pathlib.Path], typer.Option(
        "--file", metavar="FILE", help="Another ledger than the project's, "
        "such as a machine's own.")] = None,
):
    """Compare each port's errors with those recorded, or record them.

    Exit status: 0 as recorded, 1 an error grew or a row is missing, 2 usage,
    4 nothing was compared.
    """
    with told_plainly():
        if check == propose:
            raise InputError("say either --check or --propose.")
        if allow_raise and not propose:
            raise InputError("--allow-raise needs --propose; add it.")
        presets = ports.split_words(preset or ["all"], PRESETS, "preset")
        names = ports.chosen(port)
        dtypes = ports.split_words(dtype or ["all"], book.DTYPES, "dtype")
        path = file or book.PATH
        if propose:
            check_writable(path)
        entries = {} if propose and not path.exists() else book.read(path)
        run = _run(presets, names, dtypes)
        out = terminal.console()
        for missing in run.not_checked:
            out.print(f"not checked: {missing.port}, {missing.reason}",
                      markup=False, soft_wrap=True)
        if not run.engines:
            out.print("nothing was compared")
            raise typer.Exit(NOTHING)
        finish = _propose if propose else _check
        status = finish(out, run, entries, path, allow_raise)
    raise typer.Exit(status)


def _run(presets, names, dtypes):
    """The Report of the check on the processor, at test size."""
    from parity.check.run import Check
    with terminal.progress() as progress:
        task = progress.add_task("starting")
        job = Check(
            presets, names, dtypes, full_size=False,
            on_case=lambda text: progress.update(task, description=text))
        gc.freeze()  # the frameworks' own objects are here to stay
        if job.report.engines:
            for _ in job.groups():
                pass
    return job.report


def _check(out, run, entries, path, allow_raise):
    """Say what grew and what is missing; the exit status."""
    problems = list(book.problems(run.rows, entries))
    for text in problems:
        out.print(text, markup=False, soft_wrap=True)
    count = len(book.achieved(run.rows))
    out.print(f"{plural(count, 'entry')} compared with {path} in "
              f"{run.seconds:.1f} seconds: "
              f"{plural(len(problems) or 'no', 'problem')}",
              markup=False, soft_wrap=True)
    return DIVERGED if problems else 0


def _propose(out, run, old_entries, path, allow_raise):
    """Write the new ledger and show its changes; the exit status."""
    entries, changes = book.propose(
        book.achieved(run.rows), old_entries, allow_raise)
    book.write(entries, path)
    _print_changes(out, changes)
    count = book.counted(changes)
    raised = count.pop(book.RAISED, 0)
    words = [f"{number} {kind}" for kind, number in count.items()]
    if raised and allow_raise:
        words.insert(0, f"{raised} {book.RAISED}")
    out.print(f"wrote {path}, {plural(len(entries), 'entry')}: "
              + (", ".join(words) or "nothing changed"),
              markup=False, soft_wrap=True)
    if not raised or allow_raise:
        return 0
    out.print(f"{raised} would be raised and stay as they were; look for the "
              "cause, or add --allow-raise")
    failing = any(change.new > book.bound(change.key, change.old)
                  for change in changes if change.kind == book.RAISED)
    return DIVERGED if failing else 0


def _print_changes(out, changes):
    """A line a change, old → new and the ratio; raised ones all."""
    counts: dict = {}
    for change in changes:
        kind = change.kind
        counts[kind] = counts.get(kind, 0) + 1
        if kind != book.RAISED and counts[kind] > LISTED:
            continue
        old, new = ("–" if error is None else book.written(error)
                    for error in (change.old, change.new))
        ratio = change.ratio
        times = "" if ratio is None else (
            f"  × {ratio:.3g}" if math.isfinite(ratio) else "")
        out.print(f"{kind:7} {old:>7} → {new:>7}{times}  {change.key}",
                  markup=False, soft_wrap=True)
    for kind, number in counts.items():
        if kind != book.RAISED and number > LISTED:
            out.print(f"{kind:7} and {number - LISTED} more")
