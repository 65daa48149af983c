"""The lessons run, say what they leave out, and print what they assert."""

import contextlib
import html
import io
import json
import multiprocessing
import os
import pathlib
import re
import sys
import time

import pytest

from parity_io.errors import InputError
from transformer_contract.shipped import ROOT
from parity import ports
from parity import compiled
from parity.ports import NotChecked
from parity.commands import lesson
from parity.reading import (
    lessons, listing, prebuild, reference_pages, slides)
from parity.render import terminal
from parity_tests.support.commands import invoke
from parity_tests.support.processes import printed, python

PATHS = lessons.paths()


@pytest.mark.long(12)
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_lesson_runs_in_every_framework_that_is_here(path):
    found = lessons.run(path)
    printed = "\n".join(cell.output for cell in found)
    for name in ports.usual_ports():
        absent = isinstance(ports.engine(name), NotChecked)
        assert absent == (f"not checked: {name}," in printed)
        assert absent or re.search(rf"^{name} ", printed, flags=re.M)


@pytest.mark.parametrize("path", [
    path if path in PATHS[:2] else pytest.param(path, marks=pytest.mark.long)
    for path in PATHS], ids=lambda path: path.stem)
def test_lesson_runs_without_any_framework(path):
    found = lessons.run(path, ())
    printed = "\n".join(cell.output for cell in found)
    for name in ports.usual_ports():
        assert f"not checked: {name}, it was not asked for" in printed
    for picture in (each for cell in found for each in cell.pictures):
        assert picture.png.startswith(b"\x89PNG") and picture.words


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_every_code_prints_or_defines(path):
    """Text comes first, and before each number a text that leads to it."""
    found = lessons.cells(path)
    assert found[0].markdown and not found[1].markdown
    assert sum("assert" in cell.text for cell in found) >= 8
    for cell in found:
        assert cell.text
        if not cell.markdown:
            assert "print(" in cell.text or "at_the_spot(" in cell.text
    for line in path.read_text(encoding="utf-8").splitlines():
        assert len(line) <= 80


def test_slides_for_each_lesson():
    """Their minutes are the lesson's own, and those that the course names."""
    decks = slides.read()
    table = (lessons.FOLDER / "README.md").read_text(encoding="utf-8")
    assert [(one.number, one.title, one.minutes) for one in decks] == [
        (int(path.stem[:2]), title, int(minutes)) for path in PATHS
        for title, minutes in re.findall(
            rf"^\| {int(path.stem[:2])} \| (.*?) \| (\d+) \|", table,
            flags=re.M)]
    for deck, path in zip(decks, PATHS):
        assert re.search(rf"\*{deck.minutes} minutes\.",
                         lessons.cells(path)[0].text)
        assert 6 <= len(deck.slides) <= 8
        wanted = [number for one in deck.slides for number in one.pictures]
        drawn = path.read_text("utf-8").count("lessons.picture(")
        assert wanted == list(range(1, drawn + 1))
        for one in deck.slides:
            assert len(one.shown.splitlines()) <= 9 and one.notes


@pytest.mark.parametrize("text, words", [
    ("words\n", "has no heading"),
    ("# 1. One\n\n## Two\n\nwords\n\n> notes\n", "has no minutes"),
    ("# 1. One\n\n## Two (5 min)\n\nwords\n", "has no notes")])
def test_a_slide_that_lacks_something_is_refused(tmp_path, text, words):
    (tmp_path / "slides").mkdir()
    (tmp_path / "slides" / "01.md").write_text(text)
    with pytest.raises(InputError, match=words):
        slides.read(tmp_path)


def test_their_numbers_and_titles():
    numbers = [int(path.stem[:2]) for path in PATHS]
    assert numbers == sorted(set(numbers))
    listed = invoke("lesson")
    assert listed.exit_code == 0
    for number, path in zip(numbers, PATHS):
        assert f"{number:2}  {lessons.title(path)}\n" in listed.output
    assert "45 minutes · exercises 3.1, 3.2, 3.3 · " in listed.output


SMALL = """# %% [markdown]
# # Title
# %%
x = 6 * 7
print(x)
# %% [markdown]
# ## Then
# %%
print("later")
"""


def test_a_lesson_shows_its_code_and_what_is_next(tmp_path, monkeypatch):
    monkeypatch.setattr(lessons, "paths", lambda: [
        written(tmp_path, SMALL), tmp_path / "02_b.py"])
    told = invoke("lesson", 1).output
    assert "# Title\n\n    x = 6 * 7\n    print(x)\n\n42\n\n## Then" in told
    assert "parity exercise 1.1" in told
    assert told.endswith("Next: parity lesson 2\n")


