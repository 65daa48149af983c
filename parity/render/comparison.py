"""A comparison of two models for the eye, in a terminal."""

from rich import box
from rich.table import Table
from rich.text import Text

from contract.errors import visible
from parity.comparison.result import GRADIENT, INPUT, OUTPUT, PARAMETER
from parity.numerics.comparator import DIVERGENCE, WORST
from parity.numerics.words import number
from parity.render import terminal

COLUMNS = ("step of a", "step of b", "shape", "error", "local", "limit",
           "verdict")


def print_comparison(out, comparison, everything=False):
    """Print a table, what was not compared, and the verdict.

    Args:
        out: a rich console.
        comparison: a Comparison.
        everything: show matching inputs, parameters and gradients too.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for i, title in enumerate(COLUMNS):
        table.add_column(title, overflow="fold",
                         justify="right" if 3 <= i <= 5 else "left")
    for row in _shown(comparison, everything):
        *cells, also = map(_text, cells_of(row))
        if row.diverges:
            cells[-1].stylize("bold red")
        table.add_row(*cells)
        if also.plain:
            table.add_row(Text(f"  {also.plain}", style="dim"))
    out.print(table)
    kinds = [(part, [row for row in comparison.rows if row.part == part])
             for part in (PARAMETER, INPUT, OUTPUT, GRADIENT)]
    for part, rows in kinds:
        if rows:
            off = sum(row.diverges for row in rows)
            out.print(f"{part}s: {len(rows)} compared, {off} "
                      + ("diverges" if off == 1 else "diverge"))
    for side in "ab":
        only = getattr(comparison.names, f"only_{side}")
        for what in ("steps", "parameters"):
            if only.get(what):
                out.print(_text(f"{what} of {side} without a partner: "
                                + ", ".join(only[what])))
    for note in comparison.notes:
        out.print(_text(f"note: {note}"))
    out.print(_text(comparison.sentence()))
    for each in comparison.explanations:
        out.print(_text(f"why: {each.text()}"))
    out.print(Text("verdict: ").append_text(
        terminal.verdict_text(comparison.verdict)))


def _text(words):
    """Words with names of anybody in them, which colour and move nothing."""
    return Text(visible(words))


def cells_of(row):
    """What stands in a row's COLUMNS, and what else is to be said of it.

    The limit is the one that decided: that of the local error where it alone
    diverges.
    """
    part = "" if row.part == OUTPUT else f"{row.part} "
    alone = row.local_verdict == DIVERGENCE
    local = "" if not alone or (
        row.reason and row.local_reason.startswith(WORST)) else (
        row.local_reason)
    also = "; ".join(filter(None, (
        row.reason, row.note, row.layouts, local and f"local: {local}")))
    limit = (row.local_limit if alone and row.verdict != DIVERGENCE
             else row.limit)
    return (f"{part}{row.name}", "same" if row.b == row.a else row.b,
            "×".join(map(str, row.shape)) or "scalar",
            number(row.error), number(row.local),
            number(limit), _verdict(row), also)


def _shown(comparison, everything):
    """The rows worth a line: outputs, and whatever diverges."""
    return [row for row in comparison.rows
            if everything or row.part == OUTPUT or row.verdict == DIVERGENCE
            or row.local_verdict == DIVERGENCE]


def _verdict(row):
    if not row.counted and row.verdict == DIVERGENCE:
        return "differs"
    verdict = DIVERGENCE if row.diverges else row.verdict
    return f"{verdict}, {row.origin}" if row.origin else verdict
