"""The matrix for the eye: tables in a terminal, and a page in Markdown."""

import re

from rich.table import Table
from rich.text import Text

from contract.errors import visible
from contract.files import write_whole
from parity.matrix.cells import NOT_CHECKED, WORKS
from parity.numerics.comparator import DIVERGENCE
from parity.numerics.words import number

#: Columns: a work and a dtype -> its title.
COLUMNS = {(work, dtype): f"{work} {dtype}"
           for work, dtypes in WORKS.items() for dtype in dtypes}

PAGE = """\
# The matrix

`parity matrix --markdown docs/matrix.md` writes this page. Each cell is the
largest error of any tensor as a share of its limit, so that below 1 is a match;
a dash is *not checked*, and says why below.

{where}

{table}

{legend}

## Speed

CPU time of one forward pass beside that of the same implementation run eagerly
in float64 on this machine, and the seconds until the first one had ended, with
what it compiles. The model has the size of a test, so that this says what a
call costs, not what a large product does.

{speed}

## Not checked

{reasons}
"""

LEGEND = """\
*forward* compares every step, of what is compiled or exported the output;
*gradients* the loss, and its gradient by every weight, where it is eager by
every step as well; *training* {steps} steps in lockstep, on a mesh {more}:
losses, norms, weights and moments. [Meshes](meshes.md) have a batch and
vocabularies of their own. Limits stand as everywhere: 1e-12 in float64 (1e-10
for the gradient of one weight and for training), and below that what NumPy's
own error in that dtype allows. The nearest to its limit is {nearest}."""


def by_row(matrix):
    """{row of the table: {(work, dtype): TargetCell}}."""
    rows = {}
    for cell in matrix.cells:
        rows.setdefault(cell.target.row, {})[
            cell.work, cell.target.dtype] = cell
    return rows


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


def titles(cells):
    """The columns that any of these cells has, in order."""
    there = {(cell.work, cell.target.dtype) for cell in cells}
    return [column for column in COLUMNS if column in there]


def words_of(row):
    """What a row is of, in four words."""
    return row.implementation, row.form, row.mode, place(row)


def place(row):
    """Where a row was computed."""
    return f"{row.mesh} on {row.device}" if row.mesh else row.device


def table(matrix):
    """The matrix as a table for a terminal."""
    result = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("implementation", "form", "mode", "where"):
        result.add_column(title, no_wrap=True)
    columns = titles(matrix.cells)
    for work, dtype in columns:
        result.add_column(f"{work}\n{dtype}", justify="right", no_wrap=True)
    for row, cells in by_row(matrix).items():
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
            "in a dtype that was.")
        return
    out.print(table(matrix))
    for cell in matrix.divergences:
        say(out, f"DIVERGENCE: {cell.target}: {cell.work}: {cell.reason}")
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
    return (f"{len(matrix.cells)} cells: {len(matrix.checked)} measured, of "
            f"{tensors:,} tensors; {len(matrix.divergences)} diverge; "
            f"{len(matrix.cells) - len(matrix.checked)} not checked")


def reasons(matrix):
    """{why it was not checked: [what]}, each once."""
    lists = {}
    for cell in matrix.cells:
        if cell.verdict == NOT_CHECKED:
            lists.setdefault(cell.reason, {}).setdefault(
                str(cell.target.row), {}).setdefault(
                cell.work, []).append(cell.target.dtype)
    return {reason: [f"{row} ({kinds(works)})" for row, works in rows.items()]
            for reason, rows in lists.items()}


def kinds(works):
    """{work: dtypes} in words; no dtypes where they are all that it has."""
    return ", ".join(
        work if len(dtypes) == len(WORKS[work]) else
        f"{work} in {' and '.join(dtypes)}" for work, dtypes in works.items())


def markdown_table(header, rows):
    """A table in Markdown; all columns after the first four are numbers."""
    marks = ["---"] * 4 + ["--:"] * (len(header) - 4)
    return "\n".join("| " + " | ".join(plain(str(word)) for word in row) + " |"
                     for row in (header, marks, *rows))


def plain(words):
    """Words of anybody in one line of Markdown, where they mark nothing."""
    return re.sub(r"([\\|<`\[\]])", r"\\\1",
                  visible(" ".join(words.split())))


def speed(matrix):
    """Rows of how fast each mode is beside the eager readable form."""
    rows, first = [], {}
    for row, cells in by_row(matrix).items():
        cell = cells.get(("forward", "float64"))
        if cell is None or cell.seconds is None:
            continue
        kind = row.implementation, row.device
        if (row.form, row.mode) == ("readable", "eager"):
            first[kind] = cell.seconds
        rows.append((*words_of(row), f"{1000 * cell.seconds:.1f} ms",
                     f"{cell.seconds / first[kind]:.2f}"
                     if first.get(kind) else "–",
                     f"{cell.preparing:.1f} s"))
    return rows


def where_words(matrix):
    """Where and when cells were measured, a paragraph for each place."""
    used = {cell.place for cell in matrix.cells}
    return "\n\n".join([
        f"Preset `{matrix.preset}` at the size of a test. {summary(matrix)}.",
        *(place_words(place, sum(cell.place == number
                                 for cell in matrix.cells))
          for number, place in enumerate(matrix.places) if number in used)])


def place_words(place, count):
    """A place in words, and how many cells are of it."""
    versions = ", ".join(f"{name} {version}" for name, version
                         in place["versions"].items())
    return plain(
        f"{count} cells: {place['when']}, {place['processor']}, "
        f"{place['cores']} cores, {place['platform']}, Python "
        f"{place['python']}; {versions}.")


def write(path, matrix):
    """Write a matrix as a page in Markdown."""
    from parity.matrix import meshes
    from parity.matrix.measuring import STEPS
    columns = titles(matrix.cells)
    nearest = max((cell for cell in matrix.checked if cell.share is not None),
                  key=lambda cell: cell.share, default=None)
    write_whole(path, PAGE.format(
        where=where_words(matrix),
        table=markdown_table(
            ("implementation", "form", "mode", "where",
             *(COLUMNS[column] for column in columns)),
            [(*words_of(row), *(shown(cells.get(column))
                                for column in columns))
             for row, cells in by_row(matrix).items()]),
        legend=LEGEND.format(
            steps=STEPS, more=meshes.STEPS,
            nearest="none" if nearest is None else
            f"{plain(str(nearest.target))}, {nearest.work}, "
            f"`{visible(nearest.tensor).replace('`', '')}`: "
            f"{number(nearest.error)} of {number(nearest.limit)}"),
        speed=markdown_table(
            ("implementation", "form", "mode", "where", "a pass", "× eager",
             "first"), speed(matrix)),
        reasons="\n".join(plain(f"- {reason}: {'; '.join(names)}.")
                          for reason, names in reasons(matrix).items())
        or "Nothing was left out."))
