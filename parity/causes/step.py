"""Why one step itself differs: proved by computing it once more."""

import math

import numpy as np

from parity.causes.cause import PRECISION
from parity.causes.explanation import (
    Explanation, give_names, in_words, in_words_apart, sentence_of)
from parity.causes.fit import (
    CLEARLY, FAMILIES, changes, fields_of, fits, misfit)
from parity.causes.formulas.family import rounded
from parity.causes.formulas.narrow import NARROW, ROUGH, UNIT
from parity.causes.hint import MOST_SEARCHED, Hint, held
from parity.numerics.distance import strict_distance
from parity.numerics.dtypes import EPS
from parity.numerics.words import listed, number
from parity.tracing.trace import is_float


class StepSearch:
    """Two sides of a step, and what was proved of them.

    Attributes:
        fresh: whether the two differ here, and not by their inputs alone.
        known: sentences on what was tried.
        near: those on what came near, and is not proved.
        same: whether both sides do the same with the same numbers.
        fits: a Fit of each side, where both have one.
        inside: whether a, and b, computes in float32 inside.
    """

    def __init__(self, pair, side_a, side_b, fresh=True):
        self.fresh, self.exact_fits = fresh, {}
        self.pair, self.sides = pair, (side_a, side_b)
        self.known, self.near = [], []
        self.same, self.inside = False, (False, False)
        self.fits = None

    def find(self, families=FAMILIES):
        """The Explanations of this step; [] where nothing is identified."""
        read, pairs = self.pairs(families)
        if not pairs:
            exactly = read
            read, pairs = self.pairs(families, inside=True, read=read)
            if not pairs and exactly and (leak := self.leak(exactly)):
                return leak
            if read is None:
                self.known.append(
                    "a's own numbers could not be computed anew.")
                return []
            if not pairs:
                settings = ", ".join(f"{name} {in_words(value)}" for
                                     name, value in read.settings.items())
                self.known.append(
                    f"a's numbers are those of {read.family.name} with "
                    f"{settings}; no such module with another setting that is "
                    "tried gives b's numbers.")
                self.near = [*self.nearest(read)]
                self.known += self.near
                return []
        self.fits = pairs[0]
        explanations = self.of_pairs(pairs)
        one, two = self.inside
        if self.same and (one != two or one and self.fresh):
            return self.explained_inside(pairs[0])
        return explanations

    def pairs(self, families, inside=False, read=None):
        """The first Fit of a, and the Fits of both by the first family.

        Args:
            inside: whether one of the two, or each, may have float32 inside.
            read: a Fit of a that is known, or None.
        """
        fits_of = self.fits_inside if inside else self.fits_exactly
        for family in families:
            base, mine = fits_of(family, 0, None)
            if not base:
                continue
            read = read or base[0]
            others, other = fits_of(family, 1, base[0].settings)
            if others:
                self.inside = mine, other
                return read, [(base[0], each) for each in others]
        return read, []

    def fits_exactly(self, family, which, settings):
        """Fits of a side, and that they have no float32 inside."""
        return self.exactly(family, which, settings), False

    def exactly(self, family, which, settings):
        """Fits of a side; sought once."""
        key = family.name, which, str(settings)
        if key not in self.exact_fits:
            self.exact_fits[key] = fits(family, self.sides[which], settings)
        return self.exact_fits[key][0]

    def fits_inside(self, family, which, settings):
        """Fits of a side, and whether they have float32 inside.

        Of what may be in float32, that with which the fewest settings are
        others.
        """
        side, exactly = self.sides[which], self.exactly(
            family, which, settings)
        _, nearest = self.exact_fits[family.name, which, str(settings)]
        if exactly or side.dtype != "float64" or (
                nearest is None or nearest.error > ROUGH):
            return exactly, False
        best = []
        for narrow in family.narrow:
            matches, _ = fits(family, side, settings, narrow)
            if matches and (not best or len(matches[0].changed) < len(
                    best[0].changed)):
                best = matches
            if best and not best[0].changed:
                break
        return best, bool(best)

    def nearest(self, mine):
        """Yield what comes clearly nearer to b's numbers than a's settings.

        It is not proved, and so no cause.
        """
        _, near = self.exact_fits[mine.family.name, 1, str(mine.settings)]
        if near is None or not near.changed or near.error > ROUGH:
            return
        side, family = self.sides[1], near.family
        settings = near.settings | {
            name: mine.settings[name] for name in near.changed
            if name in mine.settings}
        without = misfit(family, side, near.parameters, settings)
        if without * side.limit < CLEARLY * near.error:
            return
        words = listed([f"{name} {in_words(near.settings[name])}"
                        for name in near.changed])
        yield (f"Nearest in b: {words}, {number(near.error)} away, unproved; "
               f"a's own are {number(without * side.limit)} away.")

    def of_pairs(self, pairs):
        """The Explanations of pairs of Fits that all give the numbers."""
        candidates = {}
        for mine, other in pairs:
            evidence = self.needed(mine, other)
            if evidence is not None:
                candidates.setdefault(tuple(map(_said, evidence)),
                                      (mine, other, evidence))
        if not candidates:
            self.known.append(
                "What accounts for b's numbers is too near to what does not.")
            return []
        candidates = plainest(candidates, self.known)
        shared = set.intersection(*map(set, candidates))
        if len(candidates) > 1 and shared:
            mine, other, evidence = next(iter(candidates.values()))
            candidates = {"": (mine, other, [each for each in evidence
                                             if _said(each) in shared])}
        candidates = either(candidates)
        if len(candidates) > 1:
            self.known.append("Several causes account for b's numbers: " + (
                "; or ".join(listed([f"{c}: {two}" for c, _, two in key])
                             if key else "none" for key in candidates)) + ".")
            return []
        (mine, other, evidence), = candidates.values()
        self.same = not evidence
        return self.explanations(mine, other, evidence)

    def explanations(self, mine, other, evidence):
        """An Explanation of each [(Change, error without it)]."""
        explanations = [self.explanation(
            change.setting, *in_words_apart(change.in_a, change.in_b),
            {"a": mine.error, "b": other.error, "without": gap}, self.known)
            for change, gap in evidence]
        family = other.family
        held_a, held_b = ({name: family.word(name, value)
                           for name, value in fit.settings.items()}
                          for fit in (mine, other))
        for change, _ in evidence:
            ours = str(change.in_b).endswith(" in a")
            (held_a if ours else held_b)[change.setting] = change.word
        give_names(explanations, family.name, held_a, held_b)
        return explanations

    def explanation(self, setting, in_a, in_b, errors, known=()):
        """What differs, with how near the replays came."""
        return Explanation(
            self.pair.a, self.pair.b, setting, in_a, in_b,
            sentence_of(self.pair, setting, in_a, in_b), [*known], errors,
            {name: len(side.seen) for name, side in zip("ab", self.sides)})

    def explained_inside(self, pair):
        """That two steps are equal but for float32 inside one, or both."""
        words = ["in float32" if inside else "in float64"
                 for inside in self.inside]
        errors = {name: fit.error for name, fit in zip("ab", pair)}
        errors["without"] = max(
            misfit(fit.family, side, fit.parameters, {
                name: value for name, value in fit.settings.items()
                if name != NARROW}) * side.limit
            for fit, side in zip(pair, self.sides))
        each = self.explanation(PRECISION, *words, errors, [
            f"In {name}, that is {fit.settings[NARROW]}."
            for name, fit in zip("ab", pair) if NARROW in fit.settings])
        give_names([each], pair[0].family.name, *(
            {PRECISION: word} for word in words))
        return [each]

    def leak(self, mine):
        """That b's result holds only numbers of a lower dtype.

        With a's settings it must come out but for that dtype's rounding.
        """
        first, side = self.sides
        low = held(side.seen[0].output)
        if (EPS.get(low, 0) <= EPS.get(side.dtype, 1)
                or held(first.seen[0].output) == low
                or not all(np.array_equal(rounded(seen.output, low),
                                          seen.output)
                           for seen in side.seen)):
            return []
        for parameters in mine.family.readings(side):
            settings = {name: values[0] for name, values in fields_of(
                mine.family, side, parameters).items()}
            settings |= {name: value for name, value in mine.settings.items()
                         if name in settings and not mine.family.is_own(name)}
            error = misfit(mine.family, side, parameters, settings)
            error *= side.limit
            if error <= 4 * EPS[low]:
                explanations = [self.explanation(
                    "result", first.dtype, f"numbers of {low}",
                    {"a": mine.error, "b": error, "without": error})]
                give_names(explanations, mine.family.name, {},
                           {"result": f"numbers of {low}"})
                return explanations
        return []

    def needed(self, mine, other):
        """The Changes between two Fits without which b's numbers do not come.

        None if what is left comes too near to b's numbers to tell.
        """
        evidence, side, unsure = [], self.sides[1], False
        differ = changes(mine, other, self.sides)
        if differ is None:
            return None
        for change in differ:
            gap = misfit(other.family, side, change.parameters,
                         change.settings) * side.limit
            if gap <= side.limit:
                continue  # without it b's numbers come out as well
            own = EPS.get(side.dtype, 0)
            if NARROW in other.settings and (
                    change.parameters is other.parameters):
                own = UNIT  # of what no parameter shows
            if gap < CLEARLY * max(other.error, own):
                return None
            if (change.parameters is other.parameters
                    and change.setting in mine.settings and misfit(
                        mine.family, self.sides[0], mine.parameters,
                        mine.settings | {change.setting: change.in_b},
                        1.0) <= 1):
                unsure = True  # a may do the same where it matters
                continue
            evidence.append((change, gap))
        return evidence if evidence or not unsure else None


