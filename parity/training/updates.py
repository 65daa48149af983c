"""Why a step of two optimisers differs: one setting after another exchanged.

Each side's rule is replayed in NumPy on what its optimiser was given, and must
give that side's weights. Then B's rule is given A's settings, as few as there
can be, until it gives A's weights: those are the cause.
"""

import dataclasses
import itertools
import math

import numpy as np

from parity.numerics.dtypes import EPS
from parity.numerics.tolerances import LOCKSTEP_LIMIT, MANY
from parity.training import clipping
from parity.training.lockstep import UNITS
from parity.training.rules import NARROW, replayed, used

#: Which parameters an optimiser has, and which have a gradient.
MEMBERS, FROZEN = "members", "frozen"

#: So many settings may differ for every choice of them to be tried.
MOST = 8


@dataclasses.dataclass
class UpdateSide:
    """What an optimiser was given and made of it.

    Attributes:
        rules: {path: UpdateRule}.
        befores, gradients, afters: for each step {path: array}.
        rates: for each step {path: learning rate}, or None where the rules
            have it.
        narrow: whether the framework has float32 inside.
        loose: whether weights are known to float32's limit alone.
    """

    rules: dict
    befores: list
    gradients: list
    afters: list
    rates: list | None
    narrow: bool = False
    loose: bool = False

    def error(self, afters=None):
        """How far a replay is from the weights, its limit being 1.

        Args:
            afters: the weights; this side's own by default.
        """
        return max((share(new, after, before, self.loose)
                    for new, after, before in self.replay(afters)),
                   default=math.inf)

    def replay(self, afters=None):
        """(replayed, weight after, weight before) of each step and path."""
        made = replayed(self.rules, self.befores, self.gradients, self.rates)
        return [(new.get(path, before[path]), after[path], before[path])
                for new, after, before in zip(
                    made, self.afters if afters is None else afters,
                    self.befores) for path in after if path in before]

    def settle(self):
        """Keep the rules if they give the weights, or else none.

        What of a rule is in float32 follows from the numbers.
        """
        if None in self.rules.values():
            self.rules = {}
        own = self.rules
        for loose in (False, True)[:1 + self.narrow]:
            self.loose = loose
            for narrow in (None, *NARROW):
                self.rules = own if narrow is None else {
                    path: dataclasses.replace(rule, narrow=narrow)
                    for path, rule in own.items()}
                if own and self.error() <= 1:
                    return
        self.rules, self.loose = {}, False


@np.errstate(all="ignore")
def share(made, after, before, loose=False):
    """The error of a weight's step, in its limits, or in float32's."""
    after, before = (np.asarray(each) for each in (after, before))
    eps = EPS.get(after.dtype.name, EPS["float64"])
    limit = LOCKSTEP_LIMIT if after.dtype == np.float64 and not loose else (
        MANY["float32"][2] * EPS["float32"])
    size = float(np.linalg.norm(after.astype(np.float64) - before))
    gap = float(np.linalg.norm(made - after.astype(np.float64)))
    whole = float(np.linalg.norm(before.astype(np.float64)))
    allowed = limit * size + UNITS * eps * whole
    return gap / allowed if allowed else 0.0 if not gap else math.inf


def error_of(replay):
    """The largest relative error of steps that were replayed."""
    worst = 0.0
    for new, after, before in replay:
        size, gap = (np.linalg.norm(after - base) for base in (before, new))
        worst = max(worst, float(gap / size) if size else math.inf * bool(gap)
                    if gap else 0.0)
    return worst


def sides_of(lock, b):
    """The UpdateSide of A and of B, both by B's paths and in B's layout."""
    steps = list(zip(lock.a.steps, b.steps))
    by_b = {pair.b: pair.a for pair in lock.pairs}

    def given(arrays, like):
        return lock.given(arrays, like)
    sides = []
    for run, gradients in ((lock.a, None), (b, lock.taken(b))):
        mine = run is lock.a
        rules = {path: run.rules[by_b[path]] for path in by_b
                 if by_b[path] in run.rules} if mine else dict(run.rules)
        rates = [{path: record.rates[by_b[path]] for path in by_b
                  if by_b[path] in record.rates} if mine else record.rates
                 for record, _ in (steps if mine else [
                     (two, two) for _, two in steps])]
        sides.append(UpdateSide(
            rules, [given(one.before, two.before) for one, two in steps],
            [given(one.raw | one.gradients, two.before)
             for one, two in steps]
            if gradients is None else gradients,
            [given(one.after, two.after) if mine else two.after
             for one, two in steps],
            rates if all(rates) else None, run.narrow))
    for path in set(sides[1].rules) - set(by_b):
        del sides[1].rules[path]
    if b.inner and not lock.a.inner:
        _clip_inside(lock, sides[0], [two.before for _, two in steps])
    return sides


