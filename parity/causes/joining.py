"""What stands between modules: how a value is made of those before it.

A residual connection, a functional activation, a scale or sinusoids belong to
no module, so that they are not seen. But their result is, as another module's
input or as the output of what holds them. ``made_of`` finds the expression of
earlier values that gives it, to the last places.
"""

import dataclasses
import itertools
import math

import numpy as np

from parity.causes.replaying import ACTIVATIONS, exact, sinusoid_settings
from parity.matching.rearrangement import probes
from parity.matching.steps import USER, VALUES
from parity.numerics.distance import strict_distance
from parity.tracing.trace import MODULE, WHOLE, is_float

#: What is said where two expressions cannot be held against each other.
UNSURE = ("", "", "")

#: How many earlier values are looked at.
MOST = 40


@dataclasses.dataclass(eq=False)
class Value:
    """An array of a run, with every place where it stood.

    Attributes:
        array: in float64.
        places: ("input" or "output", path of the step, name), first to last.
    """

    array: np.ndarray
    places: list


@dataclasses.dataclass(eq=False)
class Made:
    """An expression that gives a value.

    Attributes:
        form: "sum", "function", "factor", "rows", "dropped", "positions".
        sources: Values.
        what: the activation, the factor, the share that was dropped and the
            rest's factor, or the settings of sinusoids.
        error: how near it comes.
        twins: activations that give the same.
    """

    form: str
    sources: list
    what: object
    error: float
    twins: list = dataclasses.field(default_factory=list)


def earlier(trace, step, part):
    """The Values that were there before a step began, or ended.

    Args:
        trace: a Trace.
        step: one of its steps.
        part: "input" for those before it began, "output" for before it ended.
    """
    found = {}
    events = []
    for each in trace.steps:
        events += [(each.began, "input", each, name, array)
                   for name, array in each.inputs.items()]
        events += [(each.ended, "output", each, name, array)
                   for name, array in each.outputs.items()]
    until = step.began if part == "input" else step.ended
    for when, what, each, name, array in sorted(
            events, key=lambda event: event[0]):
        if when < until and is_float(array):
            found.setdefault(trace.hash_of(array), (array, []))[1].append(
                (what, each.path, name))
    return found


def spread(array, shape):
    """An array, repeated along the axes that it has not."""
    return array if array.shape == shape else np.broadcast_to(array, shape)