def plainest(candidates, known):
    """Of causes that differ in one number of b's, that of the fewest digits.

    Args:
        candidates: {causes as they are told: whatever}.
        known: the others are added to it, in a sentence.

    Returns:
        The candidates that are left.
    """
    first = next(iter(candidates))
    if len(candidates) < 2 or {len(key) for key in candidates} != {len(first)}:
        return candidates
    for place, (setting, _, _) in enumerate(first):
        numbers = {key: decimals(key[place][2]) for key in candidates}
        rest = {(*key[:place], key[place][:2], *key[place + 1:])
                for key in candidates}
        if len(rest) > 1 or None in numbers.values():
            continue
        one, *more = sorted(numbers, key=numbers.get)
        if numbers[one] < numbers[more[0]]:
            values = ", ".join(key[place][2] for key in more)
            known.append(f"By the numbers, {setting} {values} fits too.")
            return {one: candidates[one]}
    return candidates


def either(candidates):
    """Causes that are one number here, under several names, as one: "x or y".

    So is 1/√d_model where it is 1/d_k: the replays err by the same.

    Args:
        candidates: {causes as they are told: (Fit, Fit, [(Change, error)])}.
    """
    first = next(iter(candidates))
    if len(candidates) < 2 or len(first) != 1 or any(
            len(key) != 1 or key[0][:2] != first[0][:2] for key in candidates):
        return candidates
    mine, other, [(change, gap)] = candidates[first]
    if any((two.error, more[0][1]) != (other.error, gap)
           for _, two, more in candidates.values()):
        return candidates
    words = " or ".join(key[0][2] for key in candidates)
    return {first: (mine, other, [(change._replace(in_b=words), gap)])}


