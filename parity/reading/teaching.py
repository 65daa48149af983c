"""The lessons as pages: text, code and what it printed when it was run."""

import base64
import re

from parity.reading import lessons, listing, rulings, sources


def address_of(path):
    """The page of a lesson's file."""
    return f"lesson-{path.stem.replace('_', '-')}.html"


def folder(root):
    """Where the lessons of the four in ``root`` lie; a wheel has its own."""
    return lessons.FOLDER if root == sources.ROOT else root / "lessons"


def heading(path):
    """A lesson's number and title, as other lessons call it."""
    return f"{int(path.stem[:2])}. {lessons.title(path)}"


def syllabus(files):
    """{number: its minutes, what it needs, its exercises}, and for teachers.

    Both are from the folder's README.md; empty where there is none.
    """
    path = files / "README.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    rows = re.findall(
        r"^\| (\d+) \| .+ \| (\d+) \| (.+) \| (.+) \|$", text, flags=re.M)
    words = text.partition("## For teachers\n")[2]
    for file, page in (("slides/", "slides.html"),
                       ("../docs/causes.md", "causes.html")):
        words = words.replace(f"]({file})", f"]({page})")
    return {int(number): more for number, *more in rows}, rulings.rendered(
        words, "rulings.html")


def paths(site):
    """The lessons' files."""
    return lessons.paths(folder(site.root))


def of_lessons(site):
    """What the lessons are: addresses, headings, first words, numbers."""
    entries = []
    rows, teachers = syllabus(folder(site.root))
    for path in paths(site):
        words = next(cell.text for cell in lessons.cells(path)
                     if cell.markdown)
        summary = words.split("\n\n")[1].replace("\n", " ")
        number = int(path.stem[:2])
        entries.append((
            address_of(path), heading(path), rulings.rendered(
                summary, "rulings.html"), number, rows.get(number)))
    return {"lessons": entries, "teachers": teachers,
            "contents": ()}  # the menu lists them


def pages(site):
    """Yield (address, title, template, what it shows) of each lesson."""
    for path in paths(site):
        yield address_of(path), heading(path), "lesson.html", (
            of_lesson(site, path))


def of_lesson(site, path):
    """A lesson that is run for its page, cell by cell."""
    cells, problem = site.lesson(path)
    title = lessons.title(path)
    files = paths(site)
    around = files.index(path)
    return {
        "file": f"lessons/{path.name}", "problem": problem,
        "cells": [{
            "number": number,
            "words": (rulings.rendered(cell.text.replace(
                f"# {title}\n", f"# {heading(path)}\n", 1), "rulings.html")
                if cell.markdown else ""),
            "code": "" if cell.markdown else listing.highlighted(cell.text),
            "output": cell.output,
            "pictures": [(source_of(each), each.words)
                         for each in cell.pictures]}
            for number, cell in enumerate(cells, start=1)],
        "before": beside(files[:around][-1:]),
        "after": beside(files[around + 1:][:1])}


def pairs(cells):
    """Cells in groups that stand side by side: words, and what they run."""
    groups: list = []
    for cell in cells:
        if cell["words"] or not groups:
            groups.append([])
        groups[-1].append(cell)
    return groups


def source_of(picture):
    """A Picture as an address that has it."""
    return "data:image/png;base64," + base64.b64encode(picture.png).decode()


def beside(files):
    """(address, heading) of the lesson in a list of one or none, or None."""
    return next(((address_of(path), heading(path))
                 for path in files), None)
