"""How a report looks in a terminal. Verdicts are words, never only colours."""

import contextlib
import shutil
import sys
import textwrap
import time
from collections import defaultdict

from rich import box
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn
from rich.progress import TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from parity.numerics.comparator import DIVERGENCE, FREE, MATCH, ZERO
from parity.numerics.words import listed, number

#: Wide enough for every row where the output is a file or a pipe.
FILE_WIDTH = 132

STYLES = {MATCH: "green", ZERO: "green", FREE: "green",
          DIVERGENCE: "bold red"}

#: Where no line can move, one is printed at most each so many seconds.
EVERY = 1.0

#: How many divergences are listed at the end.
LISTED = 10


def console(stderr=False):
    """A console that obeys NO_COLOR and does not wrap into a file."""
    result = Console(stderr=stderr, highlight=False)
    if not result.is_terminal:
        result = Console(stderr=stderr, highlight=False, width=FILE_WIDTH)
    return result


def filled(text, out=None, indent=0):
    """A sentence on lines that end between words, where a terminal has them.

    Args:
        out: where it will be printed; by default standard output.
        indent: how far lines behind the first are moved in.
    """
    if not (out or sys.stdout).isatty():
        return text
    return textwrap.fill(text, shutil.get_terminal_size().columns - 1,
                         subsequent_indent=" " * indent,
                         break_long_words=False, break_on_hyphens=False)


def prose(text):
    """Paragraphs on lines that end between words, where they are too wide.

    What is moved in, or a row of a table, stays as it is; an item of a list
    begins a line.
    """
    width = shutil.get_terminal_size().columns
    if not sys.stdout.isatty() or max(
            map(len, text.split("\n"))) < width:
        return text
    pieces: list = []
    for line in text.split("\n"):
        stands = not line.strip() or line.startswith(("    ", "|", "#"))
        item = line.startswith("- ")
        if stands or item or not pieces or pieces[-1][0]:
            pieces.append((stands, line))
        else:
            pieces[-1] = False, f"{pieces[-1][1]} {line.strip()}"
    return "\n".join(line if stands else filled(
        line, indent=2 * line.startswith("- ")) for stands, line in pieces)


def verdict_text(verdict):
    """A verdict in its colour; a divergence in capitals too."""
    words = verdict.upper() if verdict == DIVERGENCE else verdict
    return Text(words, style=STYLES.get(verdict, "yellow"))


def _error_text(difference):
    if difference is None:
        return Text("–", style="yellow")
    style = "bold red" if difference.verdict == DIVERGENCE else ""
    return Text(number(difference.error), style=style)


def plain_table(*titles, **more):
    """A table without lines; a title is words, or a rich Column."""
    return Table(*titles, box=None, pad_edge=False, header_style="bold", **more)


def numbers(title):
    """The column of numbers under a title."""
    return Column(title, justify="right", no_wrap=True)


def rows_table(rows, port_names):
    """The table of one group of rows: a row a step, a column a port."""
    table = plain_table(
        Column("step", overflow="fold", ratio=1), Column("shape", no_wrap=True),
        *map(numbers, (*port_names, "limit")), Column("verdict", no_wrap=True))
    case = None
    for row in rows:
        if row.case != case:
            case = row.case
            table.add_row(Text(case, style="bold cyan"))
        shape = "×".join(map(str, row.shape)) or "scalar"
        table.add_row(
            f"  {row.name}", shape,
            *(_error_text(row.differences.get(name)) for name in port_names),
            number(row.limit), verdict_text(row.verdict))
    return table


class Steps:
    """Prints the rows of a check, a row a step."""

    def __init__(self, out, port_names):
        self.out, self.ports = out, port_names

    def begin(self, presets):
        """Say nothing: the first row says all."""

    def add(self, rows):
        """Print the rows of one model, dtype and device."""
        first = rows[0]
        self.out.print()
        self.out.print(
            f"[bold]{first.preset}[/] · {first.dtype} · {first.device}")
        columns = dict.fromkeys([
            *(["numpy"] if "numpy" in first.differences else []),
            *self.ports])
        self.out.print(rows_table(rows, list(columns)))

    def end(self, report):
        """Print the largest errors."""
        print_summary(self.out, report, self.ports)


def print_summary(out, report, port_names):
    """Print each port's largest error, a row a model and dtype."""
    out.print()
    out.print("Largest error of each port:")
    out.print(summary_table(report, port_names))


def summary_table(report, port_names):
    """A row for each model and dtype: each port's largest share of a limit."""
    groups = defaultdict(list)
    for row in report.rows:
        full = "full size" in row.case
        name = f"{row.preset}, full size" if full else row.preset
        groups[name, row.dtype, row.device].append(row)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for title in ("model", "dtype", "device"):
        table.add_column(title, no_wrap=True)
    table.add_column("steps", justify="right")
    for name in port_names:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for (name, dtype, device), rows in groups.items():
        worst = DIVERGENCE if any(
            row.verdict == DIVERGENCE for row in rows) else MATCH
        table.add_row(
            name, dtype, device, str(len(rows)),
            *(_worst(rows, port) for port in port_names),
            verdict_text(worst))
    return table


def _worst(rows, port):
    """A port's largest error in a group of rows."""
    differences = [row.differences[port] for row in rows
                   if port in row.differences]
    if not differences:
        return Text("not checked", style="yellow")
    if any(f.error is None for f in differences):
        return Text("–", style="bold red")
    style = ("bold red" if any(f.verdict == DIVERGENCE for f in differences)
             else "")
    return Text(number(max(f.error for f in differences)), style=style)


