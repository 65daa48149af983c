"""The lessons run, say what they leave out, and print what they assert."""

import html
import re
import subprocess
import sys

import pytest

from contract.errors import InputError
from parity import ports
from parity.ports import NotChecked
from parity.reading import lessons, listing

PATHS = lessons.paths()


@pytest.mark.long
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_lesson_runs_in_every_framework_that_is_here(path):
    found = lessons.run(path)
    printed = "\n".join(cell.output for cell in found)
    for name in ports.known_ports():
        absent = isinstance(ports.engine(name), NotChecked)
        assert absent == (f"not checked: {name}," in printed)
        assert absent or re.search(rf"^{name} ", printed, flags=re.M)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_lesson_runs_without_any_framework(path):
    found = lessons.run(path, ())
    printed = "\n".join(cell.output for cell in found)
    for name in ports.known_ports():
        assert f"not checked: {name}, it was not asked for" in printed


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_every_code_prints_or_defines(path):
    """Text comes first, and before each number a text that leads to it."""
    found = lessons.cells(path)
    assert found[0].markdown and not found[1].markdown
    assert sum("assert" in cell.text for cell in found) >= 8
    for cell in found:
        assert cell.text
        if not cell.markdown:
            assert "print(" in cell.text
    for line in path.read_text(encoding="utf-8").splitlines():
        assert len(line) <= 80


def test_there_are_three():
    assert [path.stem for path in PATHS] == [
        "1_attention", "2_text_to_text", "3_porting"]
    assert [lessons.title(path) for path in PATHS] == [
        "Attention, from one head to many", "From text to text",
        "Porting a model, and finding the bug"]


def test_lesson_is_a_program_too():
    ran = subprocess.run(
        [sys.executable, "-c", "from parity.reading import lessons; "
         "import runpy; lessons._selection = (); "
         f"runpy.run_path({str(PATHS[0])!r}, run_name='__main__')"],
        capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "frameworks: numpy" in ran.stdout


def written(tmp_path, text):
    path = tmp_path / "1_lesson.py"
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
