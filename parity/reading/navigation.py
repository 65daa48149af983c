"""How a reader finds the way: parts, their pages, and what a page holds."""

import dataclasses
import re

from markupsafe import Markup, escape

#: The parts and what stands in each: pages by address, mirrored files by name.
#: Files that no part names follow in the last but one.
PARTS = (
    ("The model", (
        "flow.html", "embedding", "positional", "masks", "layer_norm",
        "attention", "single_head", "feed_forward", "residual", "encoder",
        "decoder", "projection", "transformer", "parts")),
    ("Other models", (
        "variants.html", "dialects.html", "marian.html",
        *(f"dialects-{name}" for name in (
            "embedding", "positional", "norms", "attention", "rotary",
            "relative", "feed_forward", "residual", "layers", "stacks",
            "head", "projection", "output", "transformer", "one_stack",
            "masks", "optimizer", "search")))),
    ("Training", (
        "loss", "optimizer", "train", "dropout", "training-curves.html")),
    ("Decoding", ("attention-maps.html", "search", "sample", "cache")),
    ("Debugging", (
        "break.html", "causes.html", "errata.html", "differences.html")),
    ("Reference", (
        "match.html", "rulings.html", "layouts.html", "parameters", "random")),
)

#: What a file is about, where its name alone says another thing or little.
HINTS = {
    "search": "greedy and beam", "sample": "drawn answers",
    "cache": "keys and values kept", "single_head": "one head of attention",
    "parts": "which class is chosen", "parameters": "weights by path",
    "random": "the same numbers in all"}

#: The part of the lessons, which are listed by their folder.
LESSONS = "Lessons"

HEADING = re.compile(
    r'(<section[^>]* id="(?P<outer>[^"]+)"[^>]*>\s*)?'
    r"<(?P<tag>h[23])(?P<rest>[^>]*)>(?P<words>.*?)</(?P=tag)>", re.S)


@dataclasses.dataclass(frozen=True)
class Signpost:
    """A line of the navigation: where it leads, its words, what they mean."""

    address: str
    words: str
    code: bool = False
    depth: int = 1
    hint: str = ""


def parts(files, pages, lessons):
    """[(title, [Signpost])] of all parts.

    Args:
        files: the names of the mirrored files.
        pages: {address: title} of the other pages.
        lessons: [(address, title)].
    """
    named = {name for _, names in PARTS for name in names}
    left = [name for name in files if name not in named]
    result = []
    for title, names in PARTS:
        entries = []
        for name in (*names, *(left if title == PARTS[-1][0] else ())):
            if name in pages:
                entries.append(Signpost(name, pages[name]))
            elif name in files:
                entries.append(Signpost(
                    f"{name}.html", name, code=True,
                    hint=HINTS.get(name, "")))
        result.append((title, entries))
    result.append((LESSONS, [
        *(Signpost(name, pages[name])
          for name in ("lessons.html", "slides.html")),
        *(Signpost(*each) for each in lessons)]))
    return result


def plain(html):
    """The words of some HTML, without its anchors and what is beside."""
    html = re.sub(r'<(a|code) class="(anchor|quiet)".*?</\1>', "", html,
                  flags=re.S)
    return Markup(re.sub(r"\s+", " ", html)).striptags()


@dataclasses.dataclass(frozen=True)
class Outline:
    """A page's body, each heading with an id, and its headings as Signposts."""

    html: Markup
    entries: list

    @classmethod
    def of(cls, body):
        """The Outline of a body of HTML."""
        entries, taken = [], set(re.findall(r'\bid="([^"]+)"', body))

        def heading(match):
            words = plain(match["words"])
            inner = re.search(r'\bid="([^"]+)"', match["rest"])
            name = inner[1] if inner else match["outer"]
            whole = match[0]
            if not name:
                name = re.sub(r"\W+", "-", words.lower()).strip("-")
                while name in taken:
                    name += "-"
                taken.add(name)
                tag = f"<{match['tag']}"
                whole = whole.replace(tag, f'{tag} id="{escape(name)}"', 1)
            entries.append(Signpost(
                f"#{name}", words, depth=int(match["tag"][1]) - 1))
            return whole

        html = Markup(HEADING.sub(heading, str(body)))
        return cls(html, entries)
