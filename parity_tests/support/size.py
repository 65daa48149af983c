"""How large this project is, beside what it was: the tables of docs/size.md.

    python -m parity_tests.support.size docs/size.md COMMIT

measures that commit and what is checked out, both alike, and writes the tables
between the page's comments; the words around them stay. Radon's grades need
``pip install radon``.
"""

import ast
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from benchmarks.texts import replace_between
from parity_tests.support.places import ROOT

#: What each package was called before.
EARLIER = {"contract": "transformer_contract"}

COMMANDS = """
from typer.main import get_command
from parity.cli import app
commands = get_command(app).commands.values()
print(len(commands), sum(len(one.params) for one in commands))
"""


def python_files(tree):
    """{path below a folder: its text} of what git has there."""
    return {str(path.relative_to(tree)): path.read_text("utf-8")
            for path in sorted(tree.rglob("*.py"))}


def lines(files, depth, within=""):
    """{folder: (files, lines)}, of the first so many parts of each path."""
    found = collections.defaultdict(lambda: [0, 0])
    for path, text in files.items():
        parts = path.split("/")
        if path.startswith(within) and len(parts) > depth:
            parts[0] = EARLIER.get(parts[0], parts[0])
            row = found["/".join(parts[:depth]) + "/"]
            row[0] += 1
            row[1] += text.count("\n")
    return found


def one_importer(files):
    """The modules of parity/ that one other file, no test's, imports."""
    modules = {path.removesuffix(".py").replace("/", ".") for path in files
               if path.startswith("parity/")
               and not path.endswith("__init__.py")}
    users = collections.defaultdict(set)
    for path, text in files.items():
        if path.startswith("parity_tests/"):
            continue
        for node in ast.walk(ast.parse(text)):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module, *(f"{node.module}.{alias.name}"
                                        for alias in node.names)]
            elif isinstance(node, ast.Constant):
                names = [node.value]
            for name in modules.intersection(
                    name for name in names if isinstance(name, str)):
                users[name].add(path)
    return sum(len(users[name] - {name.replace(".", "/") + ".py"}) == 1
               for name in modules)


def said(tree, *words):
    """What Python prints in a tree; "" where it fails."""
    return subprocess.run(
        [sys.executable, *words], cwd=tree, text=True, capture_output=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join((
            str(tree), os.environ.get("PYTHONPATH", "")))}).stdout


def tests(tree):
    """{folder: how many tests pytest collects there}."""
    words = said(tree, "-m", "pytest", "parity_tests", "--collect-only")
    return collections.Counter(
        "/".join(line.split("/")[:2]) + "/"
        for line in re.findall(r"^(parity_tests/\S+?)(?:::|: \d)", words, re.M))


def measured(tree):
    """Every figure of a tree, by name."""
    files = python_files(tree)
    grades = json.loads(said(
        tree, "-m", "radon", "cc", "-j", "-n", "D", "parity",
        "transformer_contract", "contract", "parity_io") or "{}")
    commands = (said(tree, "-c", COMMANDS).split() or ["–", "–"])
    collected = tests(tree)
    return {
        "folders": lines(files, 1), "parity": lines(files, 2, "parity/"),
        "tests": lines(files, 2, "parity_tests/"), "collected": collected,
        "figures": {
            "modules of `parity/` that one file alone imports":
                one_importer(files),
            "blocks of radon's grade D or worse": sum(
                map(len, grades.values())) or "–",
            "commands": commands[0], "options": commands[1],
            "tests that pytest collects": f"{collected.total():,}"}}


def table(titles, rows):
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (
        titles, ["---", *["---:"] * (len(titles) - 1)], *rows)) + "\n"


def size(before, after, name):
    """The rows of one kind of folder, its sum first."""
    folders = sorted({*before[name], *after[name]})
    cells = [[each, *(f"{cell:,}" if cell else "–" for found in (before, after)
                      for cell in found[name].get(each, (0, 0)))]
             for each in folders]
    sums = [sum(found[name][each][i] for each in folders)
            for found in (before, after) for i in (0, 1)]
    return [["**all**", *(f"{each:,}" for each in sums)], *cells]


def tables(before, after):
    """What stands between the page's comments."""
    titles = ["folder", "files before", "lines before", "files now",
              "lines now"]
    counted = [[folder, *(f"{found['collected'][folder]:,}"
                          for found in (before, after))]
               for folder in sorted({*before["collected"],
                                     *after["collected"]})]
    return "\n".join([
        table(["", "before", "now"], [
            [name, value, after["figures"][name]]
            for name, value in before["figures"].items()]),
        *(table(titles, size(before, after, name))
          for name in ("folders", "parity", "tests")),
        table(["tests", "before", "now"], counted)])


def main(page, commit):
    """Write the tables of a page."""
    with tempfile.TemporaryDirectory() as folder:
        trees = []
        for name, each in (("before", commit), ("now", "HEAD")):
            tree = pathlib.Path(folder, name)
            tree.mkdir()
            archive = subprocess.run(["git", "archive", each], cwd=ROOT,
                                     stdout=subprocess.PIPE, check=True)
            subprocess.run(["tar", "-x"], cwd=tree, input=archive.stdout,
                           check=True)
            trees.append(tree)
        made = tables(*map(measured, trees))
    replace_between(page, "sizes", made.rstrip())


if __name__ == "__main__":
    main(*sys.argv[1:])
