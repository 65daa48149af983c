"""Why two models diverge: a cause is named where it is proved by numbers.

``explain(comparison, a, b)`` takes each step that itself differs, not only
its inputs, and computes it once more in NumPy, in float64: with the settings
that give a's numbers, and with each cause of the catalogue. A cause is named
only if NumPy gives b's numbers with it, to the last digits, does not without
it, and does with no other cause. Where the models are live, each is run on
further inputs of other scales, and the cause must hold there too.
"""

import dataclasses

import numpy as np

from parity_io.errors import InputError, plural
from parity.causes import given, nonfinite
from parity.causes.casts import cast, lowered
from parity.causes.cause import BETWEEN
from parity.causes.core_side import core_side
from parity.causes.explanation import Explanation, give_names
from parity.causes.expressions import in_words, made_of
from parity.causes.findings import Findings, following
from parity.causes.fit import (
    ATTENTION, CONVOLUTION, CORE, LINEAR, misfit, side_of)
from parity.causes.formulas.family import exact
from parity.causes.joins import UNSURE, Joins
from parity.causes.step import StepSearch, facts
from parity.comparison.result import INPUT, NEW, OUTPUT, WITHIN, Comparison
from parity.matching.pairs import USER, VALUES
from parity.matching.values import NEAR
from parity.numerics.distance import strict_distance
from parity.numerics.tolerances import model_limits
from parity.tracing.trace import Trace, is_float

#: A norm's place, before a sub-layer or after its sum.
NORM = "norm's place"

#: What follows from a norm in another place, and is not told after it.
GUESSED = {"input", "summand", "residual connection"}

#: How many diverging rows are looked into that are no rounding, and do not
#: follow from others.
MOST_ROWS = 200


def row_array(a, row):
    """a's array of an output row."""
    return a.step(row.a).outputs[row.a_name]


