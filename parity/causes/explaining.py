"""Why two models part: a cause is named where it is proved by numbers.

``explain(comparison, a, b)`` takes each step that a comparison finds to differ
of itself, and computes it once more in NumPy, in float64: with the settings
that give a's numbers, and with each that a port may have by mistake
(parity.causes.replaying). A cause is named only if with it b's numbers come
out, to the last places, without it they do not, and no other one does as well.
Where the models are live, each is run on further inputs of other scales, and
the cause must hold there too.
"""

import dataclasses
import itertools
import math
import re

import numpy as np

from parity.causes import joining, replaying
from parity.causes.joining import Joins, made_of
from parity.causes.replaying import LOWER, Seen, Side, exact, rounded
from parity.comparison.result import (
    INHERITED, INPUT, NEW, OUTPUT, WITHIN)
from parity.matching.steps import NEAR, USER, VALUES, words_of
from parity.numerics.distance import strict_distance
from parity.numerics.tolerances import EPS, model_limits
from parity.numerics.words import number
from parity.tracing.trace import MODULE, is_float

UNIDENTIFIED = "not identified"

#: What is said of parameters that cannot be counterparts.
OTHER = "of another shape"

#: By how much a replay must be nearer than the difference it accounts for.
CLEARLY = 20.0

#: Of larger outputs only one setting at a time is changed.
LARGE = 1 << 15

#: What follows from a norm in another place, and is not told after that.
GUESSED = {"input", "summand", "residual connection"}

#: How many diverging rows are looked into.
MOST_ROWS = 200

#: Scales of the further inputs; in lower precision large ones only blur.
SCALES, NARROW = (0.02, 12.0), (0.05, 2.0)


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

    @property
    def identified(self):
        """Whether a cause is named."""
        return self.cause != UNIDENTIFIED

    def text(self):
        """The sentence, with what is known and where else it is so."""
        also = [one if one == two else f"{one} ({two} in b)"
                for one, two in self.also]
        return " ".join([self.sentence, *self.known] + (
            [f"The same in {', '.join(also)}."] if also else []))

    def as_json(self):
        """All of it as plain data."""
        found = dataclasses.asdict(self)
        found["errors"] = {
            name: error if math.isfinite(error) else None
            for name, error in self.errors.items()}
        return found


# One module of one model, and what it was seen to do

def is_mask(name, array):
    """Whether an input says what may be seen, and is no feature."""
    if not is_float(array) or "mask" in name:
        return True
    return not np.isfinite(array).all() or bool(
        array.size and np.isin(array, (0, 1)).all())


def _seen(inputs, output):
    floats, others = {}, {}
    for name, array in inputs.items():
        (others if is_mask(name, array) else floats)[name] = exact(array)
    return Seen(floats, others, exact(output))


def side_of(trace, path, output):
    """A Side, its module run on further inputs where the trace is live."""
    step = trace.step(path)
    below = "" if step.module == "(model)" else f"{step.module}."
    parameters = {
        name[len(below):]: exact(trace.parameters[
            trace.aliases.get(name, name)])
        for name in (*trace.parameters, *trace.aliases)
        if name.startswith(below)
        and trace.aliases.get(name, name) in trace.parameters}
    made = step.outputs[output]
    found = [_seen(step.inputs, made)]
    for probe in probes(step, found[0]) if trace.live else ():
        try:
            again = trace.rerun(path, probe)
        except Exception:  # a foreign module may refuse
            continue
        if output in again and again[output].shape == made.shape:
            given = {name: probe.get(name, array)
                     for name, array in step.inputs.items()}
            found.append(_seen(given, again[output]))
    dtype = made.dtype.name
    return Side(trace.framework, step, parameters, found,
                model_limits(dtype)[0 if dtype == "float32" else 1], dtype)


