"""The page of slides: a screen for each lesson, with notes for a teacher."""

import dataclasses
import re

from parity_io.errors import InputError
from parity.reading import lessons, rulings, teaching

#: The file of the slides, among the lessons.
FILE = "slides.md"


@dataclasses.dataclass(frozen=True)
class Slide:
    """What is shown in one lesson, and when.

    Attributes:
        number: the lesson's.
        title, shown: its heading, and what stands on the screen, in Markdown.
        plan: [(minutes, what is done)].
        notes: what to ask, and what to know; in Markdown.
    """

    number: int
    title: str
    shown: str
    plan: tuple
    notes: str

    @property
    def minutes(self):
        """How long the lesson takes in class."""
        return sum(minutes for minutes, _ in self.plan)


def read(folder=lessons.FOLDER):
    """(the file's first words, the Slides).

    Raises:
        InputError: a slide has no plan.
    """
    text = (folder / FILE).read_text(encoding="utf-8")
    first, *parts = re.split(r"^## (\d+)\. (.+)\n", text, flags=re.M)
    slides = []
    for number, title, body in zip(parts[::3], parts[1::3], parts[2::3]):
        plan = re.findall(r"^\| (\d+) \| (.+) \|$", body, flags=re.M)
        if not plan:
            raise InputError(f"slide {number} in {FILE} has no plan; add "
                             "a table of minutes and what is done.")
        slides.append(Slide(
            int(number), title, body.partition("| minutes |")[0].strip(),
            tuple((int(minutes), what) for minutes, what in plan),
            body.rpartition("|\n")[2].strip()))
    return first.partition("\n")[2].strip(), slides


def of_slides(site):
    """Every slide, beside the first picture of its lesson."""
    folder = teaching.folder(site.root)
    if not (folder / FILE).is_file():
        return {"about": "", "slides": ()}
    about, slides = read(folder)
    by_number = {int(path.name.partition("_")[0]): path
                 for path in teaching.paths(site)}

    def rendered(text):
        return rulings.rendered(text, "rulings.html")

    entries = []
    for slide in slides:
        path = by_number[slide.number]
        drawn = [each for cell in site.lesson(path)[0]
                 for each in cell.pictures][:1]
        entries.append({
            "slide": slide, "shown": rendered(slide.shown),
            "address": teaching.address_of(path),
            "plan": [(minutes, rendered(what))
                     for minutes, what in slide.plan],
            "notes": rendered(slide.notes),
            "pictures": [(teaching.source_of(each), each.words)
                         for each in drawn]})
    return {"about": rendered(about), "slides": entries, "contents": ()}
