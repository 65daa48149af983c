"""Where two texts part: what a template, a cleaner or an encoding made."""

import unicodedata
from collections.abc import Callable

#: So many letters of a text are shown.
SHOWN = 40

#: What tokenizers write for spaces, line ends and tabs.
SPACES = dict.fromkeys(map(ord, "ĠĊĉ▁"), " ")

#: What may be done to a text, in the words that follow "b's is a's".
CHANGES: dict[str, Callable[[str], str]] = {
    "lower-cased": str.lower,
    "without spaces at its ends": str.strip,
    "with line ends of one sign": lambda text: text.replace("\r\n", "\n"),
    "with single spaces": lambda text: " ".join(text.split()),
    "in Unicode's form NFC": lambda text: unicodedata.normalize("NFC", text),
    "in Unicode's form NFD": lambda text: unicodedata.normalize("NFD", text),
    "in Unicode's form NFKC": lambda text: unicodedata.normalize(
        "NFKC", text),
    "without accents": lambda text: "".join(
        each for each in unicodedata.normalize("NFD", text)
        if not unicodedata.combining(each)),
    "lower-cased and without accents": lambda text: "".join(
        each for each in unicodedata.normalize("NFD", text.lower())
        if not unicodedata.combining(each)),
    "with a space before it": lambda text: f" {text}",
}


def text_parting(mine, other):
    """Where two texts, or lists of them, part, in words; "" if they do not."""
    one, two = ([each] if isinstance(each, str) else [*each]
                for each in (mine, other))
    if len(one) != len(two):
        return f"a has {len(one)} texts and b {len(two)}"
    for row, (a, b) in enumerate(zip(one, two)):
        if a == b:
            continue
        place = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y),
                     min(len(a), len(b)))
        why = _more(a, b, place) or changed(a, b)
        where = f"texts differ at row {row}, " if len(one) > 1 else (
            "texts differ at ")
        return (f"{where}letter {place}: {_shown(a, place)} in a, "
                f"{_shown(b, place)} in b{why and f': {why}'}")
    return ""


def changed(one, two):
    """What was done to one of two texts to make the other, in words."""
    for name, change in CHANGES.items():
        if change(one) == two:
            return f"b's text is a's {name}"
        if change(two) == one:
            return f"a's text is b's {name}"
    if spaceless(one) == spaceless(two):
        return "they differ in spaces and line ends alone"
    return ""


def spaceless(text):
    """A text, or a tokenizer's piece, without what stands for a space."""
    return "".join(text.translate(SPACES).split())


def _more(one, two, first):
    """What one of two texts has more at one place."""
    for side, text, other in (("a", one, two), ("b", two, one)):
        rest = len(other) - first
        if len(text) > len(other) and text[len(text) - rest:] == other[first:]:
            more = text[first:len(text) - rest]
            where = ("at its end" if not rest else "at its beginning"
                     if not first else "there")
            return f"{side} has {more[:SHOWN]!r} more {where}"
    return ""


def _shown(text, place):
    """A letter of a text and what follows."""
    return repr(text[place:place + 12]) if place < len(text) else "its end"