def print_divergences(out, report):
    """List the first divergences, the first of all first."""
    divergences = report.divergences()
    if not divergences:
        return
    row, port, difference = divergences[0]
    out.print(Text.assemble(
        ("First divergence: ", "bold red"),
        f"{port}, {row.preset}, {row.case}, step {row.name} "
        f"({row.dtype}, {row.device}): error {number(difference.error)}, "
        f"limit {number(difference.limit)}"
        + (f"; {difference.reason}" if difference.reason else "") + "."))
    for row, port, difference in divergences[1:LISTED]:
        out.print(f"  then {port}, {row.preset}, {row.case}, {row.name} "
                  f"({row.dtype}): {number(difference.error)}"
                  + (f"; {difference.reason}" if difference.reason else ""))
    if len(divergences) > LISTED:
        out.print(f"  and {len(divergences) - LISTED} more.")
    again = next(filter(None, map(run_again, divergences)), "")
    if again:
        out.print(f"Run it again: {again}", soft_wrap=True)


def run_again(divergence):
    """The command that makes a drawn model's divergence again; "" of others."""
    row, port, _ = divergence
    kind, _, draw = row.preset.partition(" ")
    form = "" if row.form == "readable" else f" --form {row.form}"
    return (f"parity check --draw {draw} --port {port}{form}"
            if kind == "drawn" else "")


def print_environment(out, environment):
    """Versions, devices and precision settings, a name and what it has."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    table.add_row("python", f"{environment['python']} on "
                  f"{environment['platform']}, {environment['cores']} cores")
    for library in environment["blas"]:
        table.add_row("blas", f"{library['library']} "
                      f"({library['architecture']}, {library['threads']} "
                      "threads)")
    if flags := environment.get("xla_flags"):
        table.add_row("xla", flags)
    for name, port in environment["ports"].items():
        versions = ", ".join(f"{k} {v}" for k, v in port["versions"].items())
        table.add_row(name, versions + (
            f"; devices {', '.join(port['devices'])}"
            if "devices" in port else ""))
        if "precision" in port:
            settings = ", ".join(
                f"{k}={v}" for k, v in port["precision"].items())
            canaries = ", ".join(
                f"{v:.1f} eps on {k}" for k, v in port["canary_eps"].items())
            table.add_row(
                "", f"{settings}; float32 product off by {canaries}")
    out.print(table)


def print_verdict(out, report):
    """The last lines: what was compared, what was not, the verdict."""
    for missing in report.not_checked:
        out.print(Text.assemble(
            ("not checked: ", "yellow"), f"{missing.port}, {missing.reason}"))
    for words in report.not_done:
        out.print(Text.assemble(("not done: ", "yellow"), words))
    for one in report.not_fused:
        models = (f"{len(one.models)} models" if len(one.models) > 4
                  else ", ".join(one.models))
        out.print(Text.assemble(
            ("not fused: ", "yellow"), f"{one.port}, {one.reason}: {models}"))
    for failure in report.failures:
        out.print(Text.assemble(
            ("failed: ", "bold red"), f"{failure.port}, {failure.work}: "
            f"{failure.reason}." + (
                " The report has the traceback." if failure.traceback
                else "")))
    out.print(Text(counted(report)))
    out.print(Text("verdict: ").append_text(verdict_text(report.verdict)))


def counted(report):
    """How many comparisons were made and how they came out, in words."""
    diverging = len(report.divergences())
    verb = "diverges" if diverging == 1 else "diverge"
    missing = report.expected - report.not_compared - report.compared
    parts = ["nothing was compared" if report.compared == report.own else
             f"{report.compared:,} compared, "
             + (f"{diverging:,} {verb}" if diverging else "all match")]
    if missing > 0:
        parts.append(f"{missing:,} expected are not there")
    if report.not_compared:
        absent = dict.fromkeys(one.what for one in report.not_checked)
        parts.append(f"{report.not_compared:,} not checked" + (
            f" ({listed(absent)})" if absent else ""))
    return f"{'; '.join(parts)}; {report.seconds:.1f} seconds"


def progress(out=None):
    """A line that moves on a terminal and nowhere else.

    Args:
        out: the Console that is printed to meanwhile. Where that is a
            terminal the line stands beneath what is printed, else on standard
            error.
    """
    shared = out if out is not None and out.is_terminal else console(True)
    words = TextColumn("{task.description}", table_column=Column(
        no_wrap=True, overflow="ellipsis"))
    elapsed = TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=7))
    return Progress(
        SpinnerColumn(), elapsed, words, console=shared,
        transient=True, disable=not shared.is_terminal)


@contextlib.contextmanager
def telling():
    """A function that says what is being done, for work that takes long.

    On a terminal a line moves; where standard error is a file or a pipe, a
    line with the seconds so far is printed at most each EVERY seconds.
    """
    start = last = time.perf_counter()
    with progress() as bar:
        task = bar.add_task("starting")

        def tell(text):
            nonlocal last
            bar.update(task, description=text)
            now = time.perf_counter()
            if bar.disable and now - last >= EVERY:
                print(f"{now - start:5.0f} s  {text}", file=sys.stderr,
                      flush=True)
                last = now

        yield tell
