"""A Card in words: lines of at most 80 columns.

A line is a list of (text, style). A style is "", "strong", "dim", "good",
"bad", "warn" or "mark"; what shows it in colour is elsewhere.
"""

import difflib
import re
import textwrap

from parity.comparison.card_path import pieces
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.numerics.words import number

WIDTH = 80

#: Where what is said of a cause begins.
INDENT = 4

STYLES = {MATCH: "good", DIVERGENCE: "bad"}

#: So many names and signs that are alike stand between two marks.
ALIKE = 4

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
TOKEN = re.compile(
    r"\d+(?:\.\d+)?(?:e[-+]?\d+)?|\w+(?:\.\w+)*|\s+|.", re.DOTALL)


def text(card, width=WIDTH):
    """A Card as plain text."""
    return "\n".join("".join(words for words, _ in line).rstrip()
                     for line in lines(card, width))


def lines(card, width=WIDTH):
    """A Card as lines of (text, style)."""
    made = [*_head(card, width)]
    if card.sentence:
        made += ["", *_wrapped("    ", card.sentence, width)]
    for cause in card.causes:
        made += ["", *_cause(cause, card, width)]
    made += _roundings(card, width)
    tail = []
    if card.path:
        tail.append([("    ", ""), *pieces(card.path, width - INDENT)])
    for words in filter(None, (card.first, card.ending)):
        tail += _wrapped("    ", words, width)
    for words in card.notes:
        tail += _wrapped("    ", words, width, "dim")
    if tail and card.verdict != MATCH:
        made.append("")
    return [[(line, "")] if isinstance(line, str) else line
            for line in [*made, *tail]]


def _head(card, width):
    """The verdict, the summary, and the seconds at the right."""
    verdict = card.verdict.upper()
    style, time = STYLES.get(card.verdict, "warn"), took(card)
    used = len(verdict) + 3 + len(card.summary)
    if used + 2 + len(time) <= width:
        return [[(verdict, style), ("   ", ""), (card.summary, "strong"),
                 *_at_the_right(time, width - used)]]
    return [[(verdict, style), *_at_the_right(time, width - len(verdict))],
            *_wrapped("    ", card.summary, width, "strong")]


def took(card):
    """How long it took, in words; "" if that is not known."""
    if card.seconds is None:
        return ""
    return f"{card.seconds:.{0 if card.seconds >= 10 else 1}f} s"


def _wrapped(start, words, width, style=""):
    """Words as lines that begin alike; no name is broken."""
    return [[(line, style)] for line in textwrap.wrap(
        words, width, initial_indent=start, subsequent_indent=" " * len(start),
        break_long_words=False, break_on_hyphens=False)]


def middle(words, room):
    """Words in ``room`` columns: what is too much is "…" in the middle."""
    if len(words) <= room:
        return words
    left = (room - 1) // 2
    return words[:left] + "…" + words[len(words) - (room - 1 - left):]


def _cause(cause, card, width):
    """The lines of one cause."""
    title = cause.what or "not identified"
    room = width - INDENT - len(title) - 2
    style = "bad" if cause.what else "warn"
    yield [(f" {cause.number:<3}", style), (title, "strong"), ("  ", ""),
           (middle(cause.where, max(room, 20)), "")]
    one, two = card.frameworks
    labels = [f"{side} {name}".rstrip() for side, name in zip(
        "AB", (one, two) if one != two else ("", ""))]
    column = max(5, *map(len, labels)) + 2
    places = cause.place_a, cause.place_b
    both = cause.expression_a and cause.expression_b
    told = (both and cause.in_a in cause.expression_a
            and cause.in_b in cause.expression_b)  # no need to say it twice
    if not told:
        for label, words, place in zip(labels, (
                cause.in_a or cause.expression_a,
                cause.in_b or cause.expression_b), places):
            if words or place:
                yield from _beside(label, column, words, place, width)
    if both and (told or cause.in_a or cause.in_b):
        yield from _expressions(
            cause, labels if told else ("", ""), column,
            places if told else ("", ""), width)
    for label, words in (("proof", proof_of(cause, card)),
                         ("write", cause.write)):
        if words:
            first, *rest = _wrapped(" " * (INDENT + column), words, width)
            yield [(f"    {label:<{column}}", "dim"),
                   (first[0][0].lstrip(), "good" if label == "write" else "")]
            yield from rest
    for words in cause.evidence:
        first, *rest = _wrapped(" " * (INDENT + 2), words, width)
        yield [("    · ", "dim"), (first[0][0].lstrip(), "")]
        yield from rest


