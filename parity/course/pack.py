"""What a class is handed for some lessons, and what its teacher has."""

import pathlib

from markupsafe import Markup

from parity_io.errors import InputError, plural
from parity_io.files import as_input_error, write_whole
from parity.course.exercise import exercises, solutions
from parity.reading import lessons, listing, rulings, slides, teaching
from parity.render import markup

#: The folder of what is the teacher's alone.
TEACHER = "teacher"


def write(numbers, out):
    """Write the pack of some lessons; yield the path of each file.

    A lesson is a notebook, or where jupytext is not installed the Python file
    that it is made of.

    Raises:
        InputError: there is no such lesson, or the folder is there already.
    """
    paths = {int(path.name.partition("_")[0]): path
             for path in lessons.paths()}
    for number in numbers:
        if number not in paths:
            raise InputError(f"there is no lesson {number}; choose of "
                             f"{', '.join(map(str, paths))}.")
    if out.exists():
        raise InputError(f"{str(out)!r} is there already, and may have work "
                         "in it; choose another name.")
    chosen = {number: paths[number] for number in sorted(set(numbers))}
    with as_input_error(out):
        for folder in out / TEACHER, out / "exercises":
            folder.mkdir(parents=True)
    decks = [(deck, lessons.run(chosen[deck.number], ()))
             for deck in slides.read() if deck.number in chosen]
    files = {pathlib.Path(TEACHER, "slides.html"): slides.alone(decks),
             pathlib.Path("handout.html"): handout(decks),
             pathlib.Path(TEACHER, "key.md"): key(chosen)}
    for one in of(chosen):
        files[pathlib.Path("exercises", f"exercise_{one.file}")] = one.start
    for name, text in files.items():
        write_whole(out / name, text)
        yield out / name
    for path in chosen.values():
        name = out / f"{path.stem}.ipynb"
        try:
            lessons.notebook(path, name)
        except InputError:
            name = out / path.name
            write_whole(name, path.read_text(encoding="utf-8"))
        yield name


def of(chosen):
    """The Exercises of some lessons."""
    return [one for one in exercises().values() if one.lesson in chosen]


def handout(decks):
    """For the class, as one page: what is shown of each lesson, and its tasks.

    Args:
        decks: [(a Deck, its lesson's Cells)].
    """
    rows, _ = teaching.syllabus(lessons.FOLDER)
    parts = []
    for deck, cells in decks:
        minutes, needs, _ = rows[deck.number]
        parts.append(slides.shown(deck, cells) | {
            "minutes": minutes, "needs": needs,
            "tasks": [{
                "number": one.number, "function": one.function,
                "file": f"exercise_{one.file}", "of_arrays": one.of_arrays,
                "words": rulings.rendered(one.task),
                "code": listing.highlighted(one.begun)}
                for one in of([deck.number])]})
    return markup.environment().get_template("handout.html").render(
        style=Markup(markup.style()), parts=parts)


def key(chosen):
    """For the teacher: an answer in each framework, and known mistakes."""
    lines = ["# Key", ""]
    for one in of(chosen):
        lines += [f"## {one.number} {one.title}", ""]
        for framework, text in solutions(one).items():
            lines += [f"{framework}:", "", "```python", text.rstrip(), "```",
                      ""]
        lines += [f"{plural(len(one.mistakes), 'mistake')} known by name:", "",
                  *(f"- {name}" for name in one.mistakes), ""]
    return "\n".join(lines)