@pytest.mark.parametrize("length, margin", [(76, 4), (78, 2), (90, 0)])
def test_no_code_is_wrapped_for_its_margin(monkeypatch, length, margin):
    monkeypatch.setenv("COLUMNS", "80")
    assert lesson._margin("x" * length + "\nx") == margin * " "


@pytest.mark.parametrize("typed, later", [("\n", True), ("q\n", False)])
def test_where_a_person_sits_it_waits(tmp_path, monkeypatch, typed, later):
    path = written(tmp_path, SMALL)
    monkeypatch.setattr("builtins.input", lambda words: typed)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert lesson._run(path, None, True) is later
    assert ("later" in out.getvalue()) is later


@pytest.mark.skipif(os.name != "posix", reason="its editor is sed")
@pytest.mark.parametrize("editor, words", [
    ("sed -i s/6/5/", "    x = 5 * 7\n    print(x)\n\n35\n"),
    ("sed -i s/print.*/y/", "NameError: name 'y' is not defined"),
    ("true", "42\n\nNothing was changed.\n\n## Then"),
    ("false", "the editor 'false' cannot be used"),
    ("nowhere-at-all", "name another in the variable EDITOR")])
def test_a_reader_changes_the_code(tmp_path, monkeypatch, editor, words):
    """It runs in place of the lesson's, which then goes on."""
    typed = iter("c\n")
    monkeypatch.setattr("builtins.input", lambda words: next(typed))
    monkeypatch.setenv("VISUAL", editor)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert lesson._run(written(tmp_path, SMALL), None, True)
    assert words in out.getvalue() and "42" in out.getvalue()
    assert out.getvalue().endswith('    print("later")\n\nlater\n\n')


def test_what_was_changed_is_what_later_code_has(tmp_path):
    """And what raises then is told, for it may expect the lesson's own."""
    path = written(tmp_path, "# %%\nx = 1\n# %%\nassert x == 1\n# %%\n"
                   "print(x)\n")
    running = lessons.one_by_one(path)
    next(running), next(running)
    changed, ran = running.send("x = 2")
    assert ran and changed.text == "x = 2"
    assert [cell.output for cell, ran in running if ran] == [
        "AssertionError\nin the line: assert x == 1\nAn assert says what holds "
        "of the lesson's own code. Yours is another, so that this may be no "
        "mistake.", "2"]


def test_what_was_printed_before_an_error_is_shown(tmp_path):
    path = written(tmp_path, "# %%\nx = 1\n# %%\nprint('x is', x)\nx / 0\n")
    running = lessons.one_by_one(path)
    next(running), next(running)
    running.send("x = 2")
    told = [cell.output for cell, ran in running if ran]
    assert told == ["x is 2\nZeroDivisionError: division by zero\n"
                    "in the line: x / 0"]


def test_who_waits_is_told_that_code_runs(tmp_path, monkeypatch):
    """On the line that what it prints then takes."""
    monkeypatch.setattr(lesson, "SILENT", 0.01)
    monkeypatch.setattr("builtins.input", lambda words: "")
    path = written(tmp_path, "# %% [markdown]\n# # A\n# %%\nimport time\n"
                   "time.sleep(0.5)\nprint('done')\n")
    for stop in True, False:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert lesson._run(path, None, stop)
        assert ("running …\r" in out.getvalue()) is stop
        assert out.getvalue().endswith("done\n\n")


def test_an_editor_is_looked_for(monkeypatch):
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("shutil.which", lambda name: name == "vi")
    assert lesson.editor() == ["vi"]
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(InputError, match="EDITOR=nano"):
        lesson.editor()


def test_a_lesson_as_a_notebook(tmp_path):
    """Its cells are those of the file, and a file that opens as one."""
    pytest.importorskip("jupytext")
    import nbformat
    file = tmp_path / "lesson.ipynb"
    done = invoke("lesson", 1, "--notebook", file)
    assert done.exit_code == 0, done.output
    made = nbformat.read(file, as_version=4)
    nbformat.validate(made)
    cells = lessons.cells(PATHS[0])
    first, *others = made.cells
    assert (first.cell_type, first.source) == ("code", lessons.INSTALL)
    assert [cell.source for cell in others] == [cell.text for cell in cells]
    assert [cell.cell_type == "markdown" for cell in others] == [
        cell.markdown for cell in cells]
    assert json.loads(file.read_text("utf-8"))["metadata"]["kernelspec"]
    done = invoke("lesson", 1, "--notebook", file)
    assert done.exit_code == 2 and "is there already" in done.output
    done = invoke("lesson", 1, "--notebook", tmp_path / "b.ipynb",
                  "--pictures", tmp_path)
    assert done.exit_code == 2 and "draws its own" in done.output