def _beside(label, column, words, place, width):
    """What one side has, and its place at the right."""
    room = width - INDENT - column - (len(place) + 2 if place else 0)
    first, *rest = textwrap.wrap(
        words, room, break_long_words=False) or [""]
    yield [(f"    {label:<{column}}", "dim"), (first, "strong"),
           *_at_the_right(place, width - INDENT - column - len(first))]
    for line in rest:
        yield [(" " * (INDENT + column), ""), (line, "strong")]


def proof_of(cause, card):
    """What shows a cause; "" where the card's ending says it of all."""
    shared = card.ending and len(card.causes) > 1 and {
        each.proof for each in card.causes} == {cause.proof}
    return "" if shared else cause.proof


def marked(cause):
    """Both expressions of a cause and what differs, as of ``aligned``."""
    return at_numbers(cause) or aligned(
        cause.expression_a, cause.expression_b)


def aligned(one, two):
    """Two expressions, so that what is alike stands in the same columns.

    Returns:
        The two texts, and (start, end) of the columns in which they differ.
    """
    tokens = TOKEN.findall(one), TOKEN.findall(two)
    blocks, texts, marks = [], ["", ""], []
    for kind, a, b, c, d in difflib.SequenceMatcher(
            None, tokens[0], tokens[1], autojunk=False).get_opcodes():
        blocks.append((kind == "equal", [
            "".join(tokens[0][a:b]), "".join(tokens[1][c:d])]))
    for alike, parts in _with_few_gaps(blocks):
        wide = max(map(len, parts))
        if not alike:
            marks.append((len(texts[0]), len(texts[0]) + wide))
        texts = [text + part.ljust(wide) for text, part in zip(texts, parts)]
    return *texts, marks


def at_numbers(cause):
    """Both expressions, marked at the numbers of a cause where each has its
    own once; else None."""
    parts = []
    for value, words in ((cause.in_a, cause.expression_a),
                         (cause.in_b, cause.expression_b)):
        if not NUMBER.fullmatch(value) or TOKEN.findall(words).count(
                value) != 1:
            return None
        parts.append(words.partition(value))
    left, wide = (max(len(each[place]) for each in parts)
                  for place in (0, 1))
    one, two = (f"{before:>{left}}{value:<{wide}}{behind}"
                for before, value, behind in parts)
    return one, two, [(left, left + wide)]


def _with_few_gaps(blocks):
    """The blocks; what is alike between two others only if it is long."""
    made: list[tuple[bool, list[str]]] = []
    for i, (alike, parts) in enumerate(blocks):
        short = alike and 0 < i < len(blocks) - 1 and len(
            [token for token in TOKEN.findall(parts[0])
             if token.strip()]) < ALIKE
        if made and not made[-1][0] and (short or not alike):
            made[-1] = False, [old + new for old, new in zip(
                made[-1][1], parts)]
        else:
            made.append((alike, parts))
    return made


def _expressions(cause, labels, column, places, width):
    """Both expressions, one above the other, and what differs marked."""
    room = width - INDENT - column - max(
        len(place) + 2 if place else 0 for place in places)
    one, two, marks = marked(cause)
    one, two, marks = window(one, two, marks, room)
    for label, words, place in zip(labels, (one, two), places):
        spans, at = [], 0
        for start, end in marks:
            spans += [(words[at:start], ""), (words[start:end], "mark")]
            at = end
        yield [(f"    {label:<{column}}", "dim"), *spans, (words[at:], ""),
               *_at_the_right(place, width - INDENT - column - len(words))]
    if marks:
        under = [" "] * marks[-1][1]
        for start, end in marks:
            under[start:end] = "^" * (end - start)
        yield [(" " * (INDENT + column) + "".join(under), "mark")]


def _at_the_right(place, room):
    """A place that ends at the line's end."""
    return [(" " * max(room - len(place), 2) + place, "dim")] if place else []


def window(one, two, marks, room):
    """Aligned expressions in ``room`` columns, around what differs first."""
    if len(one) <= room:
        return one, two, marks
    start = marks[0][0] if marks else 0
    low = min(max(0, start - room // 3), len(one) - room)
    high = low + room

    def cut(words):
        return ("…" * (low > 0) + words[low + (low > 0):high - (
            high < len(words))] + "…" * (high < len(words)))
    return cut(one), cut(two), [
        (max(left - low, 0), min(right - low, room))
        for left, right in marks if right > low and left < high]


def _roundings(card, width):
    """Where each side rounds, and what it costs."""
    wide = max((len(place) for found in card.roundings.values()
                for place, _, _ in found), default=0)
    made = []
    for side, found in card.roundings.items():
        for i, (place, dtype, cost) in enumerate(found):
            label = f"{side.upper()} rounds at" if i == 0 else ""
            by = "" if cost is None else f"   {number(cost)} off by it"
            made.append([(f"    {label:<13}", "dim"), (place.ljust(wide), ""),
                         (f"   {dtype}", ""), (by, "dim")])
    return [[("", "")], *made] if made else []
