"""What two expressions differ in: how b makes a value otherwise than a."""

import dataclasses
import typing

import numpy as np

from parity.causes import fit
from parity.causes.cause import OTHER, PRECISION
from parity.causes.cut_tables import first_positions
from parity.causes.expressions import (
    MOST, Made, events, in_words, made_of)
from parity.causes.formulas.scores import UNCAPPED
from parity.causes.formulas.family import Sized, exact
from parity.causes.formulas.tables import sinusoid_settings
from parity.matching.pairs import USER, VALUES
from parity.numerics.words import apart, listed
from parity.tracing.trace import MODULE, WHOLE


class Told(typing.NamedTuple):
    """How two expressions differ.

    Attributes:
        cause: what differs, in a few words.
        in_a, in_b: what it is in each, in words.
        found_a, found_b: {setting: value} as the catalogue has them.
    """

    cause: str
    in_a: str
    in_b: str
    found_a: dict = {}
    found_b: dict = {}


def told(cause, in_a, in_b):
    """A Told whose words are the catalogue's."""
    return Told(cause, in_a, in_b, {cause: in_a}, {cause: in_b})


#: Expressions in which a value goes through a function.
ACTIVATED = "function", "product", "activated sum"

#: What is said where two expressions cannot be held against each other.
UNSURE = Told("", "", "")


def is_kind(trace, path, *words):
    """Whether a step's kind, or its module's name, has one of these words."""
    step = trace.step(path)
    text = f"{step.kind} {step.module.rpartition('.')[2]}".lower()
    return any(word in text for word in words)


def same_value(one, two):
    """Whether two settings are the same, numbers but for rounding."""
    if isinstance(one, float) and isinstance(two, float):
        return abs(one - two) <= 1e-9 * abs(one)
    return one == two


def worded_cap(cap):
    """A cap, or that there is none."""
    return cap if isinstance(cap, str) else f"{cap:g}"


def holds(trace, path):
    """Whether a step's module, or one within, has parameters to train."""
    step = trace.step(path)
    return step.source == MODULE and any(
        name.startswith(f"{step.module}.") for first in trace.trainable
        for name in (first, *paths_of(trace, first)))


def is_container(trace, path):
    """Whether other steps are within a step."""
    step = trace.step(path)
    return any(step.began < each.began and each.ended < step.ended
               for each in trace.steps)


def paths_of(trace, parameter):
    """The other paths of a parameter that several modules share."""
    return [name for name, first in trace.aliases.items()
            if first == trace.aliases.get(parameter, parameter)]


def worded(name, value, expression):
    """How the catalogue calls a value: a factor by its axis."""
    if "factor" in name:
        return Sized.word_of(value, expression.sources[0].array.shape[-1])
    return value


def of_gate(mine, other, first_is_first):
    """What two products, or a product and a sum, of a gate differ in; None if
    in nothing that is the gate's."""
    forms = {mine.form, other.form}
    if forms == {"product"} and "none" not in (mine.what, other.what) and (
            not first_is_first):
        return told("gate", "as it is", "exchanged")
    if forms == {"product", "activated sum"} and first_is_first and (
            mine.what == other.what):
        return told("gate", *("multiplied" if each.form == "product"
                              else "added" for each in (mine, other)))
    return None


def of_positions(mine, other):
    """What two sums with sinusoids differ in."""
    off = [name for name, value in mine.what.items()
           if not same_value(value, other.what[name])]
    settings = [{name: worded(name, each.what[name], each) for name in off}
                for each in (mine, other)]
    if not off:
        return None
    if len(off) == 1:
        return Told(off[0], *(str(each.what[off[0]])
                              for each in (mine, other)), *settings)
    # Two at once are too many to be told in a word.
    return Told("positions", *("; ".join(
        f"{name} {each.what[name]}" for name in off)
        for each in (mine, other)), *settings)


def are_twins(mine, other):
    """Whether two activations give the same."""
    return mine.form == other.form in ACTIVATED and (
        mine.what in other.twins or other.what in mine.twins)


