"""The command ``parity lesson``: a lesson, with what its cells print here."""

import contextlib
import itertools
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
from typing import Annotated, Optional

import typer

from parity_io.errors import InputError
from parity_io.files import as_input_error, write_whole
from parity.commands.shell import told_plainly
from parity.render import terminal

#: What a reader types between two sections.
QUIT, CHANGE = "q", "c"

#: How far code is moved in, so that it is seen to be code.
MARGIN = "    "

#: After how many seconds a reader is told that code runs.
SILENT = 1

#: The editors that are looked for where none is named.
USUAL = ("sensible-editor", "nano", "vim", "vi", "notepad")


def lesson(
    number: Annotated[Optional[int], typer.Argument(
        metavar="[N]", help="Which one to run; without it, all are listed.",
    )] = None,
    notebook: Annotated[Optional[pathlib.Path], typer.Option(
        "--notebook", metavar="FILE", help="Write the lesson to FILE as a "
        "Jupyter notebook, and do not run it.")] = None,
    pictures: Annotated[Optional[pathlib.Path], typer.Option(
        "--pictures", metavar="FOLDER", help="Write its pictures to FOLDER.",
    )] = None,
    stop: Annotated[bool, typer.Option(
        help="Do not wait for Enter before each section, as is done where a "
        "person sits at the terminal.")] = True,
):
    """Run a lesson: its text, its code, and what that prints on this machine.

    A lesson is a Python file in cells, to be copied and changed.
    """
    from parity import compiled
    from parity.reading import lessons
    with told_plainly():
        paths = {int(path.name.partition("_")[0]): path
                 for path in lessons.paths()}
        if number is None:
            if notebook or pictures:
                raise InputError("no lesson is named; give its number first, "
                                 "such as 'parity lesson 1'.")
            _list(paths)
            return
        if number not in paths:
            raise InputError(f"there is no lesson {number}; choose one of "
                             f"{', '.join(map(str, paths))}.")
        if notebook and pictures:
            raise InputError("a notebook draws its own pictures when it is "
                             "run; choose --notebook or --pictures.")
        if notebook and notebook.exists():
            raise InputError(f"{str(notebook)!r} is there already, and may "
                             "have work in it; choose another name.")
        if notebook:
            lessons.notebook(paths[number], notebook)
            print(f"written: {notebook}")
            return
        if pictures:
            if pictures.exists() and not pictures.is_dir():
                raise InputError(f"{str(pictures)!r} is no folder; choose "
                                 "another path for the pictures.")
            with as_input_error(pictures):
                pictures.mkdir(parents=True, exist_ok=True)
        sits = sys.stdin.isatty() and sys.stdout.isatty()
        if sits and not pictures:  # who reads of a picture wants to see it
            pictures = pathlib.Path(tempfile.mkdtemp(prefix="lesson-"))
        with compiled.environment(compiled.quickly()):
            whole = _run(paths[number], pictures, stop and sits)
        if whole:
            _after(number, paths)


def _list(paths):
    """Print each lesson: its title, minutes and exercises, and its file."""
    from parity.course import done
    from parity.course.exercise import exercises
    from parity.reading import lessons, teaching
    rows, _ = teaching.syllabus(lessons.FOLDER)
    solved = done.read()
    for number, path in paths.items():
        tasks = ", ".join(one.number + " ✓" * (one.number in solved)
                          for one in exercises().values()
                          if one.lesson == number)
        words = [f"{rows[number][0]} minutes"] if number in rows else []
        words += [f"exercises {tasks}"] if tasks else []
        print(f"{number:2}  {lessons.title(path)}")
        print("    " + " · ".join([*words, path.name]))
    print(f"The files are in {lessons.FOLDER}\nparity lesson 1 runs the first.")


