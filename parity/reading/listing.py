"""Lines of Python as HTML, highlighted by Pygments."""

import functools

from markupsafe import Markup, escape
from pygments.lexers import PythonLexer
from pygments.token import Comment, Token

from parity.reading import plain_code, sources

#: Pygments' token types by the few classes that the style sheet colours.
CLASSES = ((Comment, "c"), (Token.Keyword, "k"), (Token.Literal.String, "s"),
           (Token.Literal.Number, "m"), (Token.Name.Function, "f"),
           (Token.Name.Class, "f"), (Token.Name.Decorator, "f"),
           (Token.Operator.Word, "k"))

FORCES = {"torch": "PyTorch", "keras": "Keras", "nnx": "Flax NNX",
          "mlx": "MLX"}


#: Names that have the colour that they have in a formula.
ROLES = {"query": "role-q", "key": "role-k", "value": "role-v"}


@functools.cache
def _class(kind):
    return next((name for above, name in CLASSES if kind in above), "")


#: A line of code.
OWN = Markup('<span class="{}" style="--i:{}">{}</span>')


@functools.cache
def tokens(file):
    """A list for each line of a Source: (class, text) pairs."""
    return classed("\n".join(file.lines) + "\n")


def highlighted(text):
    """Python by itself as HTML."""
    return Markup("\n").join(_html(line, 0) for line in classed(text))


def classed(text):
    """A list for each line of Python: (class, text) pairs."""
    lines: list = [[]]
    for kind, value in PythonLexer(stripnl=False).get_tokens(text):
        for i, part in enumerate(value.split("\n")):
            if i:
                lines.append([])
            if part:
                lines[-1].append((_class(kind), part))
    return lines


def _html(line, width):
    """A line without its first ``width`` characters, which are spaces."""
    spans = []
    for name, text in line:
        name = name or ROLES.get(text, "")
        if width:
            gone = min(width, len(text))
            text, width = text[gone:], width - gone
            if not text:
                continue
        spans.append(Markup('<span class="{}">{}</span>').format(name, text)
                     if name else escape(text))
    return Markup("").join(spans)


def _margin(file, numbers):
    """How far all lines up to the next gap are indented."""
    margins = []
    for number, _ in numbers:
        if not number:
            break
        text = file.lines[number - 1]
        if text.strip():
            margins.append(len(text) - len(text.lstrip()))
    return min(margins, default=0)


def steps_lines(file, ranges):
    """{line: (class, text) pairs of each that stands there instead}.

    Of the statements of steps, whose recording is taken off; but not of one of
    the backward pass, nor of one beside which a framework's reason stands.
    """
    found: dict = {}
    for first, last, own in ranges:
        lines = file.lines[first - 1:last]
        if own and not any("# " in line for line in lines):
            instead = plain_code.plain(file, first, last)
            if instead != lines:
                found |= {number: [] for number in range(first, last + 1)}
                found[first] = classed("\n".join(instead)) if instead else []
    return found


def listing(file, ranges):
    """The lines of a Piece as HTML, and what a framework forces there.

    Returns:
        Markup, and a list of (framework, reason).
    """
    numbers = sources.visible(file, ranges)
    lines, reasons, until = [], [], 0
    instead = steps_lines(file, ranges)
    for place, (number, own) in enumerate(numbers):
        if place == 0 or not number:
            margin = _margin(file, numbers[place + (not number):])
        if not number:
            lines.append(
                Markup('<span class="gap" aria-hidden="true">⋮</span>'))
            continue
        text = file.lines[number - 1]
        if number in instead:
            for line in instead[number]:
                indent = len("".join(part for _, part in line))
                indent -= len("".join(part for _, part in line).lstrip())
                lines.append(OWN.format(
                    "l own", indent - margin + 4, _html(line, margin)))
            continue
        indent = len(text) - len(text.lstrip()) - margin if text.strip() else 0
        forced = sources.FORCED.search(text)
        if forced:
            reason, more = forced[2], number
            until = number
            if text.lstrip().startswith("#"):
                while file.lines[more].lstrip().startswith("# "):
                    if sources.OTHER_WORDS.search(file.lines[more]):
                        break
                    reason += " " + file.lines[more].lstrip()[2:]
                    more += 1
                until = more + 1
            entry = FORCES[forced[1]], reason
            if entry not in reasons:
                reasons.append(entry)
        names = ["l", *(["own"] if own else []),
                 *(["forced"] if number <= until else [])]
        lines.append(OWN.format(
            " ".join(names), indent + 4,
            _html(tokens(file)[number - 1], margin) or " "))
    return Markup("\n").join(lines), reasons
