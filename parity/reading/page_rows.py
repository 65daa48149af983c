"""What stands side by side on a page of the four: rows of pieces, in order.

The reference's order rules; what a port has beside it stands where the port has
it.
"""

import ast
import dataclasses
import re

from parity.reading.sources import ROOT, check_steps, columns, source

#: Keras' steps that other code marks, seen from inside its own layer.
ELSEWHERE = re.compile(r"# Steps? ([\d, and]+) of (\w+)\.")


@dataclasses.dataclass(frozen=True)
class Piece:
    """Some lines of one file.

    Attributes:
        column: whose file it is.
        ranges: (first, last, is it the step's own statement), line numbers
            from 1.
        note: a sentence to stand beside it, or "".
    """

    column: str
    ranges: tuple
    note: str = ""


@dataclasses.dataclass
class PageRow:
    """What stands side by side.

    Attributes:
        kind: "step", "backward", "opening" (of a method that has steps),
            "head" (of a class) or "plain".
        id: its anchor.
        owner: the class or function.
        name: what it is called.
        prose: the reference's docstring, or a port's where it stands alone.
        step: the contract's MarkedStep, for a step of either direction.
        pieces: column -> Piece.
        alone: the only column that has it, or "".
    """

    kind: str
    id: str
    owner: str
    name: str
    prose: str = ""
    step: object = None
    pieces: dict = dataclasses.field(default_factory=dict)
    alone: str = ""


def rows(name, root=ROOT):
    """Every PageRow of a mirrored file, in order.

    Raises:
        InputError: a step stands in the reference and not in a port, or in a
            port and not in the reference.
    """
    check_steps(name, root)
    files = {column: source(column, name, root) for column in columns()}
    reference = files["numpy"]
    page_rows, imports = [], []
    for unit in _merged(*(file.units for file in files.values())):
        if unit == "imports":
            imports = [_plain("plain", "imports", files, {
                c: (s.units[unit].first, s.units[unit].last)
                for c, s in files.items() if unit in s.units})]
            continue
        base = unit.removesuffix("_backward")
        if base != unit and base in reference.units and (
                _has_steps(reference.units[base])):
            continue  # its steps stand with those that they differentiate
        page_rows += _unit_rows(unit, files)
    return page_rows + imports


def _has_steps(unit):
    return any(method.steps for method in unit.methods.values())


def _merged(*several):
    """Names in one order: the first file's, others where they stand."""
    order = list(several[0])
    for names in several:
        place = -1
        for name in names:
            if name in order:
                place = order.index(name)
            else:
                place += 1
                order.insert(place, name)
    return order


def _alone(pieces):
    return next(iter(pieces)) if len(pieces) == 1 else ""


def _plain(kind, name, files, ranges, prose="", owner="", row_id=""):
    pieces = {column: Piece(column, ((*lines, False),))
              for column, lines in ranges.items()}
    return PageRow(kind, row_id or name, owner or name, name, prose, None,
                   pieces, _alone(pieces))


def _unit_rows(name, files):
    units = {c: s.units[name] for c, s in files.items() if name in s.units}
    first = next(iter(units.values()))
    if first.kind == "class":
        yield _plain("head", name, files, {
            c: (u.first, u.last) for c, u in units.items()}, first.prose)
    if first.kind == "constant":
        yield _plain("plain", name, files, {
            c: (u.first, u.last) for c, u in units.items()})
        return
    backward = files["numpy"].units.get(f"{name}_backward")
    later = []
    for method in _merged(
            *(unit.methods for unit in units.values())):
        there = {c: u.methods[method] for c, u in units.items()
                 if method in u.methods}
        one = next(iter(there.values()))
        row_id = name if first.kind == "function" else f"{name}.{one.name}"
        label = one.name
        ranges = {c: m.opening for c, m in there.items()}
        if one.backward:
            later.append(_plain("opening", label, files, ranges, one.prose,
                                name, row_id))
            later += [row for number in one.steps
                      if not _is_forward(number, units["numpy"])
                      for row in _backward_rows(name, number, [first])]
            continue
        if "numpy" not in there and one.steps:
            continue  # shown where its steps stand
        kind = "opening" if one.steps else "plain"
        yield _plain(kind, label, files, ranges, one.prose, name, row_id)
        for number in one.steps:
            yield from _step_rows(name, number, units, files, backward)
    if backward is not None and _has_steps(backward):
        method = backward.methods["call"]
        later.append(_plain(
            "opening", backward.name, files, {"numpy": method.opening},
            method.prose, name, backward.name))
    yield from later


def _step_rows(owner, number, units, files, backward):
    """The row of a step, and that of the step that differentiates it."""
    pieces, step = {}, None
    for column, unit in units.items():
        for name, method in unit.methods.items():
            if method.backward or number not in method.steps:
                continue
            one, statement, behind = method.steps[number]
            step = step or one
            ranges = []
            ours = units["numpy"].methods
            if name not in ours and number == min(method.steps):
                ranges.append((*method.opening, False))
            ranges.append((*statement, True))
            if behind[0] <= behind[1]:
                ranges.append((*behind, False))
            pieces[column] = Piece(column, tuple(ranges))
    for column, file in files.items():
        elsewhere = tuple(_elsewhere(file, owner, number))
        if elsewhere and column in pieces:
            pieces[column] = Piece(
                column, (*elsewhere, (0, 0, False), *pieces[column].ranges),
                "inside")
    yield PageRow("step", f"{owner}-{number}", owner, step.name, "", step,
                  pieces)
    yield from _backward_rows(
        owner, number, [units["numpy"], *([backward] if backward else [])])


def _is_forward(number, unit):
    """Whether a step is the unit's own, and not one that it inherits."""
    return any(number in method.steps for method in unit.methods.values()
               if not method.backward)


def _backward_rows(owner, number, units):
    """The rows of the steps that differentiate a step."""
    for unit in units:
        for method in unit.methods.values():
            if method.backward and number in method.steps:
                one, statement, behind = method.steps[number]
                ranges = [(*statement, True)]
                if behind[0] <= behind[1]:
                    ranges.append((*behind, True))
                yield PageRow("backward", f"{owner}-{number}-backward", owner,
                              one.name, "", one,
                              {"numpy": Piece("numpy", tuple(ranges))})


def _elsewhere(file, owner, number):
    """Lines of a file that show a step which is marked at ``owner``."""
    tree = None
    for place, line in enumerate(file.lines, start=1):
        match = ELSEWHERE.search(line)
        if not match or match[2] != owner:
            continue
        if str(number) not in re.findall(r"\d+", match[1]):
            continue
        tree = tree or ast.parse("\n".join(file.lines))
        name = next((s.name for s in file.steps if s.owner == owner
                     and s.number == number), "")
        for node in ast.walk(tree):
            if (isinstance(node, ast.Assign) and node.lineno > place
                    and node.lineno <= place + 3
                    and name in {getattr(t, "id", "") for t in node.targets}):
                yield node.lineno, node.end_lineno, True