def decimals(text):
    """How many digits a number in words has; None if it is none."""
    try:
        return len(f"{float(text):.9e}".partition("e")[0].rstrip("0"))
    except ValueError:
        return None


def _said(entry):
    """A Change in words, as it is told."""
    change, _ = entry
    return change.setting, in_words(change.in_a), in_words(change.in_b)


# What is known all the same

def facts(a, b, row, sides):
    """Yield sentences on a step whose cause is not identified."""
    if row.inherited is not None and math.isfinite(row.inherited):
        yield (f"Its inputs differ by {number(row.inherited)}."
               if row.inherited else "Its inputs are the same.")
    if row.local is not None:
        yield f"On a's own inputs it differs by {number(row.local)}."
    steps = a.step(row.a), b.step(row.b)
    if steps[1].settings.get("use_fast_variance") is True:
        yield ("b has “layer norm's variance as mean(x²) - mean(x)²” "
               "(use_fast_variance), which loses digits where the mean is "
               "large.")
    for name in sorted(steps[0].settings.keys() & steps[1].settings.keys()):
        one, two = (step.settings[name] for step in steps)
        if one != two and not (isinstance(one, str) and name == "name"):
            yield f"Its setting {name} is {one} in a and {two} in b."
    mine, other = (side.seen[0].output for side in sides)
    if mine.shape == other.shape and is_float(
            steps[0].outputs[row.a_name]) and mine.size:
        yield from looks(mine, other, sides[1])


def looks(mine, other, side):
    """Yield sentences on two arrays of one shape by themselves."""
    finite = np.isfinite(mine) & np.isfinite(other)
    error = strict_distance(other, mine)
    if not finite.all():
        yield (f"{np.isnan(other).sum()} of b's numbers are NaN, and "
               f"{np.isnan(mine).sum()} of a's.")
    elif mine.any() and mine.size <= MOST_SEARCHED:
        words = Hint(other, mine, error, side.limit, ("b", "a")).text()
        if words:
            yield f"{words[0].upper()}{words[1:]}."
    if mine.ndim > 1:
        with np.errstate(all="ignore"):
            rows = np.abs(mine - other).reshape(-1, mine.shape[-1]).max(-1)
        off = ~(rows <= side.limit * np.nanmax(np.abs(mine)))
        if 0 < off.sum() < off.size:
            yield f"{off.sum()} of {off.size} rows differ."
    low = held(other)
    if EPS.get(low, 0) > EPS.get(side.dtype, 1) and held(mine) != low:
        yield f"Every number of b's is one that {low} can hold."
    elif side.dtype == "float64" and 1e-10 < error < 1e-5:
        yield ("The difference is of the size of float32's rounding, so that "
               "something inside may be computed in it.")
