"""The lessons: plain Python files in cells, run from top to bottom.

A cell begins at a line ``# %%``; one that begins at ``# %% [markdown]`` is
text. So a lesson is a program (``python lessons/01_tokens.py``) and a notebook
in every editor that knows such cells; here it is run cell by cell, and what
each prints and draws is kept.
"""

import ast
import contextlib
import dataclasses
import io
import pathlib
import re
import sys
import tempfile
import traceback

import numpy as np

from parity_io.errors import InputError
from parity_io.files import write_whole
from transformer_contract.shipped import LESSONS
from transformer_contract.steps import read_steps
from parity import ports
from parity.ports import NotChecked
from parity.reading.threads import one_thread

FOLDER = LESSONS

MARK = re.compile(r"# %%(?: \[(markdown)\])?\s*$")

#: The ports that a lesson may use while ``run`` runs it; None for all.
_selection = None

#: Where the pictures of the cell go that is being run; None outside of ``run``.
_pictures = None


#: The first cell of a notebook, which may be opened where nothing is
#: installed. A wheel beside the notebook is taken where there is one.
INSTALL = """\
# Installs the project where it is not yet, as in Colab.
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("parity") is None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--find-links",
         ".", "transformer-parity"], capture_output=True, text=True)
    importlib.invalidate_caches()
    if importlib.util.find_spec("parity") is None:
        print(done.stderr)
        raise SystemExit(
            "transformer-parity could not be installed; connect to a network, "
            "or put its wheel beside this notebook.")
print("transformer-parity is installed.")\
"""


@dataclasses.dataclass(frozen=True)
class Picture:
    """A picture that a cell draws: a PNG, and in words what it shows."""

    png: bytes
    words: str


@dataclasses.dataclass
class Cell:
    """One cell of a lesson.

    Attributes:
        text: its code, or its Markdown.
        line: the number of its first line in the file.
        markdown: whether it is text.
        output: what it printed.
        pictures: what it drew.
    """

    text: str
    line: int
    markdown: bool
    output: str = ""
    pictures: list = dataclasses.field(default_factory=list)


def paths(folder=FOLDER):
    """The lessons' files, in order."""
    return sorted(pathlib.Path(folder).glob("[0-9][0-9]_*.py"))


def title(path):
    """A lesson's first heading."""
    heading = re.search(r"^# # (.+)$", path.read_text("utf-8"), flags=re.M)
    if not heading:
        raise InputError(
            f"{path.name} has no heading; begin it with a Markdown cell "
            "whose first line is '# # Title'.")
    return heading[1]


def cells(path):
    """The Cells of a lesson, not yet run.

    Raises:
        InputError: there is something before the first cell.
    """
    parts, cell_lines = [], None
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        if mark := MARK.match(line):
            cell_lines = []
            parts.append((cell_lines, bool(mark[1])))
        elif cell_lines is not None:
            cell_lines.append((number, line))
        elif line.strip():
            raise InputError(
                f"{path.name}, line {number}, stands in no cell; begin one "
                "with '# %%' above it.")
    return [_cell(*one) for one in parts]


def _cell(lines, markdown):
    """A Cell of numbered lines, without the blank ones around it."""
    while lines and not lines[-1][1].strip():
        lines.pop()
    while lines and not lines[0][1].strip():
        lines.pop(0)
    text = "\n".join(
        re.sub("^# ?", "", line) if markdown else line for _, line in lines)
    return Cell(text, lines[0][0] if lines else 1, markdown)


def run(path, port_names=None, lesson_cells=None):
    """Run a lesson: its Cells, with what each printed; see ``one_by_one``."""
    lesson_cells = lesson_cells or cells(path)
    for _ in one_by_one(path, port_names, lesson_cells):
        pass
    return lesson_cells


def one_by_one(path, port_names=None, lesson_cells=None):
    """Run a lesson: yield (Cell, whether it has run), code before and after.

    A text that is sent in where a Cell has run is run in its place, and yielded
    as such a Cell; after it an error is a Cell's output, for the others may
    expect what was changed.

    Args:
        path: the file.
        port_names: the ports that it may use; by default all that are here.
        lesson_cells: its Cells, if they were read already.
    """
    global _selection
    lesson_cells = lesson_cells or cells(path)
    names = {"__name__": "__main__", "__file__": str(path)}
    before, _selection = _selection, port_names
    changed = False
    try:
        with one_thread(), np.printoptions():  # what a lesson sets is put back
            for cell in lesson_cells:
                text = yield cell, False
                if not cell.markdown:
                    cell.output = _output(cell, path, names, changed)
                    text = yield cell, True
                while text is not None:
                    changed = True
                    cell = Cell(text, 1, False)
                    cell.output = _output(cell, path, names, changed)
                    text = yield cell, True
    finally:
        _selection = before