def probes(step, seen):
    """Yield further inputs: scaled, and drawn anew."""
    names = list(seen.floats)
    if step.source != MODULE:
        return
    draw = np.random.default_rng(0)
    if not names:
        yield {name: draw.integers(
            0, array.max(), array.shape, endpoint=True).astype(array.dtype)
            for name, array in step.inputs.items()
            if array.dtype.kind in "iu" and array.size
            and array.min() >= 0}
        return
    wide = all(step.inputs[name].dtype == np.float64 for name in names)
    for scale in SCALES if wide else NARROW:
        yield {name: (step.inputs[name].astype(np.float64) * scale).astype(
            step.inputs[name].dtype) for name in names}
    drawn = {}  # what was one array stays one
    for name in names:
        array = step.inputs[name]
        drawn[name] = next(
            (drawn[other] for other in drawn
             if np.array_equal(step.inputs[other], array)),
            (draw.normal(size=array.shape) + 0.3).astype(array.dtype))
    yield drawn


def misfit(family, side, parameters, settings, enough=math.inf):
    """The largest error of a replay, in units of the side's limit."""
    worst = 0.0
    for seen in side.seen:
        try:
            made = family.compute(seen, parameters, settings)
        except (ValueError, IndexError, TypeError):
            return math.inf
        worst = max(worst, strict_distance(made, seen.output) / side.limit)
        if worst > enough:
            return worst
    return worst


# The search

@dataclasses.dataclass
class Fit:
    """Parameters and settings with which a family gives a side's numbers."""

    family: object
    parameters: dict
    settings: dict
    error: float
    changed: tuple = ()


def variants(base, fields, count):
    """Yield settings that differ from others in so many fields."""
    for names in itertools.combinations(fields, count):
        for values in itertools.product(*(
                [v for v in fields[name] if v != base.get(name)]
                for name in names)):
            yield names, base | dict(zip(names, values))


def fits(family, side, base=None, most=2):
    """Every Fit with as few changed fields as possible.

    Args:
        family: a Family.
        side: a Side.
        base: settings to begin with, instead of what is usual.
        most: how many fields may be changed.
    """
    found = []
    if side.seen[0].output.size > LARGE:
        most = 1
    for parameters in family.readings(side):
        fields = family.fields(side, parameters)
        start = {name: values[0] for name, values in fields.items()}
        start |= {name: value for name, value in (base or {}).items()
                  if name in fields and not family.is_own(name)}
        for name, value in start.items():
            fields[name] = [value, *(v for v in fields[name] if v != value)]
        for count in range(most + 1):
            if found and count > len(found[0].changed):
                break
            here = []
            for names, settings in variants(start, fields, count):
                error = misfit(family, side, parameters, settings, 1.0)
                if error <= 1:
                    here.append(Fit(family, parameters, settings,
                                    error * side.limit, names))
            if here:
                if found and count < len(found[0].changed):
                    found = []
                found += here
                break
    return found


# How parameters differ

def relation(mine, other, dtype):
    """How b's array is made of a's, in words; "" where they are equal."""
    if mine is None or other is None:
        if mine is other:
            return ""
        present = mine if other is None else other
        if not present.any():
            return ""
        return "missing in b" if other is None else "missing in a"
    if mine.shape != other.shape:
        return OTHER
    eps = EPS.get(dtype, EPS["float64"])
    scale = np.abs(mine).max()
    if np.abs(mine - other).max() <= eps * scale:
        return ""
    if not other.any():
        return "zero in b"
    if (other == 1).all():
        return "one everywhere in b"
    if not mine.any():
        return "zero in a"
    for name in LOWER:
        if EPS[name] > eps and np.array_equal(rounded(mine, name), other):
            return f"rounded to {name} in b"
        if EPS[name] > eps and np.array_equal(rounded(other, name), mine):
            return f"rounded to {name} in a"
    if mine.ndim == 2 and mine.shape[0] == mine.shape[1] and (
            np.array_equal(mine.T, other)):
        return "transposed"
    if other.ndim == 2 and np.array_equal(other[:, ::-1], mine):
        return "in b with its columns in reverse order"
    if np.array_equal(np.sort(mine, None), np.sort(other, None)):
        return "in b the same numbers in another order"
    with np.errstate(all="ignore"):
        factor = float((other * mine).sum() / (mine * mine).sum())
    if np.abs(mine * factor - other).max() <= 8 * eps * np.abs(other).max():
        return f"{factor:.6g} times as large in b"
    gap = np.abs(mine - other)
    return (f"different: {np.count_nonzero(gap > eps * scale)} of "
            f"{mine.size} numbers, by up to {number(float(gap.max()))}")


