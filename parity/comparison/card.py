"""The answer of a comparison, short: what every screen and page begins with.

A Card is plain data. ``card_text`` writes it in 80 columns, ``card_html`` as
HTML.
"""

import dataclasses
import math
import re

from parity_io.errors import plural, visible
from parity.comparison.card_path import (
    DIFFERS, NEAR, agreeing, groups_of)
from parity.comparison.verdicts import (
    FLOAT32, GRADIENT, INPUT, OUTPUT, PARAMETER, PRECISION)
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.numerics.words import number
from parity.tracing.trace import WHOLE

#: How many lines of evidence, notes and roundings a card has.
EVIDENCE, NOTES, ROUNDINGS = 5, 3, 4

#: Two places are both named if they are as short as this.
BOTH = 44


@dataclasses.dataclass(frozen=True)
class CardCause:
    """One cause.

    Attributes:
        number: from 1; "?" of what is not identified, "≈" of rounding inside.
        what: what differs, in a few words; "" if not identified.
        where: the modules, by b's paths; a's where it is another.
        in_a, in_b, place_a, place_b, expression_a, expression_b, write: as in
            causes.explanation.Explanation.
        proof: what shows it, a sentence; "" if nothing does.
        evidence: what else is known, a sentence each.
    """

    number: int | str
    what: str
    where: str
    in_a: str = ""
    in_b: str = ""
    place_a: str = ""
    place_b: str = ""
    expression_a: str = ""
    expression_b: str = ""
    proof: str = ""
    write: str = ""
    evidence: tuple = ()


@dataclasses.dataclass(frozen=True)
class Card:
    """The answer of a comparison.

    Attributes:
        verdict: as in Comparison.
        summary: how many causes there are, and how many steps agree.
        seconds: how long it took, or None.
        frameworks: of a and b.
        causes: CardCauses: what is identified, what is not, rounding inside.
        path: card_path.StepGroups: which steps agree.
        sentence: the verdict in words, where no cause says it; else "".
        first: the first step that differs, and by how much; else "".
        ending: what outputs do once the causes are corrected; else "".
        roundings: "a" and "b" -> (place, dtype, cost) of each rounding.
        notes: remarks, a sentence each.
    """

    verdict: str
    summary: str
    seconds: float | None
    frameworks: tuple
    causes: tuple
    path: tuple
    sentence: str
    first: str
    ending: str
    roundings: dict
    notes: tuple

    def as_json(self):
        """All of it as plain data."""
        return _plain(dataclasses.asdict(self))