def _output(cell, path, names, changed):
    """What a cell of code prints, and where the reader changed one, raises."""
    printed = io.StringIO()
    try:
        _execute(cell, path, names, printed)
    except Exception as error:
        if not changed:
            raise
        print(_raised(error, cell, path), file=printed)
    return printed.getvalue().rstrip("\n")


def _raised(error, cell, path):
    """An exception in words, with the line of its cell."""
    words = [f"{type(error).__name__}: {error}".removesuffix(": ")]
    place = next((number for frame, number in reversed(list(
        traceback.walk_tb(error.__traceback__)))
        if frame.f_code.co_filename == str(path)), None)
    lines = cell.text.splitlines()
    if place in range(cell.line, cell.line + len(lines)):
        words += [f"in the line: {lines[place - cell.line].strip()}"]
    if isinstance(error, AssertionError):
        words += ["An assert says what holds of the lesson's own code. Yours "
                  "is another, so that this may be no mistake."]
    return "\n".join(words)


def shown(path, port_names=None):
    """A lesson for a page: its Cells, and in words where it failed, or ""."""
    lesson_cells = cells(path)
    try:
        return run(path, port_names, lesson_cells), ""
    except Exception as error:  # a lesson's own, or a port's
        words = str(error).splitlines() or [""]
        return lesson_cells, f"{type(error).__name__}: {words[0][:200]}"


def _execute(cell, path, names, printed):
    """Run a cell of code, which prints there; an error names the file's line.
    """
    global _pictures
    code = compile("\n" * (cell.line - 1) + cell.text, str(path), "exec")
    before, _pictures = _pictures, cell.pictures
    try:
        with contextlib.redirect_stdout(printed):
            exec(code, names)
    finally:
        _pictures = before


def picture(figure, words):
    """Show a matplotlib Figure of a lesson; ``words`` say what is on it.

    On a page it stands below its code, and so it does in a notebook; a program
    writes it to a file and prints where.
    """
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=144, metadata={"Software": None})
    if _pictures is not None:
        _pictures.append(Picture(png.getvalue(), words))
    elif "ipykernel" in sys.modules:
        from IPython import display
        display.display(display.Image(png.getvalue(), alt=words, width=720))
    else:
        file = pathlib.Path(tempfile.mkdtemp(prefix="lesson-"), "picture.png")
        write_whole(file, png.getvalue())
        print(f"picture: {words} ({file})")


def at_the_spot(engines, file, owner, step, backward=False):
    """Print one numbered step's statement as each of ``engines`` has it.

    ``owner`` is the class or function that it stands in.
    """
    for name in engines:
        code = next(each.code for each in read_steps(ports.folder(name) / file)
                    if (each.owner, each.name) == (owner, step)
                    and each.backward == backward)
        print(f"{name:6} {' '.join(code.split())}")


def in_full(engines, file, function):
    """Print what a function does in each of ``engines``, without docstring."""
    for name in engines:
        text = (ports.folder(name) / file).read_text(encoding="utf-8")
        body = next(node.body for node in ast.parse(text).body
                    if isinstance(node, ast.FunctionDef)
                    and node.name == function)
        print(f"{name}:", *(f"    {ast.get_source_segment(text, one)}"
                            for one in body[1:]), sep="\n")


def notebook(path, out):
    """Write a lesson as a notebook, its cells not yet run.

    Before them stands INSTALL.

    Raises:
        InputError: jupytext is not installed.
    """
    try:
        import jupytext
        import nbformat
    except ImportError:
        raise InputError(
            "a notebook is written by jupytext, which is not installed; "
            "pip install 'transformer-parity[notebook]'.") from None
    made = jupytext.read(path, fmt="py:percent")
    made.cells.insert(0, nbformat.v4.new_code_cell(INSTALL, id="install"))
    made.metadata["kernelspec"] = {
        "name": "python3", "display_name": "Python 3", "language": "python"}
    write_whole(out, jupytext.writes(made, fmt="ipynb"))


def engines_here():
    """Name -> engine of the reference and of each port that can run here.

    What cannot is printed as not checked.
    """
    engines = {"numpy": ports.engine("numpy")}
    for name in ports.usual_ports():
        engine = ports.engine(name)
        if _selection is not None and name not in _selection:
            engine = NotChecked(name, "it was not asked for")
        if isinstance(engine, NotChecked):
            print(f"not checked: {name}, {engine.reason}")
        else:
            engine.set_precision()
            engines[name] = engine
    return engines