def differences(first, second, sides):
    """[(cause, in a, in b, (settings, parameters) without it)] of two Fits.

    None where they are of different sizes, and so no counterparts.
    """
    family, found = second.family, []
    names = [name for name in first.settings
             if name in second.settings and not family.is_own(name)
             and first.settings[name] != second.settings[name]]
    for name in names:
        found.append((name, first.settings[name], second.settings[name], (
            second.settings | {name: first.settings[name]},
            second.parameters)))
    found += family.also(first, second, sides)
    roles = [name for name, array in second.parameters.items()
             if not isinstance(array, int)]
    moved = set()
    for name, other in itertools.combinations(roles, 2):
        quad = [fit.parameters[n] for fit in (first, second)
                for n in (name, other)]
        if any(array is None for array in quad):
            continue
        if (np.array_equal(quad[0], quad[3])
                and np.array_equal(quad[1], quad[2])
                and not np.array_equal(quad[0], quad[1])):
            if {name, other} & moved:
                continue
            biases = {f"{n} bias" for n in (name, other)} & set(roles)
            if not all(np.array_equal(first.parameters.get(f"{n} bias"),
                                      second.parameters.get(f"{o} bias"))
                       for n, o in ((name, other), (other, name))):
                biases = set()  # these are not swapped, and told by themselves
            moved |= {name, other} | biases
            found.append((f"{name} and {other}", "as they are", "swapped", (
                second.settings, second.parameters | {
                    n: first.parameters[n]
                    for n in {name, other} | biases})))
    for name in roles:
        words = relation(first.parameters[name], second.parameters[name],
                         sides[1].dtype)
        if words == OTHER:
            return None
        if words and name not in moved:
            settings = second.settings
            if second.parameters[name] is None and name in first.settings:
                settings = settings | {name: first.settings[name]}
            found.append((name, "", words, (
                settings, second.parameters
                | {name: first.parameters[name]})))
    return found


def _words(value):
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def _sentence(pair, cause, mine, other):
    where = pair.a if pair.a == pair.b else f"{pair.a} ({pair.b} in b)"
    if not mine:
        return f"In {where}, {cause}: {other}."
    return f"In {where}, {cause}: {other} in b, {mine} in a."