def _plain(value):
    """Tuples as lists, and what is no number as None."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def card_of(comparison):
    """The Card of a Comparison, explained or not."""
    told = comparison.explanations
    rounded = comparison.verdict == FLOAT32
    roundings = _roundings(getattr(comparison, "roundings", None) or {})
    named = [each for each in told
             if each.identified and each.cause != PRECISION]
    causes = [_cause(i, each) for i, each in enumerate(named, start=1)]
    narrow = [] if roundings else [
        _cause("≈", each) for each in told if each.cause == PRECISION]
    numbers = {path: i for i, each in reversed([*enumerate(named, start=1)])
               for path in (each.a, *(one for one, _ in each.also))}
    lost = _unidentified([each for each in told if not each.identified])
    for each in told:
        if not each.identified:
            numbers.setdefault(each.a, "?")
    answered = comparison.verdict == MATCH or bool(
        roundings if rounded else causes and comparison.verdict == DIVERGENCE)
    return Card(
        comparison.verdict, _summary(comparison, causes, lost),
        getattr(comparison, "seconds", None),
        tuple(side.get("framework", "") for side in (
            comparison.a, comparison.b)),
        (*causes, *lost, *narrow),
        tuple(groups_of(comparison.rows, numbers, NEAR if rounded
                        else DIFFERS))
        if comparison.verdict != MATCH else (),
        "" if answered else visible(comparison.sentence()),
        _first(comparison) if answered and not rounded else "",
        visible(getattr(comparison, "corrected", "")),
        roundings,
        tuple(map(visible, _notes(comparison))))


def _cause(count, each):
    """A CardCause of an Explanation that is identified."""
    places = [(each.a, each.b), *each.also]
    words = {
        "what": each.cause,
        "where": _where(places, getattr(each, "part", "")),
        "in_a": each.in_a, "in_b": each.in_b,
        "place_a": _line(each, "a"), "place_b": _line(each, "b"),
        "expression_a": each.expression_a, "expression_b": each.expression_b,
        "proof": each.proof or _replayed(each), "write": each.write}
    evidence = [*([] if each.place_b else each.known[:1]), *each.legend()]
    return CardCause(
        count, **{name: visible(text) for name, text in words.items()},
        evidence=tuple(map(visible, evidence)))


def _line(each, side):
    """The line of a side, and the one from which it was called; of a missing
    step the two between which it has to stand."""
    place, called, made = (getattr(each, f"{name}_{side}")
                           for name in ("place", "called", "made"))
    file, _, line = called.rpartition(":")
    if made and made != place:
        return f"{made} … {place}"
    if not place or not called:
        return place
    return f"{place} ← " + (
        f":{line}" if file == place.rpartition(":")[0] else called)


def _where(places, part=""):
    """Modules by b's paths, a's where it is another: two, or one and more."""
    a, b = places[0]
    name = b if re.search("[A-Za-z]", b) else f"module {b}"  # of a Sequential
    first = name if a == b else f"{name} ({a} in A)"
    first = f"before {first}" if part == INPUT else first
    if len(places) == 1:
        return first
    both = f"{first} and {places[1][1]}"
    if len(places) == 2 and a == b and len(both) <= BOTH:
        return both
    return f"{first} and {len(places) - 1} more"


def _replayed(each):
    """The proof of a cause by its replay, in words; "" without one."""
    if not {"b", "without"} <= each.errors.keys():
        return ""
    return (f"NumPy gives B to {number(each.errors['b'])} with it, "
            f"{number(each.errors['without'])} off without")


def _unidentified(lost):
    """A CardCause of each that is not identified, each sentence once."""
    made: list[CardCause] = []
    said: set[str] = set()
    room = EVIDENCE
    for each in lost:
        known = dict.fromkeys([*each.known, *each.legend()])
        fresh = [visible(words) for words in known if words not in said]
        said.update(known)
        if fresh[:room] or not made:
            made.append(CardCause(
                "?", "", visible(_where([(each.a, each.b), *each.also],
                                        getattr(each, "part", ""))),
                place_a=_line(each, "a"), place_b=_line(each, "b"),
                expression_a=visible(each.expression_a),
                expression_b=visible(each.expression_b),
                evidence=tuple(fresh[:room])))
        room -= len(fresh[:room])
    return made


def _summary(comparison, causes, lost):
    """How many causes there are, whether proved, and what agrees."""
    if comparison.verdict == MATCH:
        return ("the one array agrees" if comparison.compared == 1 else
                f"{comparison.compared} arrays agree, the outputs included")
    words = []
    if causes and comparison.verdict == DIVERGENCE:
        proved = 0 if lost and not comparison.corrected else sum(
            bool(each.proof) for each in causes)
        words.append(plural(len(causes), "cause") + (
            ", proved" if proved == len(causes) else
            f", {proved} proved" if proved else ""))
    if comparison.verdict == FLOAT32:
        largest = max((row.error for row in comparison.rows if row.diverges
                       and row.error is not None and (
                           row.a == WHOLE or not comparison.decided)),
                      default=0.0)
        words.append(f"largest error {number(largest)}")
    if lost:
        words.append("cause not identified" if not causes
                     else f"{plural(len(lost), 'place')} not identified")
    steps = agreeing(comparison.rows)
    if steps:
        words.append(f"{sum(steps.values())} of "
                     f"{plural(len(steps), 'step')} agree")
    return " · ".join(words)


def _first(comparison):
    """The first step that differs, by how much, and by how much the end.

    What float32 inside makes of a step is no difference to begin with.
    """
    row = comparison.first
    if row is None:
        return ""
    what = {OUTPUT: "", INPUT: "what comes into ", PARAMETER: "the parameter ",
            GRADIENT: "the gradient by "}[row.part]
    error, limit = ((row.error, row.limit) if row.verdict == DIVERGENCE
                    else (row.local, row.local_limit))
    by = f" ({visible(row.reason)})" if error is None else (
        f", {number(error)} (limit {number(limit)})")
    end = max((each.error for each in comparison.rows
               if each.part == OUTPUT and each.a == WHOLE and each.diverges
               and each.error is not None), default=None)
    if any(comparison.roundings.values()) and end is not None:
        return f"As the models are, their outputs differ by {number(end)}."
    last = "" if end is None or row.a == WHOLE else (
        f" Output: {number(end)}.")
    return f"First to differ: {what}{visible(row.a)}{by}.{last}"


def _roundings(sides):
    """The first ROUNDINGS of each side, those that cost most first."""
    return {side: [(visible(str(place)), dtype, cost)
                   for place, dtype, cost in sorted(
                       found, key=lambda each: -(each[2] or 0))[:ROUNDINGS]]
            for side, found in sides.items() if found}


def _notes(comparison):
    """What was compared and what was not, and the first remarks."""
    if comparison.verdict == MATCH:
        yield _largest(comparison)
    yield from comparison.notes[:NOTES]
    if len(comparison.notes) > NOTES:
        yield f"And {plural(len(comparison.notes) - NOTES, 'more note')}."


def _largest(comparison):
    """How near a match came to a limit.

    A guessed pair that differs is no counterpart, and does not count.
    """
    rows = [row for row in comparison.rows
            if row.error and row.limit and row.error <= row.limit]
    if not rows:
        return "Every number is the same."
    row = max(rows, key=lambda row: row.error / row.limit)
    return (f"Nearest to a limit: {row.name}, {number(row.error)} of "
            f"{number(row.limit)}.")