def are_activated(mine, other):
    """Whether it is activations that two differ in, or that one lacks."""
    forms = {mine.form, other.form}
    return forms in ({"product"}, {"activated sum"}) or (
        forms <= {"sum", "function"} and len(mine.sources) == 1
        and mine.sources[0].array.min() < 0)


def of_activation(mine, other):
    """What two activations are, or that there is none."""
    names = [["none"] if each.form == "sum" else
             [str(each.what), *map(str, each.twins)] for each in (mine, other)]
    return Told("activation", *map(" or ".join, names), *(
        {"activation": each[0]} for each in names))


def of_factor(mine, other, limit):
    """Which factors two values have; None if these are the same."""
    one, two = (1.0 if each.what == "" else each.what
                for each in (mine, other))
    if abs(one - two) <= 4 * limit * abs(one):
        return None
    return Told("factor", *apart(one, two), *(
        {"factor": worded("factor", factor, each)}
        for factor, each in ((one, mine), (two, other))))


def of_cap(mine, other):
    """Which caps two values have; None if these are the same."""
    caps = [each.what if each.form == "cap" else UNCAPPED
            for each in (mine, other)]
    if same_value(*caps):
        return None
    return Told("soft cap", *map(worded_cap, caps), *(
        {"soft cap": cap} for cap in caps))


