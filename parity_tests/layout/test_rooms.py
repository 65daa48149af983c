"""The rooms of the harness: what may import what, and what stands once.

Nothing here imports what it looks at; files are read as syntax, so that an
import inside a function counts as well.
"""

import ast
import functools
import graphlib
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PARITY = ROOT / "parity"

#: A room may import those above it in this list, and itself.
ROOMS = ("ports", "numerics", "tracing", "matching", "check", "comparison",
         "causes", "differences", "assertions", "runs", "render", "reading",
         "commands", "front door")

#: What stands in no room, for people call it by these names.
FRONT_DOOR = {"__init__", "__main__", "cli", "pytest_plugin"}


@functools.cache
def syntax(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def modules(*folders):
    """{dotted name: path} of every file below these folders."""
    return {".".join(path.relative_to(ROOT).with_suffix("").parts)
            .removesuffix(".__init__"): path
            for folder in folders for path in sorted(folder.rglob("*.py"))}


HARNESS = modules(PARITY)


def imported(tree, known=HARNESS):
    """The modules among ``known`` that a file imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in known else node.module for name in inside]
        else:
            continue
        yield from (name for name in names if name in known)


def room_of(module):
    """The room of a module of the harness."""
    name = (module.split(".") + ["__init__"])[1]
    return "front door" if name in FRONT_DOOR else name


def upward(module, tree):
    """The imports of a module from rooms below its own in the list."""
    here = ROOMS.index(room_of(module))
    return [name for name in imported(tree)
            if ROOMS.index(room_of(name)) > here]


def test_every_file_has_its_room():
    there = {room_of(module) for module in HARNESS}
    assert there == set(ROOMS)


@pytest.mark.parametrize("module", HARNESS)
def test_rooms_import_rooms_above_them(module):
    assert upward(module, syntax(HARNESS[module])) == []


@pytest.mark.parametrize("line", [
    "from parity.check import cases", "import parity.check.cases",
    "def f():\n    from parity.check.cases import values",
    "from parity import cli"])
def test_an_import_from_below_is_seen(line):
    assert upward("parity.numerics.tolerances", ast.parse(line))


def test_there_is_no_circle():
    graph = {module: set(imported(syntax(path))) - {module}
             for module, path in HARNESS.items()}
    graphlib.TopologicalSorter(graph).prepare()
