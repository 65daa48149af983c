"""A comparison of two models for the eye, in a terminal."""

from rich.text import Text

from parity_io.errors import visible
from parity.comparison.card_text import WIDTH, lines, middle
from parity.comparison.result import GRADIENT, INPUT, OUTPUT, PARAMETER
from parity.comparison.verdicts import NEW, WITHIN
from parity.numerics.comparator import DIVERGENCE, MATCH, WORST
from parity.numerics.words import number

COLUMNS = ("step of a", "step of b", "shape", "error", "local", "limit",
           "verdict")

#: What is said of where a divergence comes from.
ORIGINS = {NEW: "starts here", WITHIN: "caused inside"}


#: The styles of a card's words, as rich has them.
STYLES = {"strong": "bold", "dim": "dim", "good": "bold green",
          "bad": "bold red", "warn": "bold yellow", "mark": "bold red", "": ""}


def print_card(out, card):
    """Print a Card; a narrow console gets narrower lines."""
    for line in lines(card, min(WIDTH, max(out.width, 40))):
        out.print(Text.assemble(*(
            (words, STYLES[style]) for words, style in line)), soft_wrap=True)


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


#: How an array that is no step's only output is called in the table.
PREFIX = {PARAMETER: "param ", INPUT: "in ", OUTPUT: "", GRADIENT: "grad "}

#: So many columns a path has, or the table leaves out a column, these first.
PATH, LEFT_OUT = 22, ("worst at", "shape", "limit")


def print_steps(out, comparison, everything=False):
    """Print one line a pair of arrays, and what has no partner."""
    rows = _shown(comparison, everything)
    columns = _columns(rows)
    limits = dict.fromkeys(columns["limit"])
    if len(limits) == 1:
        del columns["limit"]
    paths = [name for name in columns if name.startswith("step")]

    def room():
        wide = sum(max(map(len, [name, *cells])) + 2
                   for name, cells in columns.items() if name not in paths)
        return max(12, (out.width - wide) // len(paths) - 2)
    for name in LEFT_OUT:
        if room() < min(PATH, max(map(len, columns[paths[0]]), default=0)):
            columns.pop(name, None)
    for path in paths:
        columns[path] = [middle(cell, room()) for cell in columns[path]]
    wide = {name: max(map(len, [name, *cells]))
            for name, cells in columns.items()}
    out.print(_line(list(columns), wide, "bold"))
    for row, *cells in zip(rows, *columns.values()):
        out.print(_line(cells, wide, "bold red" if row.diverges else ""))
        *_, also = cells_of(row)
        rest = "; ".join(words for words in also.split("; ")
                         if words and not words.startswith(WORST))
        if rest:
            out.print(Text(f"  {visible(rest)}", style="dim"))
    out.print()
    if len(limits) == 1:
        out.print(f"The limit is {next(iter(limits))}.")
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


def _columns(rows):
    """{title: the cells of every row}; b's paths only where they differ."""
    cells = [cells_of(row) for row in rows]
    columns = {"step": [visible(_name(row, row.a, row.a_name))
                        for row in rows]}
    if any(row.a != row.b for row in rows):
        columns = {"step of a": columns["step"], "step of b": [
            "same" if row.b == row.a else visible(row.b) for row in rows]}
    columns |= {COLUMNS[i]: [each[i] for each in cells] for i in range(2, 6)}
    columns["verdict"] = [_mark(row) for row in rows]
    columns["worst at"] = [
        row.reason.partition("; ")[0].removeprefix("worst at row ")
        if row.reason.startswith(WORST) else "" for row in rows]
    return columns


def _name(row, path, name):
    """An array's name, with its own only where a step has several."""
    end = "" if name in ("", "input", "output") else f" · {name}"
    return f"{PREFIX[row.part]}{path}{end}"


def _mark(row):
    """A row's verdict in a word."""
    if row.diverges:
        return f"✗ {ORIGINS.get(row.origin, row.origin)}".rstrip()
    return "✓" if row.verdict == MATCH else _verdict(row)


def _line(cells, wide, style):
    """A line of the table; a style is the verdict's, or the whole heading's."""
    made = Text()
    for (title, room), cell in zip(wide.items(), cells):
        right = title in ("error", "local", "limit")
        text = cell.rjust(room) if right else cell.ljust(room)
        heading = style == "bold" or title == "verdict"
        made.append(text + "  ", style=style if heading else "")
    made.rstrip()
    return made


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
    words = ORIGINS.get(row.origin, row.origin)
    return f"{verdict}, {words}" if words else verdict
