"""Parameters that one rule moves otherwise than the rest.

Of a step that is not known, some parameters may follow a rule that is, and
others one that is a word or a number away from it, or none: they stay as they
are.
"""

import dataclasses

import numpy as np

from parity.matching.rearrangement import rearranged
from parity.numerics.words import listed
from parity.training.lockstep import WEIGHTS
from parity.training.rules import GLOBAL

#: How near a step of a parameter is to a multiple of another, relatively.
SAME = 1e-8

#: So many groups of parameters are sought.
MOST = 4


def still(side):
    """The paths of a side that have gradients and are never moved."""
    return {path for path in side.befores[0] if any(
        np.any(found[path]) for found in side.gradients if path in found)
        and all(np.array_equal(before[path], after[path]) for before, after
                in zip(side.befores, side.afters))}


def parted(side, paths, near, fit):
    """The rules of each group of parameters, or {}.

    Args:
        side: an updates.UpdateSide without rules.
        paths: those that have gradients and are moved.
        near: {path: UpdateRule} of the other side, which most follow.
        fit: a function of (a side, paths, one rule) that returns their rules,
            which are a variation of it, or {}.
    """
    if not near or any(rule.clip_by == GLOBAL for rule in near.values()):
        return {}  # which looks at all of them together
    rules, left = {}, []
    for path in paths:
        rule = near.get(path) or next(iter(near.values()))
        alone = dataclasses.replace(of_paths(side, [path]),
                                    rules={path: rule})
        if alone.error() <= 1:
            rules[path] = rule
        else:
            left.append(path)
    if not rules:
        return {}
    for _ in range(MOST):
        if not left:
            return rules
        rule = near.get(left[0]) or next(iter(near.values()))
        found = fit(of_paths(side, left), left, rule)
        group = left if found else left[:1]
        found = found or fit(of_paths(side, group), group, rule)
        if not found:
            return {}
        rules |= found
        more = [path for path in left if path not in found]
        for path in more:
            alone = dataclasses.replace(of_paths(side, [path]), rules={
                path: found[group[0]]})
            if alone.error() <= 1:
                rules[path] = found[group[0]]
        left = [path for path in more if path not in rules]
    return {}


def of_paths(side, paths):
    """A side with these parameters alone."""
    def some(steps):
        return [{path: array for path, array in arrays.items()
                 if path in paths} for arrays in steps]
    return dataclasses.replace(
        side, rules={}, befores=some(side.befores),
        gradients=some(side.gradients), afters=some(side.afters))


def facts(case):
    """Sentences on which parameters a step of b moves otherwise, and by what.
    """
    wrong = dict.fromkeys((row.a, row.b) for row in case.rows if row.differs
                          and row.counted and row.quantity == WEIGHTS)
    pairs = [pair for pair in case.lock.pairs
             if pair.a in case.a.steps[0].before
             and pair.b in case.b.steps[0].before]
    others = [pair for pair in pairs if (pair.a, pair.b) in wrong]
    if others and len(others) < len(pairs):
        names = [pair.b for pair in others]
        yield (f"{listed(names[:4])}"
               + f" and {len(names) - 4} more" * (len(names) > 4)
               + " alone " + ("is" if len(names) == 1 else "are")
               + " moved otherwise.")
    factors = [_factor(case, pair) for pair in others]
    if None not in factors and factors and np.allclose(
            factors, factors[0], rtol=SAME):
        yield (f"b moves {'it' if len(factors) == 1 else 'them'} "
               f"{factors[0]:.6g} times as far as a, at every step.")


def _factor(case, pair):
    """The number by which b moves a parameter farther at every step, or None.
    """
    moves = []
    for mine, other in zip(case.a.steps, case.b.steps):
        moves.append([rearranged(layout, record.after[path].astype(np.float64)
                                 - record.before[path]).reshape(-1)
                      for record, layout, path in (
                          (mine, pair.a_layout, pair.a),
                          (other, pair.b_layout, pair.b))])
    one, two = (np.concatenate(each) for each in zip(*moves))
    size = float(one @ one)
    if not size:
        return None
    factor = float(one @ two) / size
    gap = np.linalg.norm(two - factor * one)
    return factor if gap <= SAME * np.linalg.norm(two) else None