class Proof:
    """Two sides of a step, and what was proved of them."""

    def __init__(self, pair, side_a, side_b):
        self.pair, self.sides = pair, (side_a, side_b)
        self.known, self.same = [], False

    def find(self, families=replaying.FAMILIES):
        """The Explanations of this step; [] where nothing is identified.

        ``same`` is set where both sides do the same with the same numbers.
        """
        pairs, read = [], None
        for family in families:
            base = fits(family, self.sides[0])
            if not base:
                continue
            mine = base[0]
            read = read or mine
            for other in fits(family, self.sides[1], mine.settings):
                pairs.append((mine, other))
            if pairs:
                break
        if read is None:
            self.known.append("a's own numbers could not be computed anew.")
            return []
        if not pairs:
            told = self.leak(read)
            if told:
                return told
            self.known.append(
                f"a's numbers are those of {read.family.name} with "
                f"{in_words(read.settings)}; no such module with another "
                "setting that is tried gives b's numbers.")
            return []
        told = {}
        for mine, other in pairs:
            found = self.needed(mine, other)
            if found is None:
                continue
            told.setdefault(tuple(
                (cause, _words(one), _words(two))
                for cause, one, two, _, _ in found), (mine, other, found))
        if not told:
            self.known.append(
                "What accounts for b's numbers is too near to what does not.")
            return []
        shared = set.intersection(*map(set, told))
        if len(told) > 1 and shared:
            mine, other, found = next(iter(told.values()))
            told = {"": (mine, other, [each for each in found if (
                each[0], _words(each[1]), _words(each[2])) in shared])}
        if len(told) > 1:
            self.known.append("Several causes account for b's numbers: " + (
                "; or ".join(" and ".join(f"{c}: {two}" for c, _, two in key)
                             or "none" for key in told)) + ".")
            return []
        (mine, other, found), = told.values()
        if not found:
            self.same = True
            return []
        return [Explanation(
            self.pair.a, self.pair.b, cause, _words(one), _words(two),
            _sentence(self.pair, cause, _words(one), _words(two)),
            errors={"a": mine.error, "b": other.error, "without": gap},
            inputs={"a": len(self.sides[0].seen),
                    "b": len(self.sides[1].seen)})
            for cause, one, two, _, gap in found]

    def leak(self, mine):
        """That b's result holds only numbers of a lower dtype.

        With a's settings it must come out but for that dtype's rounding.
        """
        first, side = self.sides
        for parameters in mine.family.readings(side):
            settings = {name: values[0] for name, values in
                        mine.family.fields(side, parameters).items()}
            settings |= {name: value for name, value in mine.settings.items()
                         if name in settings and not mine.family.is_own(name)}
            error = misfit(mine.family, side, parameters, settings)
            error *= side.limit
            for name in ("bfloat16", "float16", "float32"):
                if (EPS[name] <= EPS.get(side.dtype, 1)
                        or not all(np.array_equal(
                            rounded(seen.output, name), seen.output)
                            for seen in side.seen)
                        or np.array_equal(rounded(first.seen[0].output, name),
                                          first.seen[0].output)):
                    continue
                if error <= 4 * EPS[name]:
                    return [Explanation(
                        self.pair.a, self.pair.b, "result", first.dtype,
                        f"numbers of {name}", _sentence(
                            self.pair, "result", first.dtype,
                            f"numbers of {name}"),
                        [f"Every number of b's is one that {name} can hold."],
                        {"a": mine.error, "b": error, "without": error},
                        {"a": len(first.seen), "b": len(side.seen)})]
        return []

    def needed(self, mine, other):
        """The differences of two Fits without which b's numbers do not come.

        None if what is left comes too near to b's numbers to tell.
        """
        found, side, unsure = [], self.sides[1], False
        differ = differences(mine, other, self.sides)
        if differ is None:
            return None
        for cause, one, two, (settings, parameters) in differ:
            gap = misfit(other.family, side, parameters, settings)
            gap *= side.limit
            if gap <= side.limit:
                continue  # without it b's numbers come out as well
            if gap < CLEARLY * max(other.error, EPS.get(side.dtype, 0)):
                return None
            if cause in mine.settings and misfit(
                    mine.family, self.sides[0], mine.parameters,
                    mine.settings | {cause: two}, 1.0) <= 1:
                unsure = True  # a may do the same where it matters
                continue
            found.append((cause, one, two, None, gap))
        return found if found or not unsure else None


def in_words(settings):
    """Settings that say something, in words."""
    return ", ".join(f"{name} {_words(value)}"
                     for name, value in settings.items())


# What is known all the same

def facts(a, b, pair, row, sides):
    """Sentences on a step whose cause is not identified."""
    mine, other = (side.seen[0].output for side in sides)
    inputs = row.inherited
    if inputs is not None and math.isfinite(inputs):
        yield f"Its inputs differ by {number(inputs)}."
    if row.local is not None:
        yield f"On a's own inputs it differs by {number(row.local)}."
    steps = a.step(pair.a), b.step(pair.b)
    if steps[1].settings.get("use_fast_variance") is True:
        yield ("b's variance is mean(x²) - mean(x)² (use_fast_variance), which "
               "loses digits where the mean is large.")
    for name in sorted(steps[0].settings.keys() & steps[1].settings.keys()):
        one, two = (step.settings[name] for step in steps)
        if one != two and not (isinstance(one, str) and name == "name"):
            yield f"Its setting {name} is {one} in a and {two} in b."
    if mine.shape == other.shape and not is_float(row_array(a, row)):
        return
    if mine.shape != other.shape:
        return
    with np.errstate(all="ignore"):
        good = np.isfinite(mine) & np.isfinite(other)
        if not good.all():
            yield (f"{np.isnan(other).sum()} of b's numbers are NaN, and "
                   f"{np.isnan(mine).sum()} of a's.")
        ratio = other[good] / mine[good]
        gap = (other - mine)[good]
        limit = sides[1].limit
        if ratio.size > 1 and np.ptp(ratio) <= 8 * limit * abs(ratio[0]):
            yield f"b is a {float(np.median(ratio)):.6g}-fold of a."
        elif gap.size > 1 and np.ptp(gap) <= limit * np.abs(other[good]).max():
            yield f"b is a and {float(np.median(gap)):.6g}."
        elif np.array_equal(np.sort(mine, None), np.sort(other, None)):
            yield "b holds a's numbers in another order."
    if mine.ndim > 1:
        rows = np.abs(mine - other).reshape(-1, mine.shape[-1]).max(-1)
        off = ~(rows <= limit * np.nanmax(np.abs(mine)))
        if 0 < off.sum() < off.size:
            yield f"{off.sum()} of {off.size} rows differ."
    for name in ("bfloat16", "float16", "float32"):
        if EPS[name] > EPS.get(sides[1].dtype, 1) and (
                np.array_equal(rounded(other, name), other)
                and not np.array_equal(rounded(mine, name), mine)):
            yield f"Every number of b's is one that {name} can hold."
            break
    else:
        far = strict_distance(other, mine)
        if sides[1].dtype == "float64" and 1e-10 < far < 1e-5:
            yield ("The difference is of the size of float32's rounding, so "
                   "that something inside may be computed in it.")


