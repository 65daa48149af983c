"""The rule of an optimiser of which only the numbers are known.

A hand-written step tells nothing of itself. So the settings of one rule after
another are fitted (Levenberg and Marquardt) until it gives every weight after
every step; what does not come within the limit is no answer.
"""

import dataclasses
import itertools
import math

import numpy as np

from parity.training import groups
from parity.training.rules import (
    ADAGRAD, ADAM, BEFORE, COUPLED, DECOUPLED, EACH, GLOBAL, GRADIENTS,
    INSIDE, LION, OUTSIDE, RMSPROP, SGD, STEPS, UNSCALED, VALUE, UpdateRule,
    replayed)

#: The settings with a continuous value, and how each is stretched so that a
#: step of one size means something: β by 1 - β, others by their logarithm.
STRETCHED = {
    "rate": (math.log, math.exp), "eps": (math.log, math.exp),
    "decay": (math.log, math.exp), "clip": (math.log, math.exp),
    "momentum": (lambda x: math.log(x / (1 - x)),
                 lambda y: 1 / (1 + math.exp(-y))),
}
STRETCHED["beta1"] = STRETCHED["beta2"] = STRETCHED["momentum"]

#: So many numbers of a model are fitted; a clipping looks at all of them.
NUMBERS = 20_000

#: Steps of a fit, and the relative change of its error that ends it.
TURNS, STILL = 40, 1e-3


def structures():
    """Every form of a rule that is tried, the usual ones first."""
    base = UpdateRule(ADAM, rate=1e-3)
    make = dataclasses.replace
    decays = ((0.0, COUPLED), (1e-2, DECOUPLED), (1e-2, COUPLED),
              (1e-2, UNSCALED))
    for decay, at in decays:
        for eps_at, corrected in itertools.product(
                (OUTSIDE, BEFORE, INSIDE), (True, False)):
            if eps_at != BEFORE or corrected:
                yield make(base, eps_at=eps_at, corrected=corrected,
                           decay=decay, decay_at=at)
        plain = make(base, kind=SGD, decay=decay, decay_at=at)
        yield plain
        for nesterov, of in itertools.product((False, True), (
                GRADIENTS, STEPS)):
            yield make(plain, momentum=0.9, nesterov=nesterov, momentum_of=of)
    plain = make(base, kind=SGD, momentum=0.9)
    for dampening, first in ((0.9, True), (0.9, False)):
        yield make(plain, dampening=dampening, dampened_first=first)
    yield make(base, amsgrad=True)
    for eps_at in (OUTSIDE, INSIDE):
        yield make(base, kind=RMSPROP, beta2=0.99, eps_at=eps_at)
        yield make(base, kind=RMSPROP, beta2=0.99, eps_at=eps_at,
                   momentum=0.9)
        yield make(base, kind=ADAGRAD, eps_at=eps_at)
    for decay in (0.0, 1e-2):
        yield make(base, kind=LION, beta2=0.99, decay=decay,
                   decay_at=DECOUPLED)


def variations(rule):
    """Forms that are one word away from a rule, the rule itself first."""
    make = dataclasses.replace
    yield rule
    for name, words in (
            ("eps_at", (OUTSIDE, BEFORE, INSIDE)),
            ("corrected", (True, False)),
            ("decay_at", (COUPLED, DECOUPLED, UNSCALED)),
            ("nesterov", (False, True)), ("momentum_of", (GRADIENTS, STEPS)),
            ("amsgrad", (False, True))):
        for word in words:
            if word != getattr(rule, name):
                yield make(rule, **{name: word})
    for word in (GLOBAL, EACH, VALUE):
        yield make(rule, clip_by=word, clip=1.0)
    if rule.momentum:
        for first in (True, False):
            yield make(rule, dampening=rule.momentum, dampened_first=first)
        yield make(rule, dampening=0.0)
    if not rule.decay:
        for at in (DECOUPLED, COUPLED):
            yield make(rule, decay=1e-2, decay_at=at)
    else:
        yield make(rule, decay=0.0)


def fitted(side, near=None):
    """The rules of a side, found by its numbers, or {}.

    Args:
        side: an updates.UpdateSide without rules.
        near: {path: UpdateRule} that the rules may be a variation of.
    """
    paths = [path for path in side.befores[0] if any(
        path in found for found in side.gradients)]
    paths = [path for path in paths if path not in groups.still(side)]
    if not paths:
        return {}
    told = bool(side.rates)
    axes = {path: side.befores[0][path].ndim for path in paths}
    side = _sampled(side, paths)
    forms = []
    if near:
        forms += variations(next(iter(near.values())))
        for form in forms:  # one word, and no number, is another
            rules = {path: form for path in paths}
            if dataclasses.replace(side, rules=rules).error() <= 1:
                return rules
        if rules := groups.parted(side, paths, near, _varied):
            return rules
    forms += structures()
    for form, where in itertools.product(forms, (None, 1)):
        if where and not form.decay:
            continue
        rules = _Fit(side, paths, axes, form, where, told).run()
        if rules:
            return rules
    return {}


def _varied(side, paths, rule):
    """The rules of some parameters that are a variation of one, or {}."""
    axes = {path: side.befores[0][path].ndim for path in paths}
    for form in variations(rule):
        if rules := _Fit(side, paths, axes, form, None,
                         bool(side.rates)).run():
            return rules
    return {}