def _run(path, pictures, stop):
    """Show and run a lesson cell by cell; whether it was read to its end."""
    from parity.reading import lessons
    numbers, code = itertools.count(1), None
    running = lessons.one_by_one(path)
    while step := _next(running, stop):
        cell, ran = step
        if cell.markdown:
            while stop and code and cell.text.startswith("#"):
                answer = _answer()
                if answer == QUIT:
                    return False
                if answer != CHANGE:
                    break
                if (text := _edited(code)) == code:
                    print("Nothing was changed.\n")
                    continue
                code = text
                _show_code(code)
                _show_output(_next(running, stop, code)[0], pictures, path,
                             numbers)
            print(f"{terminal.prose(cell.text)}\n")
        elif ran:
            _show_output(cell, pictures, path, numbers)
        else:
            code = cell.text
            _show_code(code)
    return True


def _next(running, told, text=None):
    """What a running lesson gives next, or None; whoever waits is told so."""
    with _patience() if told else contextlib.nullcontext():
        try:
            return running.send(text)
        except StopIteration:
            return None


@contextlib.contextmanager
def _patience():
    """Show on a terminal that something runs, until it has; then nothing."""
    out, shown = sys.stdout, threading.Event()

    def show():
        shown.set()
        print("running …", end="", flush=True, file=out)
    timer = threading.Timer(SILENT, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if shown.is_set():
            print("\r         \r", end="", flush=True, file=out)


def _show_code(code):
    """Print the code of a cell."""
    print(textwrap.indent(_coloured(code), _margin(code)) + "\n", flush=True)


def _show_output(cell, pictures, path, numbers):
    """Print what a cell gave, and keep its pictures under their numbers."""
    if cell.output:
        print("\n".join(map(terminal.filled, cell.output.split("\n"))) + "\n")
    for picture in cell.pictures:
        where = "--pictures FOLDER keeps it"
        if pictures:
            where = pictures / f"{path.stem}_{next(numbers)}.png"
            write_whole(where, picture.png)
        print(terminal.filled(f"[picture: {picture.words}; {where}]") + "\n")


def _answer():
    """The first letter of what the reader wants, or "".

    What was typed before the question was asked is no answer to it.
    """
    with contextlib.suppress(ImportError, OSError, ValueError):
        import termios
        if sys.stdin.isatty():
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
    return input("Enter goes on, c changes the code above and runs it, q ends: "
                 ).strip().lower()[:1]


def _edited(code):
    """Code as the reader changes it; as it is, where no editor can be used."""
    try:
        return edited(code)
    except InputError as error:
        print(terminal.filled(str(error)))
        return code


def _margin(code):
    """MARGIN, or what of it leaves the widest line whole."""
    widest = max(map(len, code.splitlines()), default=0)
    return MARGIN[:max(0, shutil.get_terminal_size().columns - widest)]


def _coloured(code):
    """Code in colours, where a terminal shows it."""
    if not sys.stdout.isatty():
        return code
    from pygments import highlight
    from pygments.formatters import TerminalFormatter
    from pygments.lexers import PythonLexer
    return highlight(code, PythonLexer(), TerminalFormatter()).rstrip("\n")


def _after(number, paths):
    """Say what may be done after a lesson."""
    from parity.course.exercise import exercises
    for task in exercises().values():
        if task.lesson == number:
            print(f"parity exercise {task.number:5} {task.title}")
    if number + 1 in paths:
        print(f"Next: parity lesson {number + 1}")


def editor():
    """The words of the reader's editor: VISUAL, EDITOR, or the first here.

    Raises:
        InputError: there is none.
    """
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if named:
        return shlex.split(named)
    found = next(filter(shutil.which, USUAL), None)
    if not found:
        raise InputError("no editor was found; name yours in the variable "
                         "EDITOR, such as EDITOR=nano.")
    return [found]


def edited(code):
    """What the reader makes of code.

    Raises:
        InputError: there is no editor, or it cannot be run or fails.
    """
    words = editor()
    with tempfile.TemporaryDirectory(prefix="lesson-") as folder:
        path = pathlib.Path(folder, "changed.py")
        path.write_text(code + "\n", encoding="utf-8")
        try:
            subprocess.run([*words, str(path)], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise InputError(
                f"the editor {words[0]!r} cannot be used ({error}); name "
                "another in the variable EDITOR.") from None
        return path.read_text(encoding="utf-8").rstrip()
