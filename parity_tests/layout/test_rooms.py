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
ROOMS = ("ports", "targets", "shortage", "numerics", "tracing", "matching",
         "check", "matrix", "originals", "mutation", "comparison", "conversion",
         "causes", "invariants", "differences", "assertions", "runs", "render",
         "reading", "course", "commands", "front door")

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


# What stands once

def code(tree):
    """The words of a file's strings that are no docstrings."""
    prose = {id(node.value) for node in ast.walk(tree)
             if isinstance(node, ast.Expr)}
    return [node.value for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and id(node) not in prose
            and isinstance(node.value, str)]


def test_ports_are_named_in_one_place():
    """Elsewhere an engine is asked for by the port's name."""
    def names(tree):
        ours = modules(*FOUR)
        return [*imported(tree, ours), *(
            text for text in code(tree)
            if text.startswith(("impl_", "reference_numpy")))]
    naming = {module for module, path in HARNESS.items()
              if names(syntax(path))}
    assert naming == {"parity.ports"}


#: The folders that are read side by side: what is called alike in them is.
FOUR = tuple(sorted([ROOT / "reference_numpy", *ROOT.glob("impl_*")]))

#: Three writings of one peer, likewise.
PEERS = {f"benchmarks/peer_{name}.py" for name in ("jax", "keras", "torch")}


def classes(*folders):
    """{class: the files in which it stands, outside of functions}."""
    found = {}
    for path in modules(*folders).values():
        for node in syntax(path).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(
                    str(path.relative_to(ROOT)))
    return found


def test_a_class_name_exists_once():
    every = classes(*(ROOT / name for name in (
        "contract", "parity", "benchmarks", "lessons", "parity_tests")))
    twice = {name: files for name, files in every.items()
             if len(files) > 1 and not set(files) <= PEERS}
    assert twice == {}


def test_a_mirrored_class_stands_in_one_file():
    """In the readable form; the fast one has its own files."""
    for name, files in classes(*FOUR).items():
        there = {pathlib.Path(file).name for file in files
                 if "/fast/" not in file}
        assert len(there) <= 1, name


def test_tolerances_and_dtypes_stand_once():
    """No other file has a table by dtype's name."""
    dtypes = {"float64", "float32", "float16", "bfloat16"}
    tables = {
        module for module, path in HARNESS.items()
        for node in syntax(path).body
        if isinstance(node, ast.Assign) and any(
            len(dtypes & {key.value for key in each.keys
                          if isinstance(key, ast.Constant)}) > 1
            for each in ast.walk(node) if isinstance(each, ast.Dict))}
    assert tables == {"parity.numerics.tolerances", "parity.numerics.dtypes"}
