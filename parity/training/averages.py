"""That an average of the weights is kept with another decay.

A teacher of a student, or any other copy of the model, is t ← d t + (1 - d) s
after each step, s being the weights (Tarvainen and Valpola, arXiv:1703.01780,
eq. 2). d follows from the numbers of both.
"""

import numpy as np

from parity.matching.rearrangement import rearranged
from parity.numerics.words import number
from parity.training.cause import TrainingCause
from parity.training.clipping import short
from parity.training.lockstep import LOSS

#: How near an average is to what its decay gives, relatively.
NEAR = 1e-5

#: Which weights are averaged: those of the model after its step, or before.
AFTER, BEFORE = "after", "before"


def causes_of(case, row):
    """The TrainingCauses that copies of the model are averaged otherwise.

    Args:
        case: a case.LockedPair.
        row: the first StepRow that differs.
    """
    found = []
    for one, two in zip(case.a.copies, case.b.copies):
        if row.step < 2 or len(one.seen) < 2 or len(two.seen) < 2:
            continue
        sides = [_decays(copy, run.steps)
                 for copy, run in ((one, case.a), (two, case.b))]
        if None in sides:
            continue
        (mine, own), (others, their) = sides
        if mine == others and np.allclose(own, their, rtol=1e-6):
            continue
        error = _exchanged(case, one, two, mine, own[0])
        if not error <= NEAR:
            continue
        words = [_word(*each) for each in ((mine, own), (others, their))]
        what = ("decay of the average of the weights" if mine == others else
                "which weights are averaged")
        found.append(TrainingCause(
            what, row.step, LOSS, one.kind, *words, ("average",),
            "With a's in b, b's average after the first step is a's to "
            f"{number(error)}.",
            f"decay = {own[0]:.6g}" if mine == others else ""))
    return found[:1]


def _exchanged(case, one, two, when, decay):
    """How far b's copy is from a's after the first step, relatively, if it is
    averaged as a's is; NaN where they share no weight."""
    gap = size = 0.0
    for pair in case.lock.pairs:
        if pair.a not in one.seen[0] or pair.b not in two.seen[0]:
            continue
        weight = getattr(case.b.steps[0], when)[pair.b]
        made = decay * two.seen[0][pair.b].astype(np.float64) + (
            1 - decay) * weight
        a = rearranged(pair.a_layout, one.seen[1][pair.a])
        gap += float(np.square(rearranged(pair.b_layout, made) - a).sum())
        size += float(np.square(a, dtype=np.float64).sum())
    return (gap / size) ** 0.5 if size else np.nan


def _decays(copy, steps):
    """(AFTER or BEFORE, the decay of each step) of a copy that is such an
    average; else None."""
    for when in (AFTER, BEFORE):
        decays, worst = [], 0.0
        for old, new, record in zip(copy.seen, copy.seen[1:], steps):
            weights = getattr(record, when)
            before, after, own = (np.concatenate([
                each[path].reshape(-1).astype(np.float64)
                for path in copy.paths]) for each in (old, new, weights))
            apart = before - own
            size = float(apart @ apart)
            if not size:
                break
            decay = float(apart @ (after - own)) / size
            gap = float(np.linalg.norm(after - own - decay * apart))
            decays.append(short(float(f"{decay:.6g}")))
            worst = max(worst, gap / float(np.linalg.norm(after)))
        if decays and worst <= NEAR and all(0 <= d <= 1 for d in decays):
            return when, decays
    return None


def _word(when, decays):
    """A decay in words."""
    shown = (f"{decays[0]:.6g}" if np.allclose(decays, decays[0], rtol=1e-6)
             else ", ".join(f"{each:.6g}" for each in decays[:4]))
    return shown if when == AFTER else f"{shown}, of those before the step"
