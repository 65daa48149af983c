"""What is said of why one step differs."""

import dataclasses
import math

from parity.causes import catalogue
from parity.causes.cause import OTHER
from parity.numerics.words import apart

UNIDENTIFIED = "not identified"


@dataclasses.dataclass
class Explanation:
    """Why one step differs, or that this is not known.

    Attributes:
        a, b: paths of the step.
        cause: what differs, in a few words, or UNIDENTIFIED.
        in_a, in_b: what it is in each, in words; "" if not identified.
        sentence: the whole in words.
        known: what else is known, a sentence each.
        errors: how near the replays came: {"a": …, "b": …, "without": …}, the
            last being b's without the cause; empty if not identified.
        inputs: how many inputs it was proved on: {"a": …, "b": …}.
        also: [a, b] of further steps with the same cause.
        names: {name in the catalogue: "a" or "b", which has it}.
        place_a, place_b: the line of source, as "port.py:44", or "".
        called_a, called_b: the line at which the function of that line was
            called, at which what it reads was handed on, or at which what it
            sets is used; or "".
        made_a, made_b: of a missing step, the line that makes what lacks it:
            the step has to stand between the two; or "".
        expression_a, expression_b: what each computes there, over names that
            both have, or "".
        proof: what was put into b and what its output then was, a sentence;
            "" where nothing was tried.
        write: what to write in b's framework instead, or "".
        letters: what each letter in what is told stands for.
    """

    a: str
    b: str
    cause: str
    in_a: str = ""
    in_b: str = ""
    sentence: str = ""
    known: list = dataclasses.field(default_factory=list)
    errors: dict = dataclasses.field(default_factory=dict)
    inputs: dict = dataclasses.field(default_factory=dict)
    also: list = dataclasses.field(default_factory=list)
    names: dict = dataclasses.field(default_factory=dict)
    place_a: str = ""
    place_b: str = ""
    called_a: str = ""
    called_b: str = ""
    made_a: str = ""
    made_b: str = ""
    expression_a: str = ""
    expression_b: str = ""
    proof: str = ""
    write: str = ""
    letters: dict = dataclasses.field(default_factory=dict)

    @property
    def identified(self):
        """Whether a cause is named."""
        return self.cause != UNIDENTIFIED

    def legend(self):
        """What each letter stands for, a sentence each."""
        return [f"{letter} is {text}."
                for letter, text in self.letters.items()]

    def text(self):
        """The sentence, with what is known and where else it is so."""
        also = [one if one == two else f"{one} ({two} in b)"
                for one, two in self.also]
        return " ".join([
            self.sentence,
            *(f"{side} has “{name}”: {catalogue.by_name(name).sentence}"
              for name, side in self.names.items()), *self.known,
            *self.legend()] + (
            [f"The same in {', '.join(also)}."] if also else []))

    def as_json(self):
        """All of it as plain data."""
        data = dataclasses.asdict(self)
        data["errors"] = {
            name: error if math.isfinite(error) else None
            for name, error in self.errors.items()}
        return data


def in_words(value):
    """A value of a setting."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def in_words_apart(one, two):
    """Two values of a setting, which are not the same."""
    if isinstance(one, float) and isinstance(two, float):
        return apart(one, two)
    return in_words(one), in_words(two)


def sentence_of(pair, cause, in_a, in_b):
    """What differs in a step of both, in words."""
    where = pair.a if pair.a == pair.b else f"{pair.a} ({pair.b} in b)"
    if not in_a:
        return f"In {where}, {cause}: {in_b}."
    return f"In {where}, {cause}: {in_b} in b, {in_a} in a."


def give_names(explanations, of, found_a, found_b):
    """Let Explanations of one step say what the catalogue calls them.

    Args:
        explanations: the Explanations.
        of: by which formula they were found.
        found_a, found_b: {setting: value} of each model; all that is known of
            it, so that of what both are, each is beside the other.
    """
    either = found_a.keys() | found_b.keys()
    left = {each.cause for each in explanations} & either or either
    others = dict.fromkeys(left, OTHER)
    for side, mine, other in (("b", found_b, found_a), ("a", found_a, found_b),
                              ("b", others, {})):
        for cause, hits in catalogue.named(of, {
                name: value for name, value in mine.items()
                if name in left}, other):
            left -= hits
            for each in explanations:
                if each.cause in hits or len(explanations) == 1:
                    each.names[cause.name] = side
