"""A comparison of two models for the eye: in a terminal, and as a page."""

import html

from rich import box
from rich.table import Table
from rich.text import Text

from contract.files import write_whole
from parity.comparison.result import GRADIENT, INPUT, OUTPUT, PARAMETER
from parity.numerics.comparator import DIVERGENCE
from parity.numerics.words import number
from parity.render import terminal

COLUMNS = ("step of a", "step of b", "shape", "error", "local", "limit",
           "verdict")

STYLE = """body{font:14px/1.4 system-ui,sans-serif;margin:2em;color:#222}
table{border-collapse:collapse}td,th{padding:.15em .7em;text-align:left}
th{border-bottom:1px solid #888}td.n{text-align:right;
font-variant-numeric:tabular-nums}tr.off{background:#fdd;font-weight:600}
small{color:#555}"""


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
        *cells, also = map(Text, _cells(row))
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
            out.print(f"{part}s: {len(rows)} compared, {off} diverge")
    for side in "ab":
        only = getattr(comparison.names, f"only_{side}")
        for what in ("steps", "parameters"):
            if only.get(what):
                out.print(Text(f"{what} of {side} without a partner: "
                               + ", ".join(only[what])))
    for note in comparison.notes:
        out.print(Text(f"note: {note}"))
    out.print(Text(comparison.sentence()))
    for each in comparison.explanations:
        out.print(Text(f"why: {each.text()}"))
    out.print(Text("verdict: ").append_text(
        terminal.verdict_text(comparison.verdict)))


def as_html(comparison):
    """A page that needs no other file."""
    text = html.escape

    def row_of(row):
        cells = _cells(row)
        also = f"<br><small>{text(cells[-1])}</small>" if cells[-1] else ""
        return (f"<tr{' class=off' if row.diverges else ''}>"
                f"<td>{text(cells[0])}{also}</td>" + "".join(
                    f"<td{' class=n' if 2 <= i <= 4 else ''}>{text(cell)}</td>"
                    for i, cell in enumerate(cells[1:-1], start=1)) + "</tr>")

    def side(name, what):
        versions = ", ".join(f"{k} {v}" for k, v in what["versions"].items())
        return (f"<p><b>{name}</b>: {text(versions)}, {text(what['dtype'])}, "
                f"{what['steps']} steps, {what['parameters']} parameters"
                + (f", {text(what['folder'])}" if what["folder"] else "")
                + "</p>")

    def only(name):
        names = getattr(comparison.names, f"only_{name}")
        return "".join(
            f"<p>{what} of {name} without a partner: "
            f"{text(', '.join(names[what]))}</p>"
            for what in ("steps", "parameters") if names.get(what))

    head = "".join(f"<th>{title}</th>" for title in COLUMNS)
    return "\n".join((
        "<!doctype html><html lang=en><meta charset=utf-8>",
        f"<title>{text(comparison.verdict)}</title><style>{STYLE}</style>",
        f"<h1>{text(comparison.verdict)}</h1>",
        f"<p>{text(comparison.sentence())}</p>",
        *(f"<p><b>Why:</b> {text(each.text())}</p>"
          for each in comparison.explanations),
        side("a", comparison.a), side("b", comparison.b),
        f"<table><tr>{head}</tr>",
        *(row_of(row) for row in _shown(comparison, True)), "</table>",
        only("a"), only("b"),
        "<ul>", *(f"<li>{text(note)}</li>" for note in comparison.notes),
        "</ul></html>", ""))


def write_html(comparison, path):
    """Write the page; raises InputError where it cannot be written."""
    write_whole(path, as_html(comparison))


def _cells(row):
    """What stands in a row's columns."""
    part = "" if row.part == OUTPUT else f"{row.part} "
    also = "; ".join(filter(None, (
        row.reason, row.note, row.layouts,
        row.local_reason if row.local_verdict == DIVERGENCE else "")))
    return (f"{part}{row.name}", "same" if row.b == row.a else row.b,
            "×".join(map(str, row.shape)) or "scalar",
            number(row.error), number(row.local),
            number(row.limit), _verdict(row), also)


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
