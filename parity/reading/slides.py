"""The slides of each lesson, with a teacher's notes: a page, or a file alone.

``lessons/slides/03.md`` has those of lesson 3. A heading of the second level
begins a slide and says its minutes; the quotation at its end are the notes.
"""

import dataclasses
import re

from markupsafe import Markup

from parity_io.errors import InputError
from parity.reading import lessons, navigation, rulings, teaching
from parity.render import markup

#: The folder of the slides, among the lessons.
FOLDER = "slides"

#: The first line of a lesson's slides, that of a slide, and a picture's place.
HEADING = re.compile(r"# (\d+)\. (.+)\n")
TITLE = re.compile(r"^## (.+?)(?: \((\d+) min\))?$", flags=re.M)
PICTURE = re.compile(r"^\*Picture (\d+) of the lesson\*\n?", flags=re.M)


@dataclasses.dataclass(frozen=True)
class Slide:
    """One screen.

    Attributes:
        address: its place on the page, such as "slide-3-2".
        title: its heading.
        minutes: how long it is talked about.
        shown: what stands on the screen, in Markdown.
        pictures: the numbers, from 1, of the lesson's pictures beside it.
        notes: what a teacher asks and knows, in Markdown.
    """

    address: str
    title: str
    minutes: int
    shown: str
    pictures: tuple
    notes: str


@dataclasses.dataclass(frozen=True)
class Deck:
    """The slides of one lesson."""

    number: int
    title: str
    slides: tuple

    @property
    def minutes(self):
        """How long the lesson takes in class."""
        return sum(one.minutes for one in self.slides)


def read(folder=lessons.FOLDER):
    """The Deck of each lesson that has one, in order.

    Raises:
        InputError: a deck has no heading, or a slide no minutes or no notes.
    """
    return [_deck(path) for path in sorted((folder / FOLDER).glob("*.md"))]


def _deck(path):
    text = path.read_text(encoding="utf-8")
    heading = HEADING.match(text)
    if not heading:
        raise InputError(f"{path.name} of the slides has no heading; begin it "
                         "with '# ', the lesson's number and its title.")
    parts, slides = TITLE.split(text)[1:], []
    for place, (title, minutes, body) in enumerate(
            zip(parts[::3], parts[1::3], parts[2::3]), start=1):
        shown, _, notes = body.partition("\n> ")
        if not (minutes and notes):
            raise InputError(
                f"the slide “{title}” in {path.name} has no "
                f"{'notes' if minutes else 'minutes'}; add "
                + ("a quotation at its end." if minutes else
                   "such as '(5 min)' to its heading."))
        slides.append(Slide(
            f"slide-{heading[1]}-{place}", title, int(minutes),
            PICTURE.sub("", shown).strip("\n"),
            tuple(map(int, PICTURE.findall(shown))),
            re.sub("^> ?", "", notes, flags=re.M).strip()))
    return Deck(int(heading[1]), heading[2], tuple(slides))


def shown(deck, cells):
    """A Deck for a template: what it shows, beside its lesson's pictures."""
    drawn = [each for cell in cells for each in cell.pictures]

    def rendered(text):
        return rulings.rendered(text, "rulings.html")
    return {"deck": deck, "slides": [{
        "slide": one, "shown": rendered(one.shown),
        "notes": rendered(one.notes),
        "pictures": [(teaching.source_of(drawn[number - 1]),
                      drawn[number - 1].words)
                     for number in one.pictures if number <= len(drawn)]}
        for one in deck.slides]}


def of_slides(site):
    """Every lesson's slides, beside the pictures of its lesson."""
    by_number = {int(path.name.partition("_")[0]): path
                 for path in teaching.paths(site)}
    decks = [deck for deck in read(teaching.folder(site.root))
             if deck.number in by_number]
    return {"decks": [
        shown(deck, site.lesson(by_number[deck.number])[0])
        | {"address": teaching.address_of(by_number[deck.number])}
        for deck in decks], "contents": [navigation.Signpost(
            f"#deck-{deck.number}", f"{deck.number}. {deck.title}")
            for deck in decks]}


def alone(decks):
    """Decks, each with its lesson's Cells, as one page that needs no other."""
    return markup.environment().get_template("slides-alone.html").render(
        style=Markup(markup.style()),
        script=Markup(markup.joined(["menu", "slides"], "js")),
        decks=[shown(*each) for each in decks])