class Explaining:
    """What the explanations of one comparison share."""

    def __init__(self, comparison, a, b):
        self.comparison, self.a, self.b = comparison, a, b
        self.pairs = {(pair.a, pair.b): pair
                      for pair in comparison.names.steps}
        self.joins = Joins(comparison.names, a, b)
        self.findings = Findings(comparison, a)
        self.seen, self.known = set(), []
        self.weights = []  # of attention, that a replay gives
        self.rounding = set()  # pairs of arrays shown to differ by it alone
        self.shown = []  # their rows
        self.lowered = set()  # steps whose input is of lower precision in b

    def run(self):
        """Every Explanation."""
        rows = [row for row in self.comparison.rows if row.diverges
                and row.part in (INPUT, OUTPUT) and self.has_arrays(row)]
        rows.sort(key=lambda row: row.order)
        every = self.comparison.rows
        first = nonfinite.told_first(
            every if any(row.diverges for row in every) else [],
            self.a, self.b)
        if first:  # the others follow from it
            rows = [row for row in rows if not nonfinite.is_reason(row)]
        follows = following(self.comparison.rows, self.a, self.b)
        looked_into = left_out = 0
        for row in rows:
            row.rounding = follows(row)
            if row.rounding:
                self.show(row)
                continue
            if looked_into == MOST_ROWS:
                left_out += 1
                continue
            before = self.findings.told()
            same = self.row(row, row is rows[0])
            row.rounding = same and self.findings.told() == before
            if row.rounding:
                self.show(row)
            looked_into += not row.rounding
        if left_out:
            self.findings.note(
                f"Why {plural(left_out, 'more row')} diverged was not asked.")
        return [*first, *self.findings.finished(rows)]

    def arrays(self, row):
        """Both arrays of a row."""
        return [(step.inputs if row.part == INPUT else step.outputs)[name]
                for step, name in ((self.a.step(row.a), row.a_name),
                                   (self.b.step(row.b), row.b_name))]

    def key(self, row):
        """What two rows share only if both compare the same two arrays."""
        one, two = self.arrays(row)
        return self.a.hash_of(one), self.b.hash_of(two)

    def has_arrays(self, row):
        """Whether both sides of a row are arrays, and no plain values."""
        return all(name in (step.inputs if row.part == INPUT
                            else step.outputs) for name, step in (
            (row.a_name, self.a.step(row.a)),
            (row.b_name, self.b.step(row.b))))

    def row(self, row, is_first):
        """Explain a row that diverges.

        Returns whether the same was done in both, to float32's rounding.
        """
        self.findings.now, self.known = row.order, []
        pair = self.pairs[row.a, row.b]
        if row.part == INPUT:
            same = self.join(pair, row) or self.handed_on(row)
            if not same and is_first:
                self.findings.lose(pair, row, self.known)
            self.findings.facts[row.a, row.a_name, row.part] = self.known
            if same and (each := lowered(row, self.a, self.b)):
                self.findings.add([each])
                self.lowered.add(row.a)
            return same
        if self.are_weights(row):
            return True
        if row.origin == WITHIN and self.findings.inside(row):
            return self.join(pair, row) or self.handed_on(row)
        return bool(self.output(pair, row))

    def show(self, row):
        """Put down that a row's arrays differ by float32's rounding alone."""
        self.rounding.add(self.key(row))
        self.shown.append(row)

    def handed_on(self, row):
        """Whether both hand on what was shown so before, in another shape."""
        def same(one, two):
            return one.size == two.size and one.size and (
                one.flat[0] == two.flat[0]) and np.array_equal(
                one.reshape(-1), two.reshape(-1))
        arrays = self.arrays(row)
        return any(all(map(same, arrays, self.arrays(each)))
                   for each in self.shown)

    def output(self, pair, row):
        """Explain what a step made; whether it is known, or the same."""
        array = row_array(self.a, row)
        if not is_float(array) or not array.size:
            return None
        if each := cast(row, self.a, self.b):
            self.findings.add([each])
            return True
        if not self.fair(pair, row):
            if self.key(row) in self.rounding:
                return True  # both hand on, to the bit, what was shown before
            return self.findings.lose(pair, row, [
                "Whether the two modules are each other's counterparts is not "
                "sure."]) if row is self.comparison.first else None
        sides = self.sides(row)
        search = StepSearch(pair, *sides, fresh=(
            row.origin == NEW or not row.inherited))
        explanations = search.find()
        if explanations:
            self.findings.add(explanations)
            return True
        if search.same and (any(search.inside) or row.origin != NEW
                            or row.a in self.lowered):
            return True
        before = self.findings.told()
        if self.join(pair, row):
            return row.origin != NEW or self.findings.told() > before
        if row.origin != NEW:
            return False
        return self.findings.lose(pair, row, [
            *search.known, *facts(self.a, self.b, row, sides)])

    def sides(self, row):
        """A StepSide of each of the two steps of a row."""
        return (side_of(self.a, row.a, row.a_name),
                side_of(self.b, row.b, row.b_name))

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
        expressions = [
            self.joins.opened(
                made_of(trace, step, INPUT, name, limit), trace, limit)
            for trace, step, name in zip((self.a, self.b), steps, names)]
        return None not in expressions and self.joins.difference(
            *expressions, steps[0], limit) is None

    def join(self, pair, row):
        """Explain how a value was made of those before.

        Returns whether that is known, also where it is the same in both.
        """
        steps, arrays = (self.a.step(row.a), self.b.step(row.b)), (
            self.arrays(row))
        if arrays[0].dtype.kind in "iu" and arrays[1].dtype.kind in "iu":
            return self.whole(row, arrays)
        key = self.key(row)
        if key in self.seen:
            return True
        if row.part == INPUT and (each := given.masked(row, *arrays)):
            self.seen.add(key)
            self.findings.add([each])
            return True
        expressions = [self.expression(trace, step, row.part, name, array)
                       for trace, step, name, array in zip(
                           (self.a, self.b), steps, (row.a_name, row.b_name),
                           arrays)]
        if None in expressions:
            near = []
            if row.part == INPUT and self.core(pair, row, steps, arrays, near):
                return True
            self.known = [*near, *(
                f"It is {in_words(each)} in {side}." if each else
                f"How it is made in {side} is not known."
                for side, each in zip("ab", expressions))]
            return False
        difference = self.joins.difference(
            *expressions, steps[0], model_limits(arrays[1].dtype.name)[1])
        if difference == UNSURE:
            self.known = [f"It is {in_words(each)} in {side}."
                          for each, side in zip(expressions, "ab")]
            return self.fused(pair, expressions, arrays)
        return self.joined(row, difference, expressions, arrays)

    def expression(self, trace, step, part, name, array):
        """How an input or output of a step is made; None if not known."""
        limit = model_limits(array.dtype.name)[1]
        return self.joins.opened(
            made_of(trace, step, part, name, limit), trace, limit)

    def joined(self, row, difference, expressions, arrays):
        """Tell a difference of two expressions, if there is one; whether that
        accounts for the row."""
        norms = [each for each in self.findings.explanations
                 if each.cause == NORM]
        if difference and difference.cause == NORM and any(
                each.in_a != difference.in_a for each in norms):
            return False
        self.seen.add(self.key(row))
        if difference and not (norms and difference.cause in GUESSED):
            self.tell(row, difference, expressions, strict_distance(
                arrays[1].astype(np.float64), arrays[0].astype(np.float64)))
        return True

    def tell(self, row, difference, expressions, without):
        """Explain an expression that is another one in b."""
        where = "the input" if row.part == INPUT else "the output"
        at = row.a if row.a == row.b else f"{row.a} ({row.b} in b)"
        each = Explanation(
            row.a, row.b, difference.cause, difference.in_a, difference.in_b,
            f"In {where} of {at}, {difference.cause}: {difference.in_b} in b, "
            f"{difference.in_a} in a.",
            [f"It is {in_words(expressions[0])} in a, and "
             f"{in_words(expressions[1])} in b."],
            {"a": expressions[0].error, "b": expressions[1].error,
             "without": without},
            {"a": 1, "b": 1})
        give_names([each], BETWEEN, difference.found_a, difference.found_b)
        self.findings.add([each])

    def fused(self, pair, expressions, arrays):
        """Explain layers of which one has an activation inside."""
        sides = []
        for trace, each, array in zip((self.a, self.b), expressions, arrays):
            what, path, name = each.sources[0].places[0]
            if (what != "output" or len(each.sources) > 1
                    or each.form not in ("sum", "function")
                    or not trace.step(path).parameters):
                return False
            side = side_of(trace, path, name)
            output = side.seen[0].output
            if array.shape != output.shape:  # channels were put last
                array = array.swapaxes(1, 2) if array.shape[
                    -1] == output.shape[1] else array
            side.seen = [dataclasses.replace(
                side.seen[0], output=exact(array).reshape(output.shape))]
            sides.append(side)
        at = dataclasses.replace(
            pair, a=sides[0].step.path, b=sides[1].step.path)
        search = StepSearch(at, *sides)
        explanations = search.find([LINEAR, CONVOLUTION])
        self.findings.add(explanations)
        return bool(explanations) or search.same

    def whole(self, row, arrays):
        """Explain integers: positions, or the buckets of distances."""
        each = (given.hidden(row, *arrays)
                or given.counted(row, *arrays)
                or given.bucketed(row, self.a, self.b, arrays)
                or given.moved(row, *arrays))
        if each:
            self.findings.add([each])
        return bool(each)

    def holder(self, row):
        """Explain the attention that holds a step, whether it could be."""
        began, ended = self.findings.interval(row.a)
        outer = [each for each in self.comparison.rows
                 if each.part == OUTPUT and each.diverges
                 and self.findings.interval(each.a)[0] < began
                 and self.findings.interval(each.a)[1] > ended
                 and is_float(row_array(self.a, each))]
        for each in sorted(outer, key=lambda each: each.order)[:2]:
            if self.findings.inside(each):
                return False
            explanations = StepSearch(
                self.pairs[each.a, each.b], *self.sides(each)).find(
                    [ATTENTION])
            if explanations:
                self.findings.add(explanations)
                return True
        return False

    def core(self, pair, row, steps, arrays, near):
        """Explain what attention made of projections seen before.

        Sentences on what is near are put into ``near``.
        """
        sides = []
        for trace, step, array in zip((self.a, self.b), steps, arrays):
            side = core_side(trace, step, array)
            if side is None:
                return False
            sides.append(side)
        mine, other = (side.seen[0].floats | side.seen[0].tables
                       for side in sides)
        fresh = mine.keys() == other.keys() and all(strict_distance(
            other[name], mine[name]) <= sides[1].limit for name in mine)
        search = StepSearch(pair, *sides, fresh)
        explanations = search.find([CORE])
        near += search.near
        if explanations and not self.holder(row):
            self.findings.add(explanations)
        if search.same:
            self.account_for_weights(search)
            self.exchanged(search)
        return bool(explanations) or search.same

    def exchanged(self, search):
        """Explain that attention was given projections in other places."""
        one, two = search.sides
        mine, other = one.seen[0].floats, two.seen[0].floats

        def near(name, source):
            return mine[source].shape == other[name].shape and (
                strict_distance(other[name], mine[source]) <= NEAR)
        places = {name: next((source for source in (name, *mine)
                              if near(name, source)), None) for name in other}
        moved = [name for name, source in places.items() if name != source]
        if not moved or {*moved} != {places[name] for name in moved}:
            return
        *names, last = moved
        cause = f"{', '.join(names)} and {last}"
        word = "swapped" if len(moved) == 2 else "in another order"
        fit = search.fits[1]
        as_in_a = dataclasses.replace(two, seen=[dataclasses.replace(
            two.seen[0], floats={name: mine[name] for name in other})])
        each = search.explanation(cause, "as they are", word, {
            "a": search.fits[0].error, "b": fit.error,
            "without": misfit(fit.family, as_in_a, fit.parameters,
                              fit.settings) * two.limit})
        give_names([each], ATTENTION.name, {}, {cause: word})
        self.findings.add([each])

    def account_for_weights(self, search):
        """Put down attention's weights that a replay gives, if they are seen.
        """
        for side, fit in zip(search.sides, search.fits):
            seen = side.seen[0]
            if "weights" in seen.tables:
                weights, _ = fit.family.weights(
                    seen, fit.parameters, fit.settings)
                if strict_distance(
                        weights, seen.tables["weights"]) <= side.limit:
                    self.weights.append(seen.tables["weights"])

    def are_weights(self, row):
        """Whether a row is attention's weights, and a replay gives both."""
        return row.part == OUTPUT and all(
            any(array is held or np.array_equal(array, held)
                for held in self.weights)
            for array in (self.a.step(row.a).outputs[row.a_name],
                          self.b.step(row.b).outputs[row.b_name]))

@np.errstate(all="ignore")  # a NaN is told, not warned of
def explain(comparison: Comparison, a: Trace,
            b: Trace) -> list[Explanation]:
    """Say why b differs from a, step by step.

    Args:
        comparison: what comparing.compare found of the two; the result is put
            into its ``explanations`` as well.
        a, b: the Traces.

    Returns:
        A list of Explanations, in order of computation; [] where nothing
        diverges. What has the same cause in several steps is told once.

    Raises:
        InputError: it is no Comparison, or not of these Traces.
    """
    if not isinstance(comparison, Comparison):
        raise InputError(
            f"a {type(comparison).__name__} is not a comparison; give what "
            "parity.compare returned of the two traces.")
    for side, each, held in zip("ab", (a, b), comparison.of):
        if not isinstance(each, Trace):
            raise InputError(
                f"{side} is a {type(each).__name__}, not a trace; give the "
                "two that were compared.")
        if each.content_hash != held:
            raise InputError(
                f"{side} is not the trace that was compared as {side}; give "
                "the two in the same order.")
    comparison.explanations = Explaining(comparison, a, b).run()
    return comparison.explanations
