"""A report that is tables, as one page that holds all it needs.

``parity check matrix`` and ``python -m benchmarks`` write theirs so, in the
design of the reports of ``check`` and ``compare``.
"""

import dataclasses
import math
from collections.abc import Sequence

from markupsafe import Markup

from parity_io.files import write_whole
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.numerics.words import number
from parity.render import markup
from parity.render.matrix_page import place_words
from parity.render.matrix import (
    COLUMNS, ROW, reasons, rows_of, share, shown, summary, titles, words_of)

#: A bar ends where a ratio is this, or its inverse.
FARTHEST = 8

#: How many cells are listed as the nearest to their limits.
LISTED = 12


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        id, title: of its heading.
        words: what is to be known before its table.
        header, rows: of the table. A cell is words, or a dict of "words", the
            "kind" by which it is styled and, for a bar, its end "bar".
        lines: sentences behind it.
    """

    id: str
    title: str
    words: str = ""
    header: tuple = ()
    rows: Sequence = ()
    lines: Sequence = ()


def write(path, command, name, first, sections, word=""):
    """Write a page, whole or not at all.

    Args:
        command: what wrote it.
        name: what it is called.
        first: its first sentence.
        sections: Sections.
        word: the verdict, where it has one.
    """
    write_whole(path, markup.unbroken(markup.environment().get_template(
        "report-tables.html").render(
            style=Markup(markup.style()), command=command, name=name,
            first=first, sections=sections, word=word)))


def ratio(value):
    """The cell of a ratio, with a bar from 1 on a logarithmic scale."""
    if value is None:
        return ""
    far = math.log(value) / math.log(FARTHEST)
    return {"words": f"{value:.2f}", "kind": "ratio",
            "bar": round(60 + 60 * max(-1, min(1, far)), 1)}


def write_matrix(path, matrix):
    """Write a Matrix as such a page."""
    sections = [Section(
        name, title, "The largest error of any tensor, as a share of its "
        "limit: below 1 is a match, and a dash is not checked.",
        (*ROW, *(COLUMNS[column] for column in columns)),
        [(*words_of(row), *(cell_of(cells.get(column)) for column in columns))
         for row, cells in rows_of(matrix, columns)])
        for name, title, tiers in (("matrix", "The matrix", False),
                                   ("tiers", "Precision tiers", True))
        if (columns := titles(matrix.cells, tiers))]
    if matrix.divergences:
        sections.insert(0, Section(
            "divergences", "What diverges", lines=[
                f"{cell.subject}, {cell.work}: {cell.reason}"
                + (f". Cause: {cell.cause}." if cell.cause else "")
                for cell in matrix.divergences]))
    measured = sorted((cell for cell in matrix.checked
                       if cell.share is not None),
                      key=lambda cell: cell.share, reverse=True)[:LISTED]
    if measured:
        sections.append(Section(
            "nearest", "Nearest to a limit", "",
            ("what", "work", "tensor", "error", "limit", "share"),
            [(str(cell.subject), cell.work, cell.tensor, number(cell.error),
              number(cell.limit), share(cell.share)) for cell in measured]))
    left = reasons(matrix)
    if left:
        sections.append(Section(
            "left", "Not checked", lines=[
                f"{reason}: {'; '.join(names)}."
                for reason, names in left.items()]))
    sections.append(Section(
        "where", "Where it was measured",
        lines=list(map(place_words, matrix.places))))
    word = (DIVERGENCE if matrix.divergences
            else MATCH if matrix.checked else "not checked")
    write(path, "parity check matrix", "The matrix",
          f"Preset {matrix.preset}, at the size of a test. {summary(matrix)}.",
          sections, word)


def cell_of(cell):
    """A SubjectCell as a cell of a table."""
    verdict = cell.verdict if cell else "not checked"
    return {"words": shown(cell), "kind": f"cell-{verdict.replace(' ', '-')}"}