def _clip_inside(lock, side, likes):
    """Let A's rules clip, as B's do, where A clips before its optimiser."""
    rule = clipping.rule_of(lock.a)
    if rule is None or None in side.rules.values():
        return
    side.gradients = [lock.given(record.raw, like)
                      for record, like in zip(lock.a.steps, likes)]
    side.rules = {path: dataclasses.replace(
        each, clip=rule.clip, clip_by=rule.clip_by, clip_eps=rule.clip_eps,
        scale=rule.scale) for path, each in side.rules.items()}


def differing(a, b):
    """The names of settings that differ between {path: UpdateRule}."""
    names = []
    if a.rules.keys() != b.rules.keys():
        names.append(MEMBERS)
    if any(one.keys() != two.keys() for one, two in zip(
            a.gradients, b.gradients)):
        names.append(FROZEN)
    for path in a.rules.keys() & b.rules.keys():
        one, two = a.rules[path], b.rules[path]
        for name in used(one.kind):
            if name != "rate" and getattr(one, name) != getattr(two, name) and (
                    name not in names) and name not in _idle(one, two):
                names.append(name)
    gap = max((abs(one[path] - two[path]) / abs(one[path] or 1)
               for one, two in zip(rates_of(a), rates_of(b))
               for path in one.keys() & two.keys()), default=0.0)
    if gap > UNITS * EPS["float32"]:
        names.append("rate")
    elif gap > 1e-12 and "narrow" not in names:
        names.append("narrow")
    return names


def _idle(one, two):
    """Settings that do nothing in either of two rules."""
    idle: set = set()
    for group, off in ((("decay_at",), not one.decay and not two.decay),
                       (("dampening", "nesterov", "momentum_of",
                         "dampened_first"),
                        not one.momentum and not two.momentum),
                       (("clip", "clip_eps"), one.clip_by != two.clip_by),
                       (("dampened_first",),
                        not one.dampening and not two.dampening)):
        idle.update(group if off else ())
    return idle


def rates_of(side):
    """For each step {path: learning rate}."""
    return side.rates or [{path: rule.rate for path, rule
                           in side.rules.items()}] * len(side.befores)


def exchanged(a, b, names):
    """B's UpdateSide with some of A's settings in it."""
    rules, gradients = dict(b.rules), b.gradients
    if MEMBERS in names:
        rules = {path: b.rules.get(path, rule)
                 for path, rule in a.rules.items()}
    if FROZEN in names:
        gradients = [{path: two.get(path, array) for path, array in one.items()}
                     for one, two in zip(a.gradients, b.gradients)]
    if "kind" in names:
        rules = {path: a.rules.get(path, rule) for path, rule in rules.items()}
    plain = [name for name in names if name not in (
        MEMBERS, FROZEN, "kind", "rate")]
    if "clip_by" in plain:
        plain += ["clip", "clip_eps"]
    rules = {path: dataclasses.replace(rule, **{
        name: getattr(a.rules[path], name) for name in plain})
        if path in a.rules else rule for path, rule in rules.items()}
    own = "rate" not in names and not (
        "narrow" in names and "rate" not in differing(a, b))
    rates = [{**mine, **theirs} if own else {**theirs, **mine}
             for mine, theirs in zip(rates_of(a), rates_of(b))]
    return UpdateSide(rules, b.befores, gradients, b.afters, rates,
                      loose=a.loose or b.loose)


def causes(a, b):
    """Which settings of A give B A's weights: as few as there can be.

    Returns:
        (names, error before, error after), or None where none do. "narrow"
        alone is float32 inside.
    """
    names = differing(a, b)
    narrow = ["narrow"] if "narrow" in names else []
    names = [name for name in names if name != "narrow"]
    before = error_of(b.replay(a.afters))
    if "kind" in names:
        first = [name for name in names if name in (MEMBERS, FROZEN)]
        choices = [(*first, "kind"), (*first, "kind", "rate")]
    else:
        choices = [some for count in range(min(len(names), MOST) + 1)
                   for some in itertools.combinations(names, count)]
    for some in choices:
        for more in ([], narrow)[:1 + bool(narrow)]:
            made = exchanged(a, b, [*some, *more])
            if (some or more) and made.error(a.afters) <= 1:
                return [*some, *more], before, error_of(made.replay(a.afters))
    return None
