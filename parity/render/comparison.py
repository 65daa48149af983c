"""A comparison of two models for the eye, in a terminal."""

from rich import box
from rich.table import Table
from rich.text import Text

from contract.errors import visible
from parity.comparison.card_text import middle
from parity.comparison.result import GRADIENT, INPUT, OUTPUT, PARAMETER
from parity.numerics.comparator import DIVERGENCE, MATCH, WORST
from parity.numerics.words import number
from parity.render.card import print_card

COLUMNS = ("step of a", "step of b", "shape", "error", "local", "limit",
           "verdict")


def print_comparison(out, comparison, steps=False, everything=False):
    """Print the card, below a table of the pairs if it is asked for.

    Args:
        out: a rich console.
        comparison: a Comparison.
        steps: show the pairs too: outputs, and whatever diverges.
        everything: of the pairs, show matching inputs, parameters and
            gradients too.
    """
    if steps:
        print_steps(out, comparison, everything)
    print_card(out, comparison.card())
    if not steps and comparison.verdict != MATCH:
        out.print(Text("    --steps  shows every pair", style="dim"))


def print_steps(out, comparison, everything=False):
    """Print one line a pair of arrays, and what has no partner."""
    rows = [(row, cells_of(row)) for row in _shown(comparison, everything)]
    same = all(cells[1] == "same" for _, cells in rows)
    titles = [title for i, title in enumerate(COLUMNS) if not (same and i == 1)]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, no_wrap=True, justify=(
            "right" if title in ("error", "local", "limit") else "left"))
    shown = [[cell for i, cell in enumerate(cells[:-1])
              if not (same and i == 1)] for _, cells in rows]
    paths = len(titles) - 5
    wide = [max([len(title), *(len(cells[i]) for cells in shown)])
            for i, title in enumerate(titles)]
    room = max(12, (out.width - 2 - sum(wide[paths:]) - 2 * len(titles))
               // paths)
    for (row, _), cells in zip(rows, shown):
        cells = [_text(middle(visible(cell), room) if i < paths else cell)
                 for i, cell in enumerate(cells)]
        if row.diverges:
            cells[-1].stylize("bold red")
        table.add_row(*cells)
    out.print(table)
    for part in (PARAMETER, INPUT, OUTPUT, GRADIENT):
        found = [row for row in comparison.rows if row.part == part]
        if found:
            off = sum(row.diverges for row in found)
            out.print(f"{part}s: {len(found)} compared, {off} "
                      + ("diverges" if off == 1 else "diverge"))
    for side in "ab":
        only = getattr(comparison.names, f"only_{side}")
        for what in ("steps", "parameters"):
            if only.get(what):
                out.print(_text(f"{what} of {side} without a partner: "
                                + ", ".join(only[what])))
    for note in comparison.notes:
        out.print(_text(f"note: {note}"))
    out.print()


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
