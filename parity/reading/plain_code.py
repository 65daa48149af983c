"""A step's code without what only records it, for a page.

``scores = tap(self, "scores", self.score(query, key, start))`` is read as
``scores = query @ key.mT / self.divisor``: the tap, and the reference's note in
its cache, are taken off, and a method that is one expression of the same names
is put in its place.
"""

import ast
import dataclasses
import textwrap

#: What notes a value in the ports, and the reference's note of one.
TAP, NOTES = "tap", "c"

#: As long may a line be in which a method's expression stands.
LONGEST = 76


@dataclasses.dataclass(frozen=True)
class Replacement:
    """Text between two offsets that is replaced."""

    start: int
    end: int
    text: str


def plain(file, first, last):
    """The lines of a step's own statement, as a reader needs them.

    Args:
        file: a sources.Source.
        first, last: its lines, from 1.
    """
    lines = file.lines[first - 1:last]
    text = textwrap.dedent("\n".join(lines))
    margin = len(lines[0]) - len(lines[0].lstrip())
    try:
        for edits in (untapped, unnoted):
            text = applied(text, edits(ast.parse(text), text))
        inlined = applied(text, called(ast.parse(text), text, methods(
            file, first)))
    except SyntaxError:  # a piece of a statement
        return lines
    if max(map(len, inlined.split("\n"))) + margin <= LONGEST:
        text = inlined
    if text == textwrap.dedent("\n".join(lines)):
        return lines
    one = ast.parse(text).body[0]
    if (isinstance(one, ast.Assign)  # what is left says nothing
            and ast.dump(one.targets[0], False).replace("Store", "Load")
            == ast.dump(one.value, False)):
        return []
    text = joined(text, LONGEST - margin)
    return textwrap.indent(text, " " * margin).split("\n")


def offset(text, line, column):
    """Where a line and a column, in bytes, of an ast stand in a text."""
    before = text.split("\n")[:line]
    ahead = len(before[-1].encode()[:column].decode())
    return sum(len(one) + 1 for one in before[:-1]) + ahead


def span(text, node):
    """(start, end) of a node in a text."""
    return (offset(text, node.lineno, node.col_offset),
            offset(text, node.end_lineno, node.end_col_offset))


def untapped(tree, text):
    """Yield a Replacement for each outermost tap: the value alone."""
    for node in ast.walk(tree):
        if (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
                and node.func.id == TAP and len(node.args) == 3):
            value = node.args[2]
            start, end = span(text, value)
            moved = value.col_offset - node.col_offset
            yield Replacement(
                *span(text, node), shifted(text[start:end], moved))


def unnoted(tree, text):
    """Yield a Replacement for each note among several targets."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) > 1:
            for target, after in zip(
                    node.targets, [*node.targets[1:], node.value]):
                if (isinstance(target, ast.Subscript)
                        and getattr(target.value, "id", "") == NOTES):
                    yield Replacement(
                        span(text, target)[0], span(text, after)[0], "")


def called(tree, text, known):
    """Yield a Replacement for each method that is one expression.

    Of the same names as it is given.

    Args:
        known: {name: (names of its parameters, the expression)}.
    """
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and getattr(node.func.value, "id", "") == "self"
                and not node.keywords and node.func.attr in known):
            continue
        names, expression = known[node.func.attr]
        if [getattr(one, "id", None) for one in node.args] == names:
            whole = any(node is getattr(one, "value", None)
                        for one in ast.walk(tree)
                        if isinstance(one, (ast.Assign, ast.Return)))
            yield Replacement(
                *span(text, node),
                expression if whole else f"({expression})")


def methods(file, line):
    """{name: (parameters, expression)} of the class that a line stands in."""
    tree = ast.parse("\n".join(file.lines))
    found = {}
    for kind in tree.body:
        if (not isinstance(kind, ast.ClassDef)
                or not kind.lineno <= line <= kind.end_lineno):
            continue
        for one in kind.body:
            if not isinstance(one, ast.FunctionDef):
                continue
            body = one.body[ast.get_docstring(one) is not None:]
            if len(body) == 1 and isinstance(body[0], ast.Return) and (
                    body[0].value is not None):
                names = [each.arg for each in one.args.args][1:]
                found[one.name] = names, ast.unparse(body[0].value)
    return found


def shifted(text, by):
    """Text whose lines behind the first stand so many columns further left.

    No further than four columns behind the statement's own first.
    """
    first, *rest = text.split("\n")
    free = min((len(line) - len(line.lstrip()) for line in rest), default=0)
    by = max(0, min(by, free - 4))
    return "\n".join([first, *(line[by:] for line in rest)])


def joined(text, longest):
    """A statement on one line, where it has room and no comment there."""
    parts = [line.strip() for line in text.split("\n")]
    whole = parts[0]
    for part in parts[1:]:
        whole += part if whole[-1] in "([{" or part[0] in ")]}" else f" {part}"
    return whole if len(whole) <= longest and "#" not in text else text


def applied(text, edits):
    """A text with its Edits, of which none overlaps another that is kept."""
    done = len(text)
    for edit in sorted(edits, key=lambda one: (one.end, -one.start),
                       reverse=True):
        if edit.end <= done:
            text = text[:edit.start] + edit.text + text[edit.end:]
            done = edit.start
    return text
