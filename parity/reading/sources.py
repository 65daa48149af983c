"""The four folders as text, cut into pieces that stand side by side.

A page is a mirrored file. It is cut at its classes and functions, these at
their methods, and a method at its step markers; page_rows.py puts the pieces
beside each other.
"""

import ast
import dataclasses
import functools
import re

from parity_io.errors import InputError
from transformer_contract.shipped import PACKAGES
from transformer_contract.steps import read_steps
from parity import ports

ROOT = PACKAGES

#: What a call is called in each framework.
CALLS = {"forward": "call", "__call__": "call", "call": "call"}

#: Files with nothing to be read side by side: the face to the harness, and
#: what only one of the four has.
NOT_SHOWN = {"__init__.py", "engine.py"}

#: The order in which a reader meets the files; others follow by name.
ORDER = ("embedding", "positional", "masks", "layer_norm", "attention",
         "single_head", "feed_forward", "residual", "encoder", "decoder",
         "projection", "transformer", "parts", "loss", "optimizer", "train",
         "cache", "search", "sample", "dropout", "random", "parameters")

#: What the name of a dialect's file begins with: "dialects-norms" is
#: dialects/norms.py.
DIALECT = "dialects-"

TITLES = {"numpy": "NumPy", "torch": "PyTorch", "keras": "Keras",
          "jax": "JAX", "mlx": "MLX"}

#: How a line that a framework forces says so.
FORCED = re.compile(r"# (torch|keras|nnx|mlx): ?(.*)$")

#: Where the reason of a forced line ends, if a comment follows it.
OTHER_WORDS = re.compile(r"# (\[|Steps? [\d, and]+ of )")


def path_of(column, name, root):
    """A column's file; the contract's random numbers are the reference's."""
    above = folder(column)
    if column == "numpy" and name == "random":
        above = "transformer_contract"
    return root / above / f"{name.replace(DIALECT, 'dialects/')}.py"


def columns():
    """The names of the four columns, the reference's first."""
    return ("numpy", *ports.usual_ports())


def title(column):
    """What a column is called."""
    return TITLES.get(column, column)


def folder(column):
    """The folder that a column is read from."""
    return ports.package(column)


@dataclasses.dataclass
class Method:
    """A function or method, cut at its markers.

    Attributes:
        opening: (first, last) of the lines before the first marker, or of all.
        steps: number -> (MarkedStep, statement's lines, lines behind it).
    """

    name: str
    prose: str
    opening: tuple
    steps: dict
    backward: bool


@dataclasses.dataclass
class Unit:
    """A class, a function or an assignment at the top of a file."""

    name: str
    kind: str
    prose: str
    first: int
    last: int
    methods: dict
    docstring: tuple | None = None


class Source:
    """One file, cut into units.

    Attributes:
        lines: its lines.
        prose: its docstring.
        units: name -> Unit, in order.
    """

    def __init__(self, path):
        self.path = path
        text = path.read_text(encoding="utf-8")
        self.lines = text.splitlines()
        tree = ast.parse(text)
        self.prose = ast.get_docstring(tree, clean=False) or ""
        self.docstrings = set()
        try:
            self.steps = read_steps(path)
        except ValueError as error:
            raise InputError(f"{error}; mend the marker.") from None
        self.units = {}
        for node in tree.body:
            self._add(node)

    def _add(self, node):
        name = None
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                name = node.name
            case ast.Assign(targets=[ast.Name(id=name)]):
                pass
            case ast.Import() | ast.ImportFrom():
                name = "imports"
        if name is None:
            return
        first, last = self._first(node), node.end_lineno
        if name in self.units:
            self.units[name].last = last
            return
        kind = {ast.FunctionDef: "function", ast.ClassDef: "class"}.get(
            type(node), "constant")
        prose = ""
        if kind != "constant":
            prose = ast.get_docstring(node) or ""
            self._hide_docstring(node)
        unit = self.units[name] = Unit(
            name, "imports" if name == "imports" else kind, prose, first,
            last, {})
        if kind == "class":
            inside = [item for item in node.body
                      if isinstance(item, ast.FunctionDef)]
            for item in inside:
                self._hide_docstring(item)
                name = CALLS.get(item.name, item.name)
                if name in unit.methods:  # __call__, where a forward is
                    name = item.name
                unit.methods[name] = self._method(item)
            if inside:
                unit.last = self._first(inside[0]) - 1
        elif kind == "function":
            unit.methods["call"] = self._method(node)

    def _first(self, node):
        """A node's first line, with its decorators and comments above."""
        first = min([node.lineno, *(
            d.lineno for d in getattr(node, "decorator_list", ()))])
        while first > 1 and self.lines[first - 2].lstrip().startswith("#"):
            first -= 1
        return first

    def _hide_docstring(self, node):
        """A docstring is shown as prose, not as code."""
        if ast.get_docstring(node) is not None:
            text = node.body[0]
            self.docstrings |= set(range(text.lineno, text.end_lineno + 1))

    def _method(self, node):
        first, last = self._first(node), node.end_lineno
        inside = [s for s in self.steps if first <= s.line <= last]
        steps, opening = {}, (first, last)
        if inside:
            opening = (first, inside[0].line - 1)
        for step, after in zip(inside, [*inside[1:], None]):
            code = step.code.split("\n")
            start = next(i for i in range(step.line, last)
                         if self.lines[i] == code[0]) + 1
            end = start + len(code) - 1
            behind = (end + 1, after.line - 1 if after else last)
            steps[step.number] = step, (step.line + 1, end), behind
        return Method(node.name, ast.get_docstring(node) or "", opening,
                      steps, any(s.backward for s in inside))

    def forward_markers(self):
        """(owner, number) -> MarkedStep, of the forward pass."""
        return {(s.owner, s.number): s for s in self.steps if not s.backward}