def row_array(a, row):
    """a's array of an output row."""
    return a.step(row.a).outputs[row.a_name]


# All together

class Explaining:
    """What the explanations of one comparison share."""

    def __init__(self, comparison, a, b):
        self.comparison, self.a, self.b = comparison, a, b
        self.pairs = {(pair.a, pair.b): pair
                      for pair in comparison.names.steps}
        self.joins = Joins(comparison.names, a, b)
        self.found, self.seen, self.order = [], set(), {}
        self.now, self.known = 0, []
        self.lost = []  # [(row, Explanation)] of what is not identified

    def run(self):
        """Every Explanation."""
        rows = [row for row in self.comparison.rows if row.diverges
                and row.part in (INPUT, OUTPUT)]
        rows.sort(key=lambda row: row.order)
        for row in rows[:MOST_ROWS]:
            self.now, self.known = row.order, []
            pair = self.pairs[row.a, row.b]
            if row.part == INPUT:
                if not self.join(pair, row) and row is rows[0]:
                    self.lose(pair, row, self.known)
                continue
            inside = any(self.within(each, row) for each in self.found)
            if row.origin == INHERITED or row.origin == WITHIN and inside:
                if row.origin == WITHIN:
                    self.join(pair, row)
                continue
            self.output(pair, row)
        for row, each in self.lost:
            if not any(self.encloses(other, row) for other in self.found):
                self.order[id(each)] = row.order
                self.found.append(each)
        return sorted(self.found, key=lambda each: self.order[id(each)])

    def output(self, pair, row):
        """Explain what a step made."""
        if not is_float(row_array(self.a, row)):
            return None
        if not self.fair(pair, row):
            return self.lose(pair, row, [
                "Whether the two modules are each other's counterparts is not "
                "sure."]) if row is self.comparison.first else None
        sides = (side_of(self.a, row.a, row.a_name),
                 side_of(self.b, row.b, row.b_name))
        proof = Proof(pair, *sides)
        told = proof.find()
        if told:
            return self.add(told)
        if self.join(pair, row) or row.origin != NEW:
            return None
        return self.lose(pair, row, [
            *proof.known, *facts(self.a, self.b, pair, row, sides)])

    def fair(self, pair, row):
        """Whether the two steps are each other's counterparts.

        Those with parameters are if these are; others, if they were given the
        same.
        """
        belong = self.joins.belong(pair)
        if belong is not None or row.inherited is not None and (
                row.inherited <= NEAR):
            return belong is not False
        steps = self.a.step(row.a), self.b.step(row.b)
        names = [next((name for name, array in step.inputs.items()
                       if is_float(array)), None) for step in steps]
        if None in names:
            return row.inherited is None and pair.by in (VALUES, USER)
        limit = model_limits(self.a.dtype or "float64")[1]
        made = [self.joins.opened(made_of(trace, step, INPUT, name, limit),
                                  trace, limit)
                for trace, step, name in zip((self.a, self.b), steps, names)]
        return None not in made and self.joins.difference(
            *made, steps[0], limit) is None

    def join(self, pair, row):
        """Explain how a value was made of those before; whether that was
        found, be it the same in both."""
        steps = self.a.step(row.a), self.b.step(row.b)
        part = row.part
        arrays = [(step.inputs if part == INPUT else step.outputs)[name]
                  for step, name in zip(steps, (row.a_name, row.b_name))]
        if arrays[0].dtype.kind in "iu" and arrays[1].dtype.kind in "iu":
            return self.counted(row, *arrays)
        key = self.a.hash_of(arrays[0]), self.b.hash_of(arrays[1])
        if key in self.seen:
            return True
        made = [made_of(trace, step, part, name,
                        model_limits(array.dtype.name)[1])
                for trace, step, name, array in zip(
                    (self.a, self.b), steps, (row.a_name, row.b_name),
                    arrays)]
        made = [self.joins.opened(each, trace,
                                  model_limits(array.dtype.name)[1])
                for each, trace, array in zip(
                    made, (self.a, self.b), arrays)]
        if None in made:
            if part == INPUT and self.core(pair, row, steps, arrays):
                return True
            self.known = [
                f"It is {joining.in_words(each)} in {side}." if each else
                f"How it is made in {side} is not known."
                for side, each in zip("ab", made)]
            return False
        difference = self.joins.difference(
            *made, steps[0], model_limits(arrays[1].dtype.name)[1])
        if difference is None or any(
                each.cause == "norm's place" for each in self.found) and (
                    difference[0] in GUESSED):
            self.seen.add(key)
            return True
        if difference[0] == "norm's place" and any(
                each.cause == difference[0] and each.in_a != difference[1]
                for each in self.found):
            return False
        if difference == joining.UNSURE:
            return self.fused(pair, made, arrays)
        self.seen.add(key)
        cause, mine, other = difference
        where = "the input" if part == INPUT else "the output"
        at = row.a if row.a == row.b else f"{row.a} ({row.b} in b)"
        self.add([Explanation(
            row.a, row.b, cause, mine, other,
            f"In {where} of {at}, {cause}: {other} in b, {mine} in a.",
            [f"It is {joining.in_words(made[0])} in a, and "
             f"{joining.in_words(made[1])} in b."],
            {"a": made[0].error, "b": made[1].error,
             "without": strict_distance(arrays[1].astype(np.float64),
                                 arrays[0].astype(np.float64))},
            {"a": 1, "b": 1})])
        return True

    def fused(self, pair, made, arrays):
        """Explain layers of which one has an activation inside."""
        sides = []
        for trace, each, array in zip((self.a, self.b), made, arrays):
            what, path, name = each.sources[0].places[0]
            if (what != "output" or len(each.sources) > 1
                    or each.form not in ("sum", "function")
                    or not trace.step(path).parameters):
                return False
            side = side_of(trace, path, name)
            side.seen = [dataclasses.replace(
                side.seen[0], output=exact(array))]
            sides.append(side)
        at = dataclasses.replace(
            pair, a=sides[0].step.path, b=sides[1].step.path)
        proof = Proof(at, *sides)
        told = proof.find([replaying.LINEAR])
        self.add(told)
        return bool(told) or proof.same

    def counted(self, row, mine, other):
        """Explain integers that are all off by one number."""
        if mine.size != other.size or mine.size < 2:
            return False
        mine = mine.astype(np.int64).reshape(-1, mine.shape[-1])
        gap = other.astype(np.int64).reshape(mine.shape) - mine
        if np.ptp(gap) or not gap.flat[0]:
            return False
        runs = (np.diff(mine) == 1).all() and mine.shape[1] > 1
        cause, one, two = "first position", mine[0, 0], other.flat[0]
        if not runs:
            cause, one, two = "numbers", "", f"{gap.flat[0]:+d} in b"
        self.add([Explanation(
            row.a, row.b, cause, str(one), str(two), _sentence(
                row, cause, str(one), str(two)),
            errors={"a": 0.0, "b": 0.0, "without": math.inf},
            inputs={"a": 1, "b": 1})])
        return True

    def holder(self, row):
        """Explain the attention that holds a step, whether it could be."""
        began, ended = self.interval(row.a)
        outer = [each for each in self.comparison.rows
                 if each.part == OUTPUT and each.diverges
                 and self.interval(each.a)[0] < began
                 and self.interval(each.a)[1] > ended
                 and is_float(row_array(self.a, each))]
        for each in sorted(outer, key=lambda each: each.order)[:2]:
            if any(self.within(other, each) for other in self.found):
                return False
            sides = (side_of(self.a, each.a, each.a_name),
                     side_of(self.b, each.b, each.b_name))
            told = Proof(self.pairs[each.a, each.b], *sides).find(
                [replaying.ATTENTION])
            if told:
                self.add(told)
                return True
        return False

    def core(self, pair, row, steps, arrays):
        """Explain what attention made of projections seen before."""
        sides = []
        for trace, step, array in zip((self.a, self.b), steps, arrays):
            side = core_side(trace, step, array)
            if side is None:
                return False
            sides.append(side)
        proof = Proof(pair, *sides)
        told = proof.find([replaying.Core()])
        if told and not self.holder(row):
            self.add(told)
        return bool(told) or proof.same

    def interval(self, path):
        """When a step of a began and ended."""
        step = self.a.step(path)
        return step.began, step.ended

    def within(self, each, row):
        """Whether an identified cause stands inside a row's step."""
        began, ended = self.interval(row.a)
        return each.identified and any(
            began < first and last < ended for first, last in (
                self.interval(path) for path in (
                    each.a, *(one for one, _ in each.also))))

    def encloses(self, each, row):
        """Whether an identified cause is of what holds a row's step."""
        began, ended = self.interval(row.a)
        first, last = self.interval(each.a)
        return each.identified and first <= began and ended <= last

    def lose(self, pair, row, known):
        """Put down that a row's cause is not identified."""
        what = f"the input {row.a_name} of " if row.part == INPUT else ""
        self.lost.append((row, Explanation(
            pair.a, pair.b, UNIDENTIFIED, known=known,
            sentence=f"Why {what}{pair.a} differs is not identified.")))

    def add(self, told):
        """Put Explanations to others, the same cause told once."""
        for new in told:
            for old in self.found:
                if told_alike(new, old):
                    if [new.a, new.b] not in [[old.a, old.b], *old.also]:
                        old.also.append([new.a, new.b])
                    break
            else:
                self.order[id(new)] = self.now
                self.found.append(new)


