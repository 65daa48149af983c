"""What stands once: classes, tables of dtypes, the names of the ports.

Nothing here imports what it looks at; files are read as syntax. A module that
a string names counts as imported, whatever is then done with the string.
"""

import ast
import functools
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PARITY = ROOT / "parity"

@functools.cache
def syntax(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def modules(*folders):
    """{dotted name: path} of every file below these folders."""
    return {".".join(path.relative_to(ROOT).with_suffix("").parts)
            .removesuffix(".__init__"): path
            for folder in folders for path in sorted(folder.rglob("*.py"))}


HARNESS = modules(PARITY)


def code(tree):
    """A file's strings that are no docstrings."""
    prose = {id(node.value) for node in ast.walk(tree)
             if isinstance(node, ast.Expr)}
    return [node.value for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and id(node) not in prose
            and isinstance(node.value, str)]


@functools.cache
def names(tree):
    """What a file imports, and the dotted names in its strings.

    Each as it stands, then without its last part, which may be no module.
    """
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(f"{node.module}.{alias.name}", node.module)
                      for alias in node.names]
    for text in code(tree):
        text = re.sub(r"\bfrom (\S+) import (?=\w)", r"\1.", text)
        found += [(name, name.rpartition(".")[0] * (name.count(".") > 1))
                  for name in re.findall(r"[a-z]\w*(?:\.\w+)+", text)]
    return found


def imported(tree, known=HARNESS):
    """The modules among ``known`` that a file imports or names in a string."""
    for name, above in names(tree):
        if name in known:
            yield name
        elif above in known:
            yield above


def test_ports_are_named_in_one_place():
    """Elsewhere an engine is asked for by the port's name."""
    ours = modules(*FOUR)
    naming = {module for module, path in HARNESS.items() if [
        *imported(syntax(path), ours),
        *(text for text in code(syntax(path))
          if text.startswith(("impl_", "reference_numpy")))]}
    assert naming == {"parity.ports"}


@pytest.mark.parametrize("port", [
    folder.name for folder in sorted(ROOT.glob("impl_*"))])
def test_a_port_names_no_other_part(port):
    """Not in a string either, by which it could be imported."""
    other = re.compile(rf"\b(?!{port}\b)(?:impl_\w+|reference_numpy|parity\w*"
                       r"|benchmarks)\b")
    for path in modules(ROOT / port).values():
        assert not list(filter(other.search, code(syntax(path)))), path


#: The folders that are read side by side: what is called alike in them is.
FOUR = tuple(sorted([ROOT / "reference_numpy", *ROOT.glob("impl_*")]))

#: One peer and one citizen, each written in several frameworks, likewise.
WRITINGS = "benchmarks/peer_*.py", "parity_tests/ports/citizens/*.py"

#: Models that the benches hand to the debugger, each written as a user would
#: write it, alone in its file.
MODELS = ("benchmarks/families/ports/*.py", "benchmarks/sound/[a-z]*_*.py")

#: One interface, and its implementation in the file of each framework.
INTERFACES = {"Runner": "parity/operations"}


#: What makes a class and is given its name first.
MAKERS = {"type", "make_dataclass", "namedtuple", "NamedTuple", "NewType",
          "TypedDict"}


def made(tree):
    """The names of the classes of a file, however they are made."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Call) and node.args[1:] and (
                ast.unparse(node.func).split(".")[-1] in MAKERS):
            if isinstance(node.args[0], ast.Constant):
                yield node.args[0].value


def classes(*folders, within=made):
    """{class: the files in which it stands}."""
    found = {}
    for path in modules(*folders).values():
        for name in within(syntax(path)):
            found.setdefault(name, []).append(str(path.relative_to(ROOT)))
    return found


def at_the_top(tree):
    """The names of a file's classes that stand in nothing else."""
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef)]


def is_model(file):
    """Whether a file is a model of a bench."""
    return any(pathlib.PurePath(file).match(each) for each in MODELS)


def test_a_class_name_exists_once():
    """Small ones inside a test or a lesson's function have no name outside."""
    every = classes(*(ROOT / name for name in (
        "transformer_contract", "parity", "benchmarks")))
    for name, files in classes(ROOT / "lessons", ROOT / "parity_tests",
                               within=at_the_top).items():
        every.setdefault(name, []).extend(files)
    once = {name: {f"the interface in {INTERFACES[name]}" if str(
        pathlib.PurePath(file).parent) == INTERFACES.get(name) else file
        for file in files if not is_model(file)}
        for name, files in every.items()}
    twice = {name: files for name, files in once.items()
             if len(files) > 1 and not any(
                 all(pathlib.PurePath(file).match(each) for file in files)
                 for each in WRITINGS)}
    assert twice == {}


def calls(file, name):
    """{method: its arguments} of what is public of a class in a file."""
    found = next(node for node in syntax(ROOT / file).body
                 if isinstance(node, ast.ClassDef) and node.name == name)
    return {node.name: [each.arg for each in node.args.args]
            for node in found.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", INTERFACES)
def test_implementations_of_an_interface_are_called_alike(name):
    interface, files = None, classes(ROOT / INTERFACES[name])[name]
    for file in files:
        if "Protocol" in (ROOT / file).read_text(encoding="utf-8"):
            interface = calls(file, name)
    assert interface and len(files) > 2
    for file in files:
        mine = calls(file, name)
        assert {each: mine.get(each) for each in interface} == interface, file


def test_no_class_of_the_harness_is_called_as_one_of_the_models():
    assert classes(*FOUR).keys() & classes(ROOT / "parity").keys() == set()


def test_a_mirrored_class_stands_in_one_file():
    """In the readable form; the fast and the native one have their own."""
    for name, files in classes(*FOUR, within=at_the_top).items():
        there = {pathlib.Path(file).name for file in files
                 if not {"fast", "native"} & set(pathlib.Path(file).parts)}
        assert len(there) <= 1, name


def keys(node):
    """The keys of a dict, however it is written."""
    if isinstance(node, ast.Dict):
        return {getattr(key, "value", None) if isinstance(key, ast.Constant)
                else getattr(key, "attr", None) for key in node.keys}
    if isinstance(node, ast.Call):
        return {keyword.arg for keyword in node.keywords}
    return set()


def test_tolerances_and_dtypes_stand_once():
    """No other file has a table by dtype's name."""
    dtypes = {"float64", "float32", "float16", "bfloat16"}
    tables = {module for module, path in HARNESS.items()
              if any(len(dtypes & keys(node)) > 1
                     for node in ast.walk(syntax(path)))}
    assert tables == {"parity.numerics.tolerances", "parity.numerics.dtypes"}
