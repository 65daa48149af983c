"""The lessons as pages: text, code and what it printed when it was run."""

import base64

from parity.reading import lessons, listing, rulings, sources


def address_of(path):
    """The page of a lesson's file."""
    return f"lesson-{path.stem.replace('_', '-')}.html"


def folder(root):
    """Where the lessons of the four in ``root`` lie; a wheel has its own."""
    return lessons.FOLDER if root == sources.ROOT else root / "lessons"


def paths(site):
    """The lessons' files."""
    return lessons.paths(folder(site.root))


def of_lessons(site):
    """What the lessons are: their addresses, titles, first words and files."""
    entries = []
    for path in paths(site):
        words = next(cell.text for cell in lessons.cells(path)
                     if cell.markdown)
        summary = words.split("\n\n")[1].replace("\n", " ")
        entries.append((address_of(path), lessons.title(path),
                        rulings.rendered(summary, "rulings.html"), path.name))
    return {"lessons": entries, "contents": ()}  # the menu lists them


def pages(site):
    """Yield (address, title, template, what it shows) of each lesson."""
    for path in paths(site):
        yield address_of(path), lessons.title(path), "lesson.html", (
            of_lesson(site, path))


def of_lesson(site, path):
    """A lesson that is run for its page, cell by cell."""
    cells, problem = site.lesson(path)
    files = paths(site)
    around = files.index(path)
    return {
        "file": f"lessons/{path.name}", "problem": problem,
        "cells": [{
            "number": number,
            "words": (rulings.rendered(cell.text, "rulings.html")
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
    groups = []
    for cell in cells:
        if cell["words"] or not groups:
            groups.append([])
        groups[-1].append(cell)
    return groups


def source_of(picture):
    """A Picture as an address that has it."""
    return "data:image/png;base64," + base64.b64encode(picture.png).decode()


def beside(files):
    """(address, title) of the lesson in a list of one or none, or None."""
    return next(((address_of(path), lessons.title(path))
                 for path in files), None)
