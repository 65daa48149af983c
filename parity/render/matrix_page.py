"""The matrix as a page in Markdown."""

import math

from parity_io.errors import plural
from parity_io.files import write_whole
from parity.check import cases
from parity.matrix import meshes, tiers
from parity.matrix.cells import NOT_CHECKED
from parity.matrix.measuring import STEPS
from parity.matrix.repeats import BATCHES
from parity.numerics.comparator import DIVERGENCE
from parity.numerics.dtypes import TIERS
from parity.numerics.words import listed, number
from parity.render.markdown import code, plain
from parity.render.matrix import (
    COLUMNS, ROW, by_row, reasons, rows_of, shown, summary, titles, words_of)

#: The column in which a run is held against itself, and its cost is taken.
LOW = "forward", "float32"

PAGE = """\
# The matrix

`parity check matrix --markdown docs/matrix.md` writes this page. Each cell is
the largest error of any tensor as a share of its limit, so that below 1 is a
match; a dash is *not checked*, and says why below, or is no cell of that row.

{where}

{table}

{legend}

## Precision tiers

{tiers}

{tier_words}
{systems}
## The third tensor

The distance from the truth over that of the NumPy reference in the same dtype:
of the output, of all gradients together, and in training of how far all weights
have moved. 1 is as near as NumPy, and below 1 is nearer: what is compiled
rounds less often than what is run step by step.

{third}

## The same again

How far an output in float32 is from itself, as a share of its size: asked ten
times, by one thread and by two, and about a row alone and among others. *equal*
is to the bit; a dash is not measured: a runtime has threads of its own from its
start, or an exporter traces no single row. No framework promises any of it, and
none of it is a divergence; what is compared by its bits must be asked in one
way.

{again}

## Speed and memory

A forward pass in float32 of {rows} rows, in one run: CPU time, and the most
memory that it had beside the model's, each beside that of the same
implementation run eagerly; the CPU time of a pass over {few} rows, which is
what a call costs; and the seconds until the first had ended, with what it
compiles.

{speed}

## Not checked

{reasons}
"""

SYSTEMS = """
## Every system

The same of every preset: of all that was compared in {dtypes}, the largest
error as a share of its limit.

{table}
"""

TIER_WORDS = """\
Weights are float32. In *tf32* and *bfloat16x3* so is all but what products
read; in *mixed* tiers 16 bits take part, as in training: torch's `autocast`
rounds products, Keras' mixed policies and JAX' weights of another dtype the
whole pass, and the loss, its gradients, moments and weights are float32, under
a loss scale that falls after a step that overflows and grows again. The
reference does the same, each product's operands rounded, and a limit is twice
its own distance from the truth and two units of what products read. *training*
is {steps} steps, of which the first overflows in float16: losses, norms, scales
and how far all weights have moved together. What must be float32 may moreover
not hold 16 bits alone: a norm, a moment or a master copy that was rounded is
often within a limit, and is seen by that. Each step of Adam must move every
weight as its own moments say, to a few units of float32, and what was trained
must compute as a new model of the same weights does. The activation is smooth
here, for a ReLU's gradient jumps where rounding decides a sign."""

LEGEND = """\
*forward* compares every step, of what is compiled or exported the output;
*gradients* the loss, and its gradient by every weight, where it is eager by
every step as well; *training* {steps} steps in lockstep, on a mesh {more}:
losses, norms, weights and moments; *generation* the tokens and scores of a
greedy search and of a beam. [Meshes](meshes.md) have a batch and
vocabularies of their own. Limits stand as everywhere: 1e-12 in float64 (1e-10
for the gradient of one weight and for training), and below that what NumPy's
own error in that dtype allows. The nearest to its limit is {nearest}."""


def markdown_table(header, rows):
    """A table in Markdown; all columns after the first four are numbers."""
    marks = ["---"] * 4 + ["--:"] * (len(header) - 4)
    return "\n".join("| " + " | ".join(plain(str(word)) for word in row) + " |"
                     for row in (header, marks, *rows))


def markdown_cells(matrix, tiers=False):
    """The matrix of dtypes, or of tiers, in Markdown."""
    columns = titles(matrix.cells, tiers)
    return markdown_table(
        (*ROW, *(COLUMNS[column] for column in columns)),
        [(*words_of(row), *(shown(cells.get(column)) for column in columns))
         for row, cells in rows_of(matrix, columns)])


