"""The matrix for the eye: tables in a terminal."""

from rich.table import Column
from rich.text import Text

from parity_io.errors import plural, visible
from parity.matrix.cells import NOT_CHECKED, WORKS
from parity.numerics.comparator import DIVERGENCE
from parity.numerics.dtypes import TIERS
from parity.numerics.words import listed, number
from parity.render.terminal import numbers, plain_table

#: Columns: a work and a dtype -> its title.
COLUMNS = {(work, dtype): f"{work} {dtype}"
           for work, dtypes in WORKS.items() for dtype in dtypes}

#: What a row is of.
ROW = "implementation", "form", "mode", "where"


def by_row(matrix):
    """{row of the table: {(work, dtype): SubjectCell}}."""
    rows: dict = {}
    for cell in matrix.cells:
        rows.setdefault(cell.subject.row, {})[
            cell.work, cell.subject.dtype] = cell
    return rows


def rows_of(matrix, columns):
    """(row, {column: SubjectCell}) of every row that has any of the columns."""
    return [(row, cells) for row, cells in by_row(matrix).items()
            if cells.keys() & set(columns)]


def shown(cell):
    """A cell in a few letters: its share, or a dash; a divergence in words."""
    if cell is None or cell.verdict == NOT_CHECKED:
        return "–"
    if cell.verdict == DIVERGENCE:
        return "DIVERGES" if cell.error is None else (
            f"DIVERGES {number(cell.error)}")
    return share(cell.share)


def share(value):
    """A share of a limit: two digits, and not more zeros than needed."""
    if not value:
        return "0"
    return f"{value:.2f}"[1:] if .01 <= value < 1 else f"{value:.0e}"


def titles(cells, tiers=False):
    """The columns that any of these cells has, in order: of dtypes or tiers.
    """
    there = {(cell.work, cell.subject.dtype) for cell in cells}
    return [column for column in COLUMNS if column in there
            and (column[1] in TIERS) == tiers]


def words_of(row):
    """What a row is of, in four words."""
    return row.implementation, row.form, row.mode, place(row)


def place(row):
    """Where a row was computed."""
    return f"{row.mesh} on {row.device}" if row.mesh else row.device


def table(matrix, tiers=False):
    """The matrix of dtypes, or of tiers, as a table for a terminal."""
    columns = titles(matrix.cells, tiers)
    result = plain_table(
        *(Column(title, no_wrap=True) for title in ROW),
        *(numbers(f"{work}\n{dtype}") for work, dtype in columns))
    for row, cells in rows_of(matrix, columns):
        result.add_row(*map(Text, map(visible, words_of(row))), *(
            Text(shown(cells.get(column)), style=style(cells.get(column)))
            for column in columns))
    return result


def style(cell):
    """The colour of a cell; what it says stands in its words as well."""
    if cell is None or cell.verdict == NOT_CHECKED:
        return "yellow"
    return "bold red" if cell.verdict == DIVERGENCE else "green"


def show(out, matrix):
    """Print a matrix, what diverges, what is not checked, and the verdict."""
    if not matrix.cells:
        say(out, "Nothing was compared: no work that was asked for has a limit "
            "in a dtype, form and mode that were.")
        return
    for tiers in (False, True):
        if titles(matrix.cells, tiers):
            out.print(table(matrix, tiers))
    for cell in matrix.divergences:
        say(out, f"DIVERGENCE: {cell.subject}: {cell.work}: {cell.reason}")
        if cell.cause:
            say(out, f"Cause: {cell.cause}.")
    for reason, names in reasons(matrix).items():
        say(out, f"not checked: {'; '.join(names)}: {reason}")
    say(out, summary(matrix))


def say(out, words):
    """Print words of anybody as they are: brackets in them are no markup."""
    out.print(Text(visible(words)))


def summary(matrix):
    """How many cells there are of each kind, in a line."""
    tensors = sum(cell.compared for cell in matrix.cells)
    return (f"{plural(len(matrix.cells), 'cell')}: {len(matrix.checked)} "
            f"measured, of {tensors:,} tensors; "
            f"{len(matrix.divergences)} diverge; "
            f"{len(matrix.cells) - len(matrix.checked)} not checked")


def reasons(matrix):
    """{why it was not checked: [what]}, each once."""
    lists: dict = {}
    for cell in matrix.cells:
        if cell.verdict == NOT_CHECKED:
            lists.setdefault(cell.reason, {}).setdefault(
                str(cell.subject.row), {}).setdefault(
                cell.work, []).append(cell.subject.dtype)
    return {reason: [f"{row} ({kinds(works)})" for row, works in rows.items()]
            for reason, rows in lists.items()}


def kinds(works):
    """{work: dtypes} in words; no dtypes where they are all that it has."""
    return ", ".join(
        work if len(dtypes) == len(WORKS[work]) else
        f"{work} in {listed(dtypes)}" for work, dtypes in works.items())
