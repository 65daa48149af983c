"""A comparison of two models, or of their training, as one page that holds all
it needs."""

import dataclasses

from markupsafe import Markup

from parity_io.errors import visible
from parity_io.files import write_whole
from parity.comparison import card_html
from parity.comparison.card import NOTES
from parity.comparison.result import OUTPUT
from parity.numerics.comparator import ZERO, Difference
from parity.numerics.words import number
from parity.render import markup
from parity.render.comparison import cells_of
from parity.render.error_charts import ACCUMULATED, LOCAL, drawing, icons

#: How many steps one picture shows; more would be a grey band.
DRAWN = 400


@dataclasses.dataclass(frozen=True)
class ChartRow:
    """A step as a chart takes it: its name, limit and errors by series."""

    name: str
    limit: float
    differences: dict


def write_html(comparison, path):
    """Write the page; raises InputError where it cannot be written."""
    write_whole(path, as_html(comparison))


def training_as_html(comparison):
    """The page of a training.answer.TrainingComparison, as text."""
    pages = markup.environment(number=number)
    return markup.unbroken(pages.get_template("report-training.html").render(
        style=Markup(markup.style()), comparison=comparison,
        card=Markup(card_html.html(comparison.card()))))


def as_html(comparison):
    """The page as text."""
    rows = [{"cells": cells, "also": also, "off": row.diverges}
            for row in comparison.rows
            for *cells, also in [cells_of(row)]]
    pages = markup.environment(number=number)
    pages.finalize = _shown
    template = pages.get_template("report-compare.html")
    return markup.unbroken(template.render(
            style=Markup(markup.style()), comparison=comparison, rows=rows,
            more_notes=comparison.notes[NOTES:],
            off=[row for row in rows if row["off"]],
            sides=[("a", comparison.a), ("b", comparison.b)],
            alone=[(side, what, names) for side in "ab"
                   for what, names in getattr(
                       comparison.names, f"only_{side}").items()
                   if names and what in ("steps", "parameters")],
            card=Markup(card_html.html(comparison.card())),
            charts=charts(comparison), icons=icons((ACCUMULATED, LOCAL)),
            own=any(row.local is not None and row.local_limit != row.limit
                    for row in comparison.rows)))


def _shown(value):
    """What a page is to show: words of anybody without control characters."""
    ours = not isinstance(value, str) or isinstance(value, Markup)
    return value if ours else visible(value)


def charts(comparison):
    """[(title, SVG)] of the errors of all steps, in the order of a's run."""
    rows = [chart_row(row) for row in sorted(
        (row for row in comparison.rows
         if row.part == OUTPUT and row.verdict != ZERO),
        key=lambda row: row.order)]
    parts = [rows[start:start + DRAWN] for start in range(0, len(rows), DRAWN)]
    place, made = 0, []
    for part in parts:
        title = f"steps {place + 1} to {place + len(part)} of {len(rows)}"
        made.append((title, drawing(part, title)))
        place += len(part)
    return made


def chart_row(row):
    """A PairRow as a ChartRow."""
    differences = {ACCUMULATED: Difference(
        row.error, row.limit, row.verdict, row.reason)}
    if row.local is not None:
        differences[LOCAL] = Difference(
            row.local, row.local_limit or row.limit, row.local_verdict)
    return ChartRow(visible(row.name), row.limit, differences)
