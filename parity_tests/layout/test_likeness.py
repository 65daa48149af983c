"""How alike the ports are, line by line, where speed once set them apart.

Printed with -s. A framework's own words for the same operation are what the
ports may differ in; how a search or a training step is built is not.
"""

import ast
import difflib
import itertools
import re

import pytest

from parity_tests.support.places import PORTS

FILES = "cache", "search", "sample", "train", "loss"

#: The share of lines that any two ports have in common.
LEAST = 0.7

#: Where a framework's operations live, as its files write it.
PREFIX = re.compile(r"\b(?:np|torch|ops|jnp|mx)\.")
MARKER = re.compile(r"# \[\d+\] ")


def left_out(tree):
    """The numbers of the lines of docstrings and imports."""
    for node in ast.walk(tree):
        docstring = (isinstance(node, ast.Expr)
                     and isinstance(node.value, ast.Constant)
                     and isinstance(node.value.value, str))
        if docstring or isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from range(node.lineno, node.end_lineno + 1)


def lines(path):
    """The code and markers of a file, every framework called alike."""
    text = path.read_text(encoding="utf-8")
    skipped = set(left_out(ast.parse(text)))
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not MARKER.match(line):
            line = line.partition("#")[0].strip()
        if line and number not in skipped:
            yield PREFIX.sub("", line)


@pytest.mark.parametrize("file", FILES)
def test_ports_are_alike(file):
    likeness = {
        f"{one}, {other}": difflib.SequenceMatcher(None, *(
            list(lines(PORTS[port] / f"{file}.py")) for port in (one, other)),
            autojunk=False).ratio()
        for one, other in itertools.combinations(PORTS, 2)}
    print(f"\n{file}: " + "; ".join(
        f"{pair} {share:.2f}" for pair, share in likeness.items()))
    assert min(likeness.values()) > LEAST, likeness


def interface(path):
    """{name: arguments} of what the harness may ask of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        for each in (node.body if isinstance(node, ast.ClassDef) else [node]):
            if isinstance(each, ast.FunctionDef):
                name = (f"{node.name}.{each.name}" if each is not node
                        else each.name)
                yield name, ast.unparse(each.args)


#: What each file of ``targets`` must have, with the same arguments.
INTERFACES = {
    "mixed": {"missing", "products", "MixedEngine.__init__",
              "MixedEngine.run", "MixedEngine.loss_and_gradients",
              "MixedEngine.gradients", "MixedEngine.trainer",
              "MixedEngine.train_step", "MixedTrainer.__init__",
              "MixedTrainer.update"},
    "modes": {"missing", "missing_gradients", "predictor", "differentiator"},
    "mesh": {"MeshEngine.__init__", "MeshEngine.build", "MeshEngine.copies",
             "MeshEngine.predict", "MeshEngine.gradients",
             "MeshEngine.trainer", "MeshEngine.train_step"},
}


@pytest.mark.parametrize("file", INTERFACES)
def test_targets_are_asked_alike(file):
    """How a framework compiles or divides is its own; what it is asked is not.
    """
    found = [dict(interface(path)) for folder in PORTS.values()
             if (path := folder / "targets" / f"{file}.py").is_file()]
    assert len(found) > 1
    for name in INTERFACES[file]:
        assert len({one[name] for one in found}) == 1, name