def made_of(trace, step, part, name, limit):
    """How an input or output of a step is made of what was there before.

    Returns:
        A Made, or None where none is found, or more than one.
    """
    target = (step.inputs if part == "input" else step.outputs)[name]
    if not is_float(target) or target.size < 2:
        return None
    known = earlier(trace, step, part)
    # A view with other axes is not looked for.
    same = [(array, places) for array, places in known.values()
            if array.shape == target.shape or target.ndim > 2
            and 1 < array.ndim <= target.ndim
            and array.shape[-2:] == target.shape[-2:]
            and all(n in (1, m) for n, m in zip(
                array.shape[::-1], target.shape[::-1]))]
    key = trace.hash_of(target)
    if key in known:
        return Made("sum", [Value(exact(target), known[key][1])], "", 0.0)
    outer = [(array, places) for array, places in same[:-MOST] if any(
        what == "input" and path == WHOLE for what, path, _ in places)]
    values = [Value(spread(exact(array), target.shape), places)
              for array, places in outer + same[-MOST:]]
    if not values:
        return None
    x = exact(target)
    good = x.reshape(-1)[probes(x.size)]
    scale = float(np.sqrt(np.square(good).mean())) or 1.0
    table = np.stack([v.array.reshape(-1)[probes(x.size)] for v in values])

    def near(candidates, rest=0.0):
        """Which rows of candidates, and what is added, give the target."""
        with np.errstate(all="ignore"):
            gap = np.abs(candidates + rest - good).max(-1)
        return np.flatnonzero(gap <= 64 * limit * scale)

    def error_of(made):
        return strict_distance(made, x)

    found = []

    def take(form, sources, what, made):
        error = error_of(made)
        if error <= limit:
            found.append(Made(form, sources, what, error))

    for i in near(table):
        take("sum", [values[i]], "", values[i].array)
    if found:
        return found[0] if len(found) == 1 else None
    for i in range(len(values)):
        for j in near(table[i:], table[i]) + i:
            take("sum", [values[i], values[j]], "",
                 values[i].array + values[j].array)
    if found:
        return found[0] if len(found) == 1 else None
    for value, row in zip(values, table):
        before = len(found)
        for word, function in ACTIVATIONS.items():
            if "softmax" not in word and word != "none" and len(
                    near(function(row)[None])):
                take("function", [value], word, function(value.array))
        if x.ndim > 1:
            for word in ("softmax", "log-softmax"):
                take("function", [value], word,
                     ACTIVATIONS[word](value.array))
        # relu6 and relu may be one: the commoner is taken, with the rest.
        for other in found[before + 1:]:
            found[before].twins.append(other.what)
        del found[before + 1:]
    if found:
        return found[0] if len(found) == 1 else None
    for value, row in zip(values, table):
        with np.errstate(all="ignore"):
            factor = float((row @ good) / (row @ row))
        if math.isfinite(factor) and len(near(factor * row[None])):
            a, b = value.array.reshape(-1), x.reshape(-1)
            factor = float((a @ b) / (a @ a))
            take("factor", [value], factor, factor * value.array)
    if found:
        return found[0] if len(found) == 1 else None
    for value in values:
        zero = ~x.reshape(-1, x.shape[-1]).any(-1)
        if 0 < zero.sum() < zero.size:
            take("rows", [value], f"{zero.sum()} of {zero.size}",
                 value.array * ~zero.reshape(x.shape[:-1])[..., None])
        dropped = share_dropped(value.array, x, limit)
        if dropped:
            found.append(Made("dropped", [value], dropped, 0.0))
    if found:
        return found[0] if len(found) == 1 else None
    size = x.shape[-1]
    for i, factor in itertools.product(range(len(values)), (
            size**0.5, size**-0.5)):
        for j in near(table, factor * table[i]):
            if i != j:
                take("sum", [values[i], values[j]], factor,
                     factor * values[i].array + values[j].array)
    if len(values) <= MOST // 2:
        for i, j in itertools.combinations(range(len(values)), 2):
            for k in near(table[j + 1:], table[i] + table[j]) + j + 1:
                take("sum", [values[i], values[j], values[k]], "",
                     values[i].array + values[j].array + values[k].array)
            for first, factor in itertools.product(range(len(values)), (
                    size**0.5, size**-0.5)):
                if first not in (i, j) and len(near(
                        table[i:i + 1], table[j] + factor * table[first])):
                    take("sum", [values[first], values[i], values[j]], factor,
                         factor * values[first].array + values[i].array
                         + values[j].array)
    if not found and x.ndim > 1:
        for value, factor in itertools.product(
                values, (1.0, size**0.5, size**-0.5)):
            rest = (x - factor * value.array).reshape(-1, *x.shape[-2:])
            if np.abs(rest - rest[0]).max() > limit * scale:
                continue
            settings = sinusoid_settings(rest[0], limit * max(scale, 1))
            if settings:
                found.append(Made("positions", [value], settings | {
                    "input's factor": factor}, 0.0))
        # A value, and a multiple of it that was there too, are one.
        if len({str(made.what | {"input's factor": 1})
                for made in found}) == 1:
            found = [min(found, key=lambda m: m.what["input's factor"] != 1)]
    return found[0] if len(found) == 1 else None


def share_dropped(x, y, limit):
    """(share of zeros, factor of the rest) if y is x with numbers dropped."""
    kept = (y != 0) & (x != 0)
    share = 1 - kept.sum() / max((x != 0).sum(), 1)
    if x.shape != y.shape or kept.sum() < 8 or not 0.005 < share < 0.995:
        return None
    ratio = y[kept] / x[kept]
    factor = float(np.median(ratio))
    if np.abs(ratio - factor).max() > limit * abs(factor) or factor < 1:
        return None
    # Dropped by chance: as often as the factor says, whatever the sign.
    rate, count = 1 - 1 / factor, (x != 0).sum()
    spread = 5 * math.sqrt(max(rate * (1 - rate), 1e-3) / count) + 1 / count
    signs = [1 - kept[x * sign > 0].mean() for sign in (1, -1)
             if (x * sign > 0).sum() > 7]
    even = all(abs(each - rate) < 2.5 * spread for each in signs)
    return (share, factor) if abs(share - rate) <= spread and even else None


# What two expressions differ in

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


def holds(trace, path):
    """Whether a step's module, or one within, has parameters to train."""
    step = trace.step(path)
    return step.source == MODULE and any(
        name.startswith(f"{step.module}.") for name in trace.trainable)


def label(value):
    """A Value in words: whose output or input it is."""
    outputs = [path for what, path, _ in value.places
               if what == "output" and path != WHOLE]
    if outputs:
        return f"{outputs[0]}'s output"
    what, path, name = value.places[0]
    return "the model's input" if path == WHOLE else f"{path}'s input {name}"