class Joins:
    """Which values of b are which of a's, and how two are made otherwise."""

    def __init__(self, names, a, b):
        self.a, self.b, self.names = a, b, names
        names = dataclasses.replace(names, steps=[
            pair for pair in names.steps if self.surely(pair)])
        self.steps = {pair.b: pair.a for pair in names.steps}
        self.partners = set(self.steps.values())
        self.places = {
            (what, pair.b, value.b): (what, pair.a, value.a)
            for pair in names.steps
            for what, values in (("input", pair.inputs),
                                 ("output", pair.outputs))
            for value in values}

    def belong(self, pair):
        """Whether the parameters of two steps are each other's counterparts.

        None where neither has any.
        """
        tops = [trace.step(path).module for trace, path in (
            (self.a, pair.a), (self.b, pair.b))]
        if WHOLE in tops:
            return tops[0] == tops[1]
        holders = [holds(trace, path) for trace, path in (
            (self.a, pair.a), (self.b, pair.b))]
        pairs = [(each.a, each.b) for each in self.names.parameters]
        within = [[path.startswith(f"{top}.") for path, top in zip(
            pair, tops)] for pair in pairs]
        if any(one != two for one, two in within):
            return False
        if any(one for one, _ in within) or not any(holders):
            return True if any(holders) else None
        return any(all(
            any(name.startswith(f"{top}.") for name in paths_of(trace, path))
            for trace, path, top in zip((self.a, self.b), pair, tops))
            for pair in pairs)

    def surely(self, pair):
        """Whether two steps do the same, by parameters or by values."""
        belong = self.belong(pair)
        return pair.by in (VALUES, USER) if belong is None else belong

    def same(self, mine, other):
        """Whether b's Value is the counterpart of a's."""
        return any(self.places.get(place) in mine.places
                   for place in other.places)

    def opened(self, expression, trace, limit):
        """A Made that speaks of values which both models have, if it can.

        The output of a module that the other model has not, and that holds no
        parameters, says less than what it was made of.
        """
        places = self.places.values() if trace is self.a else self.places
        for _ in range(3):
            if (expression is None or expression.form != "sum"
                    or expression.what or len(expression.sources) > 1
                    or any(place in places
                           for place in expression.sources[0].places)):
                break
            what, path, name = expression.sources[0].places[0]
            if path == WHOLE or what == "output" and holds(trace, path):
                break
            inner = made_of(trace, trace.step(path), what, name, limit)
            if inner is None:
                break
            expression = inner
        return self.as_positions(expression, trace, limit)

    def as_positions(self, expression, trace, limit):
        """A sum of a Value and sinusoids as such, and its source opened."""
        if expression is None:
            return expression
        if expression.form == "sum" and len(expression.sources) == 2:
            for value, other in (expression.sources, expression.sources[::-1]):
                rows = other.array.reshape(-1, *other.array.shape[-2:])
                factor = expression.what or 1.0
                if expression.what and value is not expression.sources[0] or (
                        rows != rows[0]).any():
                    continue
                settings = sinusoid_settings(
                    rows[0], limit, fit.sinusoid_values())
                if settings:
                    expression = Made("positions", [value], settings | {
                        "input's factor": factor}, expression.error)
                    break
        places = self.places.values() if trace is self.a else self.places
        if expression.form == "positions" and not any(
                place in places for place in expression.sources[0].places):
            what, path, name = expression.sources[0].places[0]
            inner = what == "input" and path != WHOLE and made_of(
                trace, trace.step(path), what, name, limit)
            if inner and inner.form == "factor":
                factor = inner.what * expression.what["input's factor"]
                expression = Made(
                    "positions", inner.sources,
                    expression.what | {"input's factor": factor},
                    expression.error)
        return expression

    def moved(self, step, pre, limit):
        """A norm's place, where one model has it before a sub-layer.

        Its input is then added, further on, to what was made of its output.

        Args:
            step: a's step, which the other model gives a sum.
            pre: the model that gives it a summand alone.
            limit: how near an expression must come.
        """
        mine = next((path for path, other in self.steps.items()
                     if other == step.path), None)
        first = step if pre is self.a else mine and self.b.step(mine)
        if not first or not is_kind(pre, first.path, "norm", "ln"):
            return None
        return self.place(pre) if self.around(pre, first, limit) else None

    def place(self, pre):
        """A norm's place in words, ``pre`` having it before a sub-layer."""
        words = "before the sub-layer", "after the sum"
        return told("norm's place", *(
            words if pre is self.a else words[::-1]))

    @staticmethod
    def around(pre, first, limit):
        """Whether what a norm was given is added to what came of it."""
        inputs = [exact(array) for array in first.inputs.values()]
        later = [place for when, place, array in events(pre)
                 if when > first.ended and array.shape == inputs[0].shape]
        for part, path, name in later[:MOST]:
            expression = made_of(pre, pre.step(path), part, name, limit)
            if (expression is None or expression.form != "sum"
                    or len(expression.sources) != 2):
                continue
            around, inner = expression.sources
            if not np.array_equal(around.array, inputs[0]):
                around, inner = inner, around
            if np.array_equal(around.array, inputs[0]) and pre.step(
                    inner.places[0][1]).began > first.ended:
                return True
        return False

    def difference(self, mine, other, step, limit):
        """How two Mades differ: a Told, None where they are alike, UNSURE where
        that cannot be told.

        ``step`` is a's, to which the value is given or that made it.
        """
        left = list(other.sources)
        gone = []
        for value in mine.sources:
            twin = next((v for v in left if self.same(value, v)), None)
            if twin is None:
                gone.append(value)
            else:
                left.remove(twin)
        if not gone and not left:
            return self.alike(mine, other, limit)
        return (mine.form == other.form == "sum"
                and not mine.what and not other.what
                and self.of_sums(mine, other, gone, left, step, limit)
                or self.elsewhere(mine, other, gone, left))

    def of_sums(self, mine, other, gone, left, step, limit):
        """How two sums differ of which a's alone has the values ``gone``, and
        b's alone those ``left``; None where that cannot be told."""
        if len(mine.sources) > len(other.sources) and not left:
            return (self.moved(step, self.b, limit)
                    or told(self.added(mine, gone, self.a), "there",
                            "missing"))
        if len(other.sources) > len(mine.sources) and not gone:
            return (self.moved(step, self.a, limit)
                    or told(self.added(other, left, self.b), "missing",
                            "there"))
        if not len(gone) == len(left) == 1:
            return None
        if difference := self.between(gone[0], left[0], limit,
                                      len(mine.sources) == 1):
            return difference
        firsts = first_positions((self.a, self.b), (gone[0], left[0]),
                                 self.names.parameters)
        return Told("first position", *map(str, firsts), *(
            {"first position": first} for first in firsts)) if (
            firsts and firsts[0] != firsts[1]) else None

    def elsewhere(self, mine, other, gone, left):
        """That a value is made of others, where each has a counterpart.

        A value that the other model has not may hide anything.
        """
        places = self.places.values()
        if all(any(place in places for place in value.places)
               for value in gone) and all(
                   any(place in self.places for place in value.places)
                   for value in left):
            words = [in_words(mine), in_words(other)]
            if words[0] == words[1]:  # of other modules of the same name
                words[1] += f" ({self.counterparts(left)} in a)"
            return Told("input", *words, found_b={"input": OTHER})
        return UNSURE

    def counterparts(self, values):
        """What b's Values are in a, in words."""
        return listed([next(
            f"{path}'s {what}" for place in value.places
            if place in self.places
            for what, path, _ in [self.places[place]]) for value in values])

    @staticmethod
    def added(expression, values, trace):
        """What a summand is: a residual, if it went into another one."""
        inputs = {path for what, path, _ in values[0].places
                  if what == "input" and path != WHOLE}
        others = [value for value in expression.sources
                  if value is not values[0]]
        ended = max((trace.step(path).ended for value in others
                     for what, path, _ in value.places[:1]), default=0)
        within = any(trace.step(path).began < ended and holds(trace, path)
                     for path in inputs)
        embeds = any(is_kind(trace, path, "embed", "position")
                     and not is_container(trace, path)
                     for value in expression.sources
                     for what, path, _ in value.places if what == "output")
        return ("residual connection"
                if within and len(values) == 1 and not embeds else "summand")

    def alike(self, mine, other, limit):
        """The difference of two Mades of the same sources."""
        forms = {mine.form, other.form}
        first_is_first = self.same(mine.sources[0], other.sources[0])
        if gate := of_gate(mine, other, first_is_first):
            return gate
        if (mine.form, mine.what) == (other.form, other.what):
            return None if mine.inside == other.inside else told(PRECISION, *(
                "in float32" if each.inside else "in float64"
                for each in (mine, other)))
        if forms == {"positions"}:
            return of_positions(mine, other)
        if are_twins(mine, other):
            return None
        if are_activated(mine, other):
            return of_activation(mine, other)
        if forms <= {"sum", "factor"} and (
                first_is_first or not (mine.what and other.what)):
            return of_factor(mine, other, limit)
        if forms in ({"cap"}, {"cap", "sum"}):
            return of_cap(mine, other)
        if forms in ({"dropped"}, {"dropped", "sum"}):
            return told("dropout", *("on" if each.form == "dropped" else "off"
                                     for each in (mine, other)))
        return UNSURE

    def between(self, mine, other, limit, alone):
        """What one norm more, or less, or elsewhere, makes of a value."""
        counts = [sum(is_kind(trace, step.path, "norm", "ln") and not any(
            inner.began > step.began and inner.ended < step.ended
            for inner in steps) for step in steps)
            for trace in (self.a, self.b)
            for steps in [[s for s in trace.steps if s.source == MODULE]]]
        for trace, last, first, more, partners in (
                (self.b, other, mine, "there", self.steps),
                (self.a, mine, other, "missing", self.partners)):
            for what, path, _ in last.places:
                step = trace.step(path)
                if what != "output" or path == WHOLE:
                    continue
                if not self.fed(step, first, trace) or not is_kind(
                        trace, path, "norm", "ln"):
                    continue
                if alone and self.around(trace, step, limit):
                    # One more may end the stack; more are norms beside.
                    return (self.place(trace)
                            if abs(counts[0] - counts[1]) < 2 else None)
                if path in partners:
                    return None
                return told("norm", "missing" if trace is self.b else "there",
                            more)
        return None

    def fed(self, step, value, trace):
        """Whether a step was given the counterpart of the other's Value."""
        hashes = {trace.hash_of(array) for array in step.inputs.values()}
        places = {place for _, place, array in events(trace)
                  if trace.hash_of(array) in hashes}
        if trace is self.b:
            return any(self.places.get(place) in value.places
                       for place in places)
        return any(self.places.get(other) in places
                   for other in value.places)
