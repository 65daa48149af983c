"""The command ``parity exercise``: tasks, and whether an answer is right."""

import contextlib
import pathlib
import sys
from typing import Annotated, Optional

import typer

from parity_io.errors import InputError, one_of
from parity_io.files import FULL
from parity import ports
from parity.numerics.words import listed
from parity.commands.shell import said
from parity.render import terminal


def exercise(
    ctx: typer.Context,
    number: Annotated[Optional[str], typer.Argument(
        metavar="[N.M]", help="Which one; without it, all are listed.",
    )] = None,
    file: Annotated[Optional[pathlib.Path], typer.Argument(
        metavar="[FILE]", help="The answer to check.")] = None,
    framework: Annotated[Optional[str], typer.Option(
        "--in", metavar="NAME", help="What the answer computes with: numpy, "
        "torch, keras or jax.  [default: what its file imports]")] = None,
    hint: Annotated[bool, typer.Option(
        "--hint", help="Say which mistake it is, as far as it is known.",
    )] = False,
    solution: Annotated[bool, typer.Option(
        "--solution", help="Once the answer is right, show one of ours in "
        "each framework.")] = False,
    folder: Annotated[Optional[pathlib.Path], typer.Option(
        "--class", metavar="DIR", help="Check all answers below a folder: "
        "files whose names end in N_M.py.")] = None,
    csv: Annotated[Optional[pathlib.Path], typer.Option(
        "--csv", metavar="FILE", help="Write what --class finds as a table.",
    )] = None,
    seconds: Annotated[float, typer.Option(
        "--seconds", min=1, max=3600,
        help="How long an answer may take.")] = 20,
):
    """An exercise of a lesson: its task, or whether an answer is right.

    With a number alone, print the task and write a file to begin with. With a
    file as well, call its function on several inputs and hold what it returns
    against the reference. Exit status: 0 the answer is right, 1 it is not, or
    raises, or does not end; 2 the file cannot be used.
    """
    from parity.course import answer, frameworks, judge, marks
    from parity.course.exercise import by_number
    if framework:
        _usable(framework)
    if csv and not folder:
        raise InputError("--csv writes what --class finds; name its folder.")
    if folder:
        if number:
            raise InputError("--class checks every exercise that it finds; "
                             "leave the number away.")
        marks.of_class(folder, csv, seconds, framework)
        return
    if number is None:
        _list()
        return
    task = by_number(number)
    guessed = framework is None
    if framework is None:
        framework = frameworks.of_answer(task, file) if file else "numpy"
        _usable(framework)
    if framework != "numpy" and not task.of_arrays:
        raise InputError(f"exercise {number} has no arrays, so that no "
                         "framework is needed; leave --in away.")
    if file is None:
        if hint or solution:
            raise InputError("--hint and --solution are said of an answer; "
                             "name its file behind the number.")
        _begun(task, framework, guessed)
        return
    if not file.is_file():
        raise InputError(f"there is no file {str(file)!r}; write one with "
                         f"'parity exercise {number}'.")
    quiet = bool(ctx.find_root().params.get("quiet"))
    found = answer.judged(task, file, seconds, not quiet, framework)
    if found.status == judge.UNUSABLE:
        said(found.sentence)
    out = sys.stderr if found.status and quiet else sys.stdout
    print(terminal.filled(found.sentence), file=out)
    if found.status == judge.RIGHT:
        _right(task, solution, framework)
        return
    if found.numbers:
        print(found.numbers, file=out)
    if hint and found.unknown:
        print("Of this mistake nothing more is known.", file=out)
    elif hint and found.hint:
        print(terminal.filled(found.hint), file=out)
    elif found.hint:
        print("More is known of this mistake: --hint tells it.", file=out)
    if guessed and framework != "numpy":
        print(terminal.filled(
            f"The file imports {framework}, so that its arrays were given; "
            "--in numpy gives NumPy's."), file=out)
    raise typer.Exit(found.status)


def _usable(framework):
    """Raise InputError unless a framework is one, and is here."""
    one_of(framework, ("numpy", *ports.usual_ports()), "framework")
    if framework != "numpy" and (absent := ports.absent(framework)):
        raise InputError(f"{absent.reason}; install it, or choose another "
                         "framework with --in.")


def _list():
    """Print each exercise, which are solved, and which fit any framework."""
    from parity.course import done
    from parity.course.exercise import exercises
    solved = done.read()
    for each in exercises().values():
        print(f"{each.number:5} {'✓ ' * (each.number in solved)}{each.title}")
    bare = listed([each.number for each in exercises().values()
                   if not each.of_arrays])
    *names, last = ports.usual_ports()
    print("\nparity exercise 3.1 gives a task, and a file to begin with.")
    print(terminal.filled(
        f"Each is done in NumPy or, by --in, with {', '.join(names)} or "
        f"{last}. {bare} have no arrays: they need no framework."))


def _right(task, solution, framework):
    """What comes after a right answer: others' code, and the next task."""
    from parity.course import done
    from parity.course.exercise import exercises, following, solutions
    if sys.stdout.isatty():  # a person's own; scripts leave no file behind
        solved = done.add(task.number)
        print(f"Solved here: {len(solved)} of {len(exercises())}.")
    if solution:
        for name, text in solutions(task).items():
            print(f"\n# {name}\n{text.rstrip()}")
        print()
    else:
        print("--solution shows ours in "
              + ("each framework." if task.of_arrays else "Python."))
    if after := following(task):
        print(f"Next: parity exercise {after.number}"
              f"{_in(after, framework)}   {after.title}")


def _in(task, framework):
    """What to write behind a task's number, to do it in a framework."""
    wanted = framework != "numpy" and task.of_arrays
    return f" --in {framework}" if wanted else ""


def _place(task, framework, guessed):
    """Where a task is begun: in a folder of the framework's, where a file
    with an answer in another framework is here already."""
    from parity.course import frameworks
    path = pathlib.Path(f"exercise_{task.file}")
    if guessed or not path.is_file() or (
            frameworks.of_answer(task, path) == framework):
        return path
    with contextlib.suppress(OSError, ValueError):
        if path.read_text(encoding="utf-8") == task.start_in(framework):
            return path
    return framework / path


def _begun(task, framework, guessed):
    """Print a task, and write the file to begin with if there is none."""
    print(f"{terminal.prose(f'{task.number}  {task.task}')}\n")
    if more := _in(task, framework):
        print(terminal.prose(
            f"Its arrays are those of {framework}, in and out; floats are "
            "float64 where the\ntask names no other.\n"))
    elif not task.of_arrays:
        print(terminal.prose(
            "It has no arrays, so that it is the same for every framework.\n"))
    path = _place(task, framework, guessed)
    try:
        path.parent.mkdir(exist_ok=True)
        with path.open("x", encoding="utf-8") as out:
            out.write(task.start_in(framework))
        print(f"Write your answer into {path}, then:")
    except FileExistsError:
        if not path.is_file():
            raise InputError(f"'{path}' is there already and is no file; move "
                             "it, or go to another folder.") from None
        print(f"{path} is there already and was left as it is. To check it:")
    except OSError as error:
        if error.errno in FULL:
            raise
        raise InputError(f"'{path}' cannot be written here "
                         f"({error.strerror}); go to a folder of your own."
                         ) from None
    print(f"  parity exercise {task.number} {path}{more}")