def told_alike(new, old):
    """Whether two Explanations say the same of several layers."""
    texts = [(each.cause, each.in_a, each.in_b) for each in (new, old)]
    if new.cause == "input":
        texts = [[re.sub(r"\d+", "#", text) for text in each]
                 for each in texts]
    return new.identified and texts[0] == texts[1]


def core_side(trace, step, array):
    """A Side of the attention between three projections and a step."""
    given = {}
    for each in trace.steps:
        if each.ended >= step.began:
            break
        words = set(words_of(each.path)[0]) & {"query", "key", "value"}
        value = next((v for v in each.outputs.values() if is_float(v)), None)
        if len(words) == 1 and value is not None and value.ndim == array.ndim:
            given[words.pop()] = exact(value)
    if len(given) < 3:
        return None
    holders = [each for each in trace.steps
               if each.began < step.began and each.ended > step.ended
               and each.source == MODULE]
    others, settings = {}, {}
    for each in reversed(holders):  # the innermost last
        settings |= each.settings
        others |= {name: exact(value) for name, value in each.inputs.items()
                   if value.ndim > 1 and is_mask(name, value)}
    bare = dataclasses.replace(step, settings=settings, others={
        name: text for each in holders for name, text in each.others.items()})
    seen = Seen({name: given[name] for name in ("query", "key", "value")},
                others, exact(array))
    return Side(trace.framework, bare, {}, [seen],
                model_limits(array.dtype.name)[1], array.dtype.name)


def explain(comparison, a, b):
    """Say why b differs from a, step by step.

    Args:
        comparison: what comparing.compare found of the two; the result is put
            into its ``explanations`` as well.
        a, b: the Traces.

    Returns:
        A list of Explanations, in order of computation; [] where nothing
        diverges. What has the same cause in several steps is told once.
    """
    comparison.explanations = Explaining(comparison, a, b).run()
    return comparison.explanations
