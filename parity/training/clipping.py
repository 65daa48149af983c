"""How a gradient was clipped, found from what went in and what came out."""

import dataclasses
import math

import numpy as np

from parity.training.records import norm
from parity.training.rules import (
    EACH, GLOBAL, UNCLIPPED, VALUE, UpdateRule, clipped)

#: What is added to a norm before the limit is divided by it: torch's, none.
ADDED = (1e-6, 0.0)

#: How near a limit comes at every step, relatively; and a factor that only
#: what is added to a norm shows.
SAME, NEAR = 1e-9, 1e-3


def rule_of(run, scale=1.0):
    """The clipping of a run as an UpdateRule that only clips, or None.

    Args:
        run: a records.WatchedRun.
        scale: what gradients may be multiplied with first.
    """
    if run.inner:
        rule = next(iter(run.rules.values()), None)
        return rule and UpdateRule(rule.kind, clip=rule.clip,
                                   clip_by=rule.clip_by,
                                   clip_eps=rule.clip_eps)
    raws = [record.raw for record in run.steps]
    useds = [record.used or record.raw for record in run.steps]
    for rule in _candidates(raws, useds, scale):
        if error(rule, raws, useds) <= SAME:
            return rule
    return None


def scaled_first(one, two):
    """The rule of a run that clips before it unscales, with the order of the
    other's; or None.

    Both are the same but for a limit that is as many times too small as the
    gradients were too large.

    Args:
        one: the UpdateRule of the other run, which multiplies the gradients.
        two: that of the one.
    """
    if one.scale == 1 or two.clip_by == UNCLIPPED or two.scale not in (
            1, one.scale):
        return None
    limit = two.clip / one.scale
    plain = float(f"{limit:.3g}")
    limit = plain if math.isclose(plain, limit, rel_tol=1e-6) else limit
    if one.clip_by != UNCLIPPED:
        return one if one.clip_by == two.clip_by and math.isclose(
            limit, one.clip, rel_tol=NEAR) else None
    return None if digits(limit) >= digits(two.clip) else (
        dataclasses.replace(two, scale=one.scale, clip=limit,
                            clip_eps=ADDED[0] if two.clip_eps else 0.0))


def error(rule, raws, useds):
    """How far a clipping's gradients are from those that were used."""
    worst = 0.0
    for raw, used in zip(raws, useds):
        raw = {path: array.astype(np.float64) for path, array in raw.items()
               if path in used}
        made = clipped(dict.fromkeys(raw, rule), raw)
        gap = norm({path: made[path] - used[path] for path in made})
        size = norm({path: used[path] for path in made})
        worst = max(worst, gap / size if size else math.inf * bool(gap)
                    if gap else 0.0)
    return worst


def _candidates(raws, useds, scale):
    """The rules that may be; their limits follow from the numbers."""
    plain = UpdateRule("SGD")
    yield plain
    sizes = [(norm(raw), norm(used)) for raw, used in zip(raws, useds)]
    most = max((used / raw for raw, used in sizes if raw), default=1.0)
    largest = max((float(np.abs(array).max(initial=0)) for used in useds
                   for array in used.values()), default=0.0)
    yield dataclasses.replace(plain, scale=short(most))
    for times in dict.fromkeys((1.0, short(most), scale, _by_added(sizes))):
        for added in dict.fromkeys((*ADDED, ADDED[0] * times)):
            yield from _limited(dataclasses.replace(
                plain, scale=times, clip_eps=added), raws, useds, sizes)
        if largest:
            yield dataclasses.replace(plain, scale=times, clip=short(largest),
                                      clip_by=VALUE)


def _by_added(sizes):
    """What gradients were multiplied with before they were clipped, by what
    torch adds to their norm; 1 where it does not show.

    Args:
        sizes: the global norm of each step, before and after.
    """
    one, two = (max(sizes), min(sizes)) if sizes else ((0, 0), (0, 0))
    if not (two[0] < one[0] and two[1] and one[1]):
        return 1.0
    slope = (1 / two[1] - 1 / one[1]) / (1 / two[0] - 1 / one[0])
    added = slope / (1 / one[1] - slope / one[0])
    if not 0 < added < one[0]:
        return 1.0
    power = 2.0 ** round(math.log2(ADDED[0] / added))
    found = ADDED[0] / added
    return power if math.isclose(found, power, rel_tol=NEAR) else float(
        f"{found:.3g}")


def _limited(rule, raws, useds, sizes):
    """A rule with the limit of the global norm, and with each one's."""
    times, added = rule.scale, rule.clip_eps
    limits = [used * (1 + added / (times * raw)) for raw, used in sizes
              if raw and used < times * raw * (1 - SAME)]
    if limits:
        yield dataclasses.replace(rule, clip=short(min(limits)),
                                  clip_by=GLOBAL)
    limits = [norm({0: used[path]}) * (1 + added / (times * size))
              for raw, used in zip(raws, useds) for path in used
              if path in raw for size in [norm({0: raw[path]})]
              if size and norm({0: used[path]}) < times * size * (1 - SAME)]
    if limits:
        yield dataclasses.replace(rule, clip=short(min(limits)), clip_by=EACH)


def digits(value):
    """How many digits a number has without zeros at its ends."""
    return len(f"{short(value):.12e}".partition("e")[0].replace(
        ".", "").rstrip("0"))


def short(value):
    """A number in as few digits as are the same."""
    for count in range(1, 13):
        shown = float(f"{value:.{count}g}")
        if math.isclose(shown, value, rel_tol=1e-9):
            return shown
    return value