def _sampled(side, paths):
    """A side with so few numbers of each parameter that a fit is quick.

    Of what is left out nothing is claimed before the rules are replayed on
    all of it.
    """
    total = sum(side.befores[0][path].size for path in paths)
    every = max(1, total // NUMBERS)
    if every == 1:
        return side

    def some(steps):
        return [{path: array.reshape(-1)[::every] for path, array
                 in arrays.items() if path in paths} for arrays in steps]
    return dataclasses.replace(
        side, befores=some(side.befores), gradients=some(side.gradients),
        afters=some(side.afters))


class _Fit:
    """One form of a rule, fitted to a side.

    Args:
        axes: {path: how many axes a parameter has}.
        where: None, or of how many axes a parameter is at least that decays.
        told: whether the learning rates are known.
    """

    def __init__(self, side, paths, axes, form, where, told):
        self.side, self.paths, self.form = side, paths, form
        self.axes = axes
        self.names = [name for name in STRETCHED
                      if name in _fitted(form, len(side.befores))
                      and not (told and name == "rate")]
        self.where = where

    def rules(self, values):
        """{path: UpdateRule} of stretched values."""
        found = dict(zip(self.names, (
            STRETCHED[name][1](min(max(value, -60), 60))
            for name, value in zip(self.names, values))))
        if self.form.dampening:
            found["dampening"] = found["momentum"]
        rule = dataclasses.replace(self.form, **found)
        bare = dataclasses.replace(rule, decay=0.0)
        return {path: bare if self.where and self.axes[
            path] <= self.where else rule for path in self.paths}

    @np.errstate(all="ignore")
    def residual(self, values):
        """How far each weight is off, relative to its step's size."""
        made = replayed(self.rules(values), self.side.befores,
                        self.side.gradients, self.side.rates)
        parts = []
        for new, after, before in zip(made, self.side.afters,
                                      self.side.befores):
            for path in self.paths:
                size = np.linalg.norm(after[path].astype(np.float64)
                                      - before[path]) or 1.0
                parts.append(((new[path] - after[path]) / size).reshape(-1))
        return np.concatenate(parts)

    def run(self):
        """The rules that give every weight, or None."""
        values = np.array([STRETCHED[name][0](getattr(self.form, name))
                           for name in self.names])
        if "rate" in self.names:  # a rate is a factor, or nearly
            values[self.names.index("rate")] += self._rate(values)
        error = self.residual(values)
        damping, cost = 1e-3, float(error @ error)
        for _ in range(TURNS):
            if not self.names or not math.isfinite(cost) or cost < 1e-28:
                break
            slope = np.stack([self.residual(values + step) - self.residual(
                values - step) for step in np.eye(len(values)) * 1e-6], 1
                ) / 2e-6
            if not np.isfinite(slope).all():
                break
            square = slope.T @ slope
            for _ in range(8):
                move = np.linalg.lstsq(
                    square + damping * np.diag(np.diag(square) + 1e-300),
                    -slope.T @ error, rcond=None)[0]
                trial = values + np.clip(move, -3, 3)
                fresh = self.residual(trial)
                if float(fresh @ fresh) < cost:
                    break
                damping *= 10
            else:
                break
            before, cost = cost, float(fresh @ fresh)
            values, error, damping = trial, fresh, max(damping / 30, 1e-15)
            if cost > 1e-6 and before - cost < STILL * before:
                break
        rules = self.rules(values)
        if not self.fits(rules):
            return None
        return self.rounded(rules)

    def _rate(self, values):
        """By how much the logarithm of the rate is off, as a factor."""
        made = replayed(self.rules(values), self.side.befores[:1],
                        self.side.gradients[:1], self.side.rates)[0]
        dots = [sum(float(((one[path] - self.side.befores[0][path]) * (
            self.side.afters[0][path].astype(np.float64)
            - self.side.befores[0][path])).sum()) for path in self.paths)
            for one in (made, self.side.afters[0])]
        return math.log(dots[1] / dots[0]) if min(dots) > 0 else 0.0

    def fits(self, rules):
        """Whether rules give the weights of this side."""
        return dataclasses.replace(self.side, rules=rules).error() <= 1

    def rounded(self, rules):
        """The same with numbers of few digits, where these fit as well."""
        for name in self.names:
            value = getattr(next(iter(rules.values())), name)
            if name == "decay":
                value = max(rule.decay for rule in rules.values())
            for digits in range(name not in ("decay", "momentum"), 7):
                short = float(f"{value:.{digits}g}") if digits else 0.0
                if digits and name.startswith(("beta", "momentum")):
                    short = 1 - float(f"{1 - value:.{digits}g}")
                    short = float(f"{short:.10g}")
                trial = {path: dataclasses.replace(rule, **{name: short} | (
                    {"dampening": short} if name == "momentum"
                    and rule.dampening else {}))
                    if name != "decay" or rule.decay else rule
                    for path, rule in rules.items()}
                if self.fits(trial):
                    rules = trial
                    break
        return rules


def _fitted(form, steps):
    """The names of the continuous settings that a form has.

    A form's β and momentum show from the second step on.
    """
    names = ["rate"]
    if form.kind in (ADAM, RMSPROP, ADAGRAD):
        names.append("eps")
    if form.kind in (ADAM, LION) and (steps > 1 or not form.corrected):
        names += ["beta1", "beta2"]
    if form.kind == RMSPROP:
        names.append("beta2")
    if form.momentum and steps > 1:
        names.append("momentum")
    if form.decay:
        names.append("decay")
    if math.isfinite(form.clip):
        names.append("clip")
    return names