def file_names(root=ROOT):
    """The mirrored files, without their suffix, in the reader's order."""
    there = set.intersection(*(
        names_in(root / folder(column)) for column in columns()))
    names = [name for name in ORDER if name in there]
    return [*names, *sorted(there - set(names))]


def names_in(above):
    """The names of the files of a readable form: a set."""
    return {f"{prefix}{path.stem}" for pattern, prefix in (
        ("*.py", ""), ("dialects/*.py", DIALECT))
        for path in above.glob(pattern) if path.name not in NOT_SHOWN}


@functools.cache
def source(column, name, root=ROOT):
    """The Source of a column's file; the same one every time."""
    path = path_of(column, name, root)
    if not path.is_file():
        raise InputError(
            f"{path.relative_to(root)} is missing; every mirrored file has "
            "one of its name in each folder.")
    return Source(path)


def check_steps(name, root=ROOT):
    """Raise InputError where a step stands in one of the four alone."""
    reference = source("numpy", name, root)
    ours = reference.forward_markers()
    for column in columns()[1:]:
        port = source(column, name, root)
        theirs = port.forward_markers()
        for here, there, marks in ((reference, port, ours),
                                   (port, reference, theirs)):
            other = theirs if here is reference else ours
            for key, step in marks.items():
                _same(step, other.get(key), here.path, there.path, root)


def _same(step, other, here, there, root):
    here, there = here.relative_to(root), there.relative_to(root)
    words = f"step {step.number} {step.name!r} of {step.owner}"
    if other is None:
        raise InputError(
            f"{here} marks {words} and {there} does not; mark it in both or "
            "in neither.")
    if (step.name, step.dims, step.text) != (
            other.name, other.dims, other.text):
        raise InputError(
            f"{here} marks {words} otherwise than {there}; let both markers "
            "read the same.")


def visible(file, ranges):
    """The line numbers that a Piece shows, and whether each is the step's.

    Docstrings are prose, markers are headings, and blank lines at either end
    say nothing.
    """
    numbers = []
    for first, last, own in ranges:
        if not first:
            numbers.append((0, False))
        for number in range(first, last + 1):
            if not number or number in file.docstrings:
                continue
            if re.match(r"\s*# \[\d+'?\]", file.lines[number - 1]):
                continue
            numbers.append((number, own))
    while numbers and not (
            numbers[0][0] and file.lines[numbers[0][0] - 1].strip()):
        numbers.pop(0)
    while numbers and not (
            numbers[-1][0] and file.lines[numbers[-1][0] - 1].strip()):
        numbers.pop()
    return numbers


def forward_name(root, owner, number):
    """The name of the forward step of an owner, or None."""
    for name in file_names(root):
        step = source("numpy", name, root).forward_markers().get(
            (owner, number))
        if step:
            return step.name
    return None