@pytest.mark.long(24)
@pytest.mark.parametrize("path", PATHS[:2], ids=lambda path: path.stem)
def test_a_notebook_runs_in_a_kernel(path, tmp_path, monkeypatch):
    """Each code says something there, draws its pictures, and asserts.

    The others have the same cells as files, which run as programs above.
    """
    for name in "jupytext", "ipykernel":
        pytest.importorskip(name, reason=f"not checked: {name} is not here")
    nbclient = pytest.importorskip(
        "nbclient", reason="not checked: nbclient is not here")
    import nbformat
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (
        str(ROOT), os.environ.get("PYTHONPATH")))))
    file = tmp_path / "lesson.ipynb"
    lessons.notebook(path, file)
    made = nbformat.read(file, as_version=4)
    nbclient.NotebookClient(
        made, timeout=600, kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}}).execute()
    codes = [cell for cell in made.cells if cell.cell_type == "code"]
    assert all(cell.outputs for cell in codes)
    drawn = sum("image/png" in output.get("data", {})
                for cell in codes for output in cell.outputs)
    assert drawn == sum("lessons.picture(" in cell.source for cell in codes)
    assert not any(output.get("name") == "stderr"
                   for cell in codes for output in cell.outputs)


def test_the_first_cell_of_a_notebook(tmp_path):
    """It installs nothing that is there, and says what it cannot install."""
    def ran(*options):
        return python(*options, "-c", lessons.INSTALL, here=tmp_path,
                      PIP_NO_INDEX="1")
    done = ran()
    assert done.returncode == 0 and done.stdout == (
        "transformer-parity is installed.\n")
    done = ran("-I", "-S")  # as where nothing is installed
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith(
        "transformer-parity could not be installed; connect to a network")


def test_without_jupytext_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jupytext", None)
    done = invoke("lesson", 1, "--notebook", tmp_path / "lesson.ipynb")
    assert done.exit_code == 2 and "[notebook]" in done.output
    assert list(tmp_path.iterdir()) == []


def test_pictures_are_kept_where_they_are_wanted(tmp_path, monkeypatch):
    monkeypatch.setattr(lessons, "paths", lambda: [written(
        tmp_path, "# %% [markdown]\n# # Title\n# %%\n"
        "from parity.reading import lessons\n"
        "from parity.render import figures\n"
        "figure, axis = figures.subplots()\n"
        "lessons.picture(figure, 'an empty axis')\n")])
    told = invoke("lesson", 1).output
    assert "[picture: an empty axis; --pictures FOLDER keeps it]" in told
    folder = tmp_path / "pictures"
    done = invoke("lesson", 1, "--pictures", folder)
    assert done.exit_code == 0 and "01_lesson_1.png" in done.output
    assert (folder / "01_lesson_1.png").read_bytes().startswith(b"\x89PNG")
    assert invoke("lesson", "--pictures", folder).exit_code == 2
    file = folder / "01_lesson_1.png"
    assert invoke("lesson", 1, "--pictures", file).exit_code == 2


@pytest.mark.long(4)
def test_lesson_is_a_program_too():
    assert "frameworks: numpy" in printed(
        "-c", "from parity.reading import lessons; "
        "import runpy; lessons._selection = (); "
        f"runpy.run_path({str(PATHS[0])!r}, run_name='__main__')")


def written(tmp_path, text):
    path = tmp_path / "01_lesson.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_cells_and_their_outputs(tmp_path):
    path = written(tmp_path, "# %% [markdown]\n# # Title\n#\n# Text.\n\n"
                   "# %%\nx = 1\nprint(x)\n# %%\nprint(x + 1)\n")
    found = lessons.run(path)
    assert [cell.markdown for cell in found] == [True, False, False]
    assert found[0].text == "# Title\n\nText."
    assert [cell.output for cell in found] == ["", "1", "2"]
    assert lessons.title(path) == "Title"