def in_words(made):
    """A Made in words."""
    names = [label(value) for value in made.sources]
    if made.form == "sum":
        if made.what:
            names[0] = f"{made.what:.6g} times {names[0]}"
        return " and ".join(names)
    if made.form == "factor":
        return f"{made.what:.6g} times {names[0]}"
    if made.form == "positions":
        factor = made.what["input's factor"]
        return (f"{names[0]} and sinusoids" if factor == 1 else
                f"{factor:.6g} times {names[0]} and sinusoids")
    if made.form == "rows":
        return f"{names[0]}, {made.what} rows zero"
    if made.form == "dropped":
        return (f"{names[0]}, of which {made.what[0]:.0%} are zero and the "
                f"rest {made.what[1]:.6g}-fold")
    return f"{' or '.join([made.what, *made.twins])} of {names[0]}"


class Joins:
    """Which values of b are which of a's, and how two are made otherwise."""

    def __init__(self, names, a, b):
        self.a, self.b, self.names = a, b, names
        names = dataclasses.replace(names, steps=[
            pair for pair in names.steps if self.surely(pair)])
        self.steps = {pair.b: pair.a for pair in names.steps}
        self.paired = set(self.steps.values())
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
        held = [holds(trace, path) for trace, path in (
            (self.a, pair.a), (self.b, pair.b))]
        within = [[getattr(each, side).startswith(f"{top}.")
                   for side, top in zip("ab", tops)]
                  for each in self.names.parameters]
        if any(one != two for one, two in within):
            return False
        return any(one for one, _ in within) if any(held) else None

    def surely(self, pair):
        """Whether two steps do the same, by parameters or by values."""
        belong = self.belong(pair)
        return pair.by in (VALUES, USER) if belong is None else belong

    def same(self, mine, other):
        """Whether b's Value is the counterpart of a's."""
        return any(self.places.get(place) in mine.places
                   for place in other.places)

    def opened(self, made, trace, limit):
        """A Made that speaks of values which both models have, if it can.

        The output of a module that the other model has not, and that holds no
        parameters, says less than what it was made of.
        """
        known = self.places.values() if trace is self.a else self.places
        for _ in range(3):
            if (made is None or made.form != "sum" or made.what
                    or len(made.sources) > 1
                    or any(place in known
                           for place in made.sources[0].places)):
                break
            what, path, name = made.sources[0].places[0]
            if path == WHOLE or what == "output" and holds(trace, path):
                break
            inner = made_of(trace, trace.step(path), what, name, limit)
            if inner is None:
                break
            made = inner
        return self.as_positions(made, trace, limit)

    def as_positions(self, made, trace, limit):
        """A sum of a Value and sinusoids as such, and its source opened."""
        if made is None:
            return made
        if made.form == "sum" and len(made.sources) == 2:
            for value, other in (made.sources, made.sources[::-1]):
                rows = other.array.reshape(-1, *other.array.shape[-2:])
                factor = made.what or 1.0
                if made.what and value is not made.sources[0] or (
                        rows != rows[0]).any():
                    continue
                settings = sinusoid_settings(rows[0], limit)
                if settings:
                    made = Made("positions", [value], settings | {
                        "input's factor": factor}, made.error)
                    break
        known = self.places.values() if trace is self.a else self.places
        if made.form == "positions" and not any(
                place in known for place in made.sources[0].places):
            what, path, name = made.sources[0].places[0]
            inner = what == "input" and path != WHOLE and made_of(
                trace, trace.step(path), what, name, limit)
            if inner and inner.form == "factor":
                made = Made("positions", inner.sources, made.what | {
                    "input's factor": inner.what * made.what[
                        "input's factor"]}, made.error)
        return made

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
        return "norm's place", *(words if pre is self.a else words[::-1])

    @staticmethod
    def around(pre, first, limit):
        """Whether what a norm was given is added to what came of it."""
        given = [exact(array) for array in first.inputs.values()]
        later = [(each, part, name, array) for each in pre.steps
                 for part, arrays in (("input", each.inputs),
                                      ("output", each.outputs))
                 for name, array in arrays.items()
                 if (each.began if part == "input" else each.ended)
                 > first.ended and array.shape == given[0].shape]
        for each, part, name, array in later[:MOST]:
            made = made_of(pre, each, part, name, limit)
            if made is None or made.form != "sum" or len(made.sources) != 2:
                continue
            around, inner = made.sources
            if not np.array_equal(around.array, given[0]):
                around, inner = inner, around
            if np.array_equal(around.array, given[0]) and pre.step(
                    inner.places[0][1]).began > first.ended:
                return True
        return False

    def difference(self, mine, other, step, limit):
        """(cause, in a, in b) of two Mades, None where they are alike, UNSURE
        where that cannot be told.

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
            return self.alike(mine, other)
        forms = {mine.form, other.form}
        if forms == {"sum"} and not mine.what and not other.what:
            if len(mine.sources) > len(other.sources) and not left:
                return (self.moved(step, self.b, limit)
                        or (self.added(mine, gone, self.a), "there",
                            "missing"))
            if len(other.sources) > len(mine.sources) and not gone:
                return (self.moved(step, self.a, limit)
                        or (self.added(other, left, self.b), "missing",
                            "there"))
            if len(gone) == len(left) == 1:
                found = self.between(gone[0], left[0], limit,
                                     len(mine.sources) == 1)
                if found:
                    return found
        return self.elsewhere(mine, other, gone, left)

    def elsewhere(self, mine, other, gone, left):
        """That a value is made of others, where each has a counterpart.

        A value that the other model has not may hide anything.
        """
        known = self.places.values()
        if all(any(place in known for place in value.places)
               for value in gone) and all(
                   any(place in self.places for place in value.places)
                   for value in left):
            return "input", in_words(mine), in_words(other)
        return UNSURE

    @staticmethod
    def added(made, values, trace):
        """What a summand is: a residual, if it went into another one."""
        inputs = {path for what, path, _ in values[0].places
                  if what == "input" and path != WHOLE}
        others = [value for value in made.sources if value is not values[0]]
        ended = max(trace.step(path).ended for value in others
                    for what, path, _ in value.places[:1])
        within = any(trace.step(path).began < ended and holds(trace, path)
                     for path in inputs)
        embeds = any(is_kind(trace, path, "embed", "position")
                     for value in made.sources
                     for what, path, _ in value.places if what == "output")
        return ("residual connection"
                if within and len(values) == 1 and not embeds else "summand")

    def alike(self, mine, other):
        """The difference of two Mades of the same sources."""
        if (mine.form, mine.what) == (other.form, other.what):
            return None
        forms = {mine.form, other.form}
        if forms == {"positions"}:
            # Two at once are too many to be told in a word.
            off = [name for name, value in mine.what.items()
                   if not same_value(value, other.what[name])]
            if len(off) < 2:
                return next(((name, str(mine.what[name]),
                              str(other.what[name])) for name in off), None)
            return ("positions", *("; ".join(
                f"{name} {made.what[name]}" for name in off)
                for made in (mine, other)))
        if mine.form == other.form == "function" and (
                mine.what in other.twins or other.what in mine.twins):
            return None
        words = ["none" if made.form == "sum" else " or ".join(
            [str(made.what), *map(str, made.twins)])
            for made in (mine, other)]
        if (forms <= {"sum", "function"} and len(mine.sources) == 1
                and mine.sources[0].array.min() < 0):
            return "activation", *words
        if forms <= {"sum", "factor"} and not (
                mine.what and other.what
                and not self.same(mine.sources[0], other.sources[0])):
            one, two = (made.what or 1.0 for made in (mine, other))
            if abs(one - two) <= 1e-6 * abs(one):
                return None
            return "factor", f"{one:.6g}", f"{two:.6g}"
        if "dropped" in forms and forms <= {"sum", "dropped"}:
            return "dropout", *(
                "on" if made.form == "dropped" else "off"
                for made in (mine, other))
        return UNSURE

    def between(self, mine, other, limit, alone):
        """What one norm more, or less, or elsewhere, makes of a value."""
        counts = [sum(is_kind(trace, step.path, "norm", "ln") and not any(
            inner.began > step.began and inner.ended < step.ended
            for inner in steps) for step in steps)
            for trace in (self.a, self.b)
            for steps in [[s for s in trace.steps if s.source == MODULE]]]
        for trace, last, first, more, paired in (
                (self.b, other, mine, "there", self.steps),
                (self.a, mine, other, "missing", self.paired)):
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
                if path in paired:
                    return None
                return ("norm", "missing" if trace is self.b else "there",
                        more)
        return None

    def fed(self, step, value, trace):
        """Whether a step was given the counterpart of the other's Value."""
        known = {trace.hash_of(array) for array in step.inputs.values()}
        for each in trace.steps:
            for what, arrays in (("input", each.inputs),
                                 ("output", each.outputs)):
                for name, array in arrays.items():
                    if trace.hash_of(array) not in known:
                        continue
                    place = what, each.path, name
                    if trace is self.b:
                        if self.places.get(place) in value.places:
                            return True
                    elif any(self.places.get(other) == place
                             for other in value.places):
                        return True
        return False