def systems(matrices):
    """The worst share of each row in each preset's Matrix, in Markdown.

    "" where there is one Matrix alone.
    """
    if len(matrices) < 2:
        return ""
    rows: dict = {}
    dtypes: dict = {}
    for matrix in matrices:
        for row, cells in by_row(matrix).items():
            found = [cell for cell in cells.values() if cell.verdict
                     != NOT_CHECKED and cell.subject.dtype not in TIERS]
            if found:
                rows.setdefault(row, {})[matrix.preset] = max(
                    found, key=lambda cell: math.inf if (
                        cell.verdict == DIVERGENCE) else cell.share)
    others = {matrix.preset for matrix in matrices[1:]}
    rows = {row: cells for row, cells in rows.items()
            if cells.keys() & others}
    for matrix in matrices[1:]:
        dtypes |= dict.fromkeys(cell.subject.dtype for cell in matrix.checked)
    return SYSTEMS.format(dtypes=listed(list(dtypes)), table=markdown_table(
        (*ROW, *(matrix.preset for matrix in matrices)),
        [(*words_of(row), *(shown(cells.get(matrix.preset))
                            for matrix in matrices))
         for row, cells in rows.items()]))


def third(matrix, columns):
    """Rows of how far each is from the truth beside NumPy in that dtype."""
    return [(*words_of(row), *(
        "–" if (cell := cells.get(column)) is None or cell.beside is None
        else f"{cell.beside:.2f}" for column in columns))
        for row, cells in by_row(matrix).items()
        if any(cells[column].beside is not None for column in columns
               if column in cells)]


def again(matrix):
    """Rows of how far each output is from itself."""
    return [(*words_of(row), *map(itself, (
        cell.again, cell.threads, cell.alone)))
        for row, cells in by_row(matrix).items()
        if (cell := cells.get(LOW)) and cell.again is not None]


def itself(value):
    """A distance from itself in a word."""
    if value is None:
        return "–"
    return number(value) if value else "equal"


def speed(matrix):
    """Rows of what each mode costs beside the eager readable form."""
    rows, first = [], {}
    for row, cells in by_row(matrix).items():
        cell = cells.get(LOW)
        if cell is None or cell.large is None:
            continue
        kind = row.implementation, row.device
        if (row.form, row.mode) == ("readable", "eager"):
            first[kind] = cell
        usual = first.get(kind)
        rows.append((
            *words_of(row), f"{1000 * cell.large:.0f} ms",
            ratio(cell.large, usual and usual.large),
            "–" if cell.memory is None else f"{cell.memory / 2**20:.1f} MiB",
            ratio(cell.memory, usual and usual.memory),
            f"{1000 * cell.seconds:.1f} ms", f"{cell.preparing:.1f} s"))
    return rows


def ratio(value, usual):
    """A number beside another, in a word."""
    return f"{value / usual:.2f}" if value is not None and usual else "–"


def where_words(matrix):
    """Where and when cells were measured, a paragraph for each place."""
    counts: dict = {}
    for cell in matrix.cells:
        words = plain(place_words(matrix.places[cell.place]))
        counts[words] = counts.get(words, 0) + 1
    return "\n\n".join([
        f"Preset `{matrix.preset}` at the size of a test. {summary(matrix)}.",
        *(f"{plural(count, 'cell')}: {words}"
          for words, count in counts.items())])


def place_words(place):
    """A place in words."""
    versions = ", ".join(f"{name} {version}" for name, version
                         in sorted(place["versions"].items()))
    return (
        f"{place['when']}, {place['processor']}, {place['cores']} cores, "
        f"{place['platform']}, Python {place['python']}; {versions}.")


def write(path, matrix, others=()):
    """Write a matrix as a page in Markdown.

    Args:
        others: Matrices of other presets.
    """
    there = {(cell.work, cell.subject.dtype) for cell in matrix.cells
             if cell.beside is not None}
    compared = [column for column in COLUMNS if column in there]
    nearest = max((cell for cell in matrix.checked if cell.share is not None),
                  key=lambda cell: cell.share, default=None)
    write_whole(path, PAGE.format(
        where=where_words(matrix),
        table=markdown_cells(matrix),
        tiers=markdown_cells(matrix, tiers=True),
        tier_words=TIER_WORDS.format(steps=tiers.STEPS),
        systems=systems([matrix, *others]),
        third=markdown_table(
            (*ROW, *(COLUMNS[column] for column in compared)),
            third(matrix, compared)),
        again=markdown_table(
            (*ROW, "ten times", "two threads", "alone"), again(matrix)),
        rows=BATCHES * cases.BATCH, few=cases.BATCH,
        legend=LEGEND.format(
            steps=STEPS, more=meshes.STEPS,
            nearest="none" if nearest is None else
            f"{plain(str(nearest.subject))}, {nearest.work}, "
            f"{code(nearest.tensor)}: "
            f"{number(nearest.error)} of {number(nearest.limit)}"),
        speed=markdown_table(
            (*ROW, "a pass", "× eager", "memory", "× eager", "few rows",
             "first"), speed(matrix)),
        reasons="\n".join(plain(f"- {reason}: {'; '.join(names)}.")
                          for reason, names in reasons(matrix).items())
        or "Nothing was left out."))