def test_an_error_names_the_line_of_the_file(tmp_path):
    path = written(tmp_path, "# %%\nprint(1)\n\n# %%\n\nassert 1 == 2, 'so'\n")
    with pytest.raises(AssertionError) as caught:
        lessons.run(path)
    assert caught.traceback[-1].lineno + 1 == 6
    found, problem = lessons.shown(path)
    assert problem == "AssertionError: so"
    assert [cell.output for cell in found] == ["1", ""]


def test_what_stands_in_no_cell_is_told(tmp_path):
    with pytest.raises(InputError, match="line 1, stands in no cell"):
        lessons.cells(written(tmp_path, "x = 1\n"))
    with pytest.raises(InputError, match="has no heading"):
        lessons.title(written(tmp_path, "# %%\nx = 1\n"))


def test_highlighted_code_is_the_code():
    for path in PATHS:
        for cell in lessons.cells(path):
            shown = re.sub(r"<[^>]*>", "", listing.highlighted(cell.text))
            assert html.unescape(shown).rstrip("\n") == cell.text


def test_a_lesson_run_ahead_is_the_same(tmp_path, monkeypatch):
    """Also when the process that ran it is gone, and on one core."""
    path = tmp_path / "01_one.py"
    path.write_text("# %% [markdown]\n# # One\n\n# %%\nprint(6 * 7)\n",
                    encoding="utf-8")
    here = lessons.shown(path, ())
    assert here[0][1].output == "42"
    with prebuild.running((), [path]) as call:
        assert call(lessons.shown, path, ()) == here
        text = reference_pages.differences_text
        assert call(text, ()) == text(())
    path.write_text(path.read_text() + "import time; time.sleep(9)\n")
    with prebuild.running((), [path]) as call:
        for process in multiprocessing.active_children():
            process.kill()
        path.write_text("# %%\nprint(42)\n", encoding="utf-8")
        assert call(lessons.shown, path, ())[0][0].output == "42"
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    monkeypatch.setattr(
        prebuild.concurrent.futures, "ProcessPoolExecutor", None)
    with prebuild.running((), [path]) as call:
        assert call(lessons.shown, path, ())[0][0].output == "42"


def test_no_lesson_runs_on_when_the_pages_are_given_up(tmp_path):
    path = tmp_path / "01_one.py"
    path.write_text("# %%\nimport time; time.sleep(600)\n", encoding="utf-8")
    before = set(multiprocessing.active_children())
    with contextlib.suppress(ValueError), prebuild.running((), [path]):
        started = set(multiprocessing.active_children()) - before
        raise ValueError
    assert started
    # Not joined: the pool's own thread does so, and of two that wait for one
    # process the second is told that it is still there.
    end = time.monotonic() + 60
    while any(process.is_alive() for process in started):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_what_is_compiled_is_shared_and_no_trace_is_left(
        tmp_path, monkeypatch):
    for name in (compiled.KEPT, *compiled.ALL):
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    with compiled.once("parity-read-"):
        folder = pathlib.Path(os.environ[compiled.KEPT])
        assert folder.is_dir() and os.environ.items() >= compiled.ALL.items()
    assert os.environ == before
    assert not folder.exists() or folder == pathlib.Path(sys.prefix, "jax")
    (tmp_path / "jax").mkdir()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with compiled.once("parity-read-"):
        assert os.environ[compiled.KEPT] == str(tmp_path / "jax")
    monkeypatch.setenv(compiled.KEPT, "mine")
    with compiled.once("parity-read-"):
        assert os.environ[compiled.KEPT] == "mine"


@pytest.mark.parametrize("width", [40, 60, 200])
def test_text_is_cut_between_words_and_formulas_stay(monkeypatch, width):
    text = ("# A title\n\nAttention lets each word of a sentence look at all\n"
            "the others and take from each what it needs.\n\n"
            "    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V\n\n"
            "- **3.1** Equation 1, for any number of queries and keys.\n"
            "- **3.2** A softmax.\n")
    monkeypatch.setattr(terminal.sys.stdout, "isatty", lambda: True,
                        raising=False)
    monkeypatch.setattr(terminal.shutil, "get_terminal_size",
                        lambda: os.terminal_size((width, 50)))
    told = terminal.prose(text)
    assert told.split() == text.split()
    lines = told.split("\n")
    assert "    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V" in lines
    assert lines[0] == "# A title" and "- **3.2** A softmax." in lines
    assert all(len(line) < width for line in lines if line[:4] != "    ")
    if width == 200:
        assert told == text
