"""How a gradient was clipped, found from what went in and what came out."""

import dataclasses
import math

import numpy as np

from parity.training.records import norm
from parity.training.rules import (
    EACH, GLOBAL, VALUE, UpdateRule, clipped)

#: What is added to a norm before the limit is divided by it: torch's, none.
ADDED = (1e-6, 0.0)

#: How near a limit comes at every step, relatively.
SAME = 1e-9


def rule_of(run, raws=None, useds=None):
    """The clipping of a run as an UpdateRule that only clips, or None.

    Args:
        run: a records.WatchedRun.
        raws, useds: for each step {path: gradient} before and after; by
            default what the run itself has.
    """
    if run.inner:
        rule = next(iter(run.rules.values()), None)
        return rule and UpdateRule(rule.kind, clip=rule.clip,
                                   clip_by=rule.clip_by,
                                   clip_eps=rule.clip_eps)
    raws = raws or [record.raw for record in run.steps]
    useds = useds or [record.used or record.raw for record in run.steps]
    for rule in _candidates(raws, useds):
        if error(rule, raws, useds) <= SAME:
            return rule
    return None


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


def _candidates(raws, useds):
    """The rules that may be; their limits follow from the numbers."""
    plain = UpdateRule("SGD")
    yield plain
    sizes = [(norm(raw), norm(used)) for raw, used in zip(raws, useds)]
    for added in ADDED:
        limits = [used * (raw + added) / raw for raw, used in sizes
                  if raw and used < raw * (1 - SAME)]
        if limits:
            yield dataclasses.replace(
                plain, clip=short(min(limits)), clip_by=GLOBAL,
                clip_eps=added)
    for added in ADDED:
        limits = [norm({0: used[path]}) * (1 + added / norm({0: raw[path]}))
                  for raw, used in zip(raws, useds) for path in used
                  if path in raw and norm({0: used[path]}) < norm(
                      {0: raw[path]}) * (1 - SAME)]
        if limits:
            yield dataclasses.replace(
                plain, clip=short(min(limits)), clip_by=EACH, clip_eps=added)
    largest = max((float(np.abs(array).max(initial=0)) for used in useds
                   for array in used.values()), default=0.0)
    if largest:
        yield dataclasses.replace(plain, clip=short(largest), clip_by=VALUE)
    scales = [used / raw for raw, used in sizes if raw]
    if scales:
        yield dataclasses.replace(plain, scale=short(scales[0]))


def short(value):
    """A number in as few digits as are the same."""
    for digits in range(1, 13):
        shown = float(f"{value:.{digits}g}")
        if math.isclose(shown, value, rel_tol=1e-9):
            return shown
    return value


