"""Why two optimisers are given other gradients than the backward passes made.
"""

import dataclasses
import math

from parity.numerics.words import number
from parity.training import clipping, leftover, naming, weighing
from parity.training.cause import TrainingCause
from parity.training.lockstep import RAW, USED, fed
from parity.training.writing import writing


def causes_of(case):
    """That the gradient is clipped in another way, before the optimiser."""
    row = first(case.rows, USED)
    if row is None or first(case.rows, RAW):
        return []
    one, two = (clipping.rule_of(run) for run in (case.a, case.b))
    one = one or clipping.rule_of(case.a, two.scale if two else 1.0)
    two = two or clipping.rule_of(case.b, one.scale if one else 1.0)
    if None in (one, two):
        return (weighing.by_batches(case, row) or leftover.causes_of(case, row)
                or [TrainingCause("", row.step, USED, row.b,
                                  topics=("clipping",))])
    names = [name for name in ("clip_by", "clip", "clip_eps", "scale")
             if getattr(one, name) != getattr(two, name)]
    if "clip_by" in names:
        names = ["clip_by"]
    given = case.lock.given
    raws = [record.raw for record in case.b.steps]
    theirs = [given(fed(case.a, record, False), other.before)
              for record, other in zip(case.a.steps, case.b.steps)]
    if found := _early(case, row, one, two, raws, theirs):
        return [found]
    error = clipping.error(one, raws, theirs)
    if not names or error > clipping.SAME:
        return [TrainingCause("", row.step, USED, row.b,
                              topics=("clipping",))]
    proof = (f"Clipped as in a, b's gradients are a's to {number(error)}; "
             "clipped as in b, they are b's.")
    return [TrainingCause(
        naming.CAUSES[name], row.step, USED, "", *words_of(name, one, two),
        ("accumulation", "loss") if name == "scale" else (
            "clipping", "optimiser"), proof,
        writing(case.b.framework, name, getattr(one, name)))
        for name in names]


def _early(case, row, one, two, raws, theirs):
    """The TrainingCause that one side clips before it unscales, or None.

    Args:
        one, two: the UpdateRules of both sides' clipping.
        raws: for each step b's gradients, not clipped.
        theirs: for each step a's, as its optimiser took them, in b's layout.
    """
    for right, wrong in ((one, two), (two, one)):
        made = clipping.scaled_first(right, wrong)
        if made is None:
            continue
        error = clipping.error(made if wrong is two else dataclasses.replace(
            made, clip=wrong.clip, clip_eps=made.clip_eps * made.scale),
            raws, theirs)
        words = [f"multiplied by {made.scale:.6g} first",
                 f"clipped at {made.clip:.6g} first"]
        if error > clipping.SAME:
            continue
        if wrong is one:
            words.reverse()
        return TrainingCause(
            "clipping before the gradients are unscaled", row.step, USED, "",
            *words, ("clipping",),
            "In the order of a, with the same limit and the same factor, b's "
            f"gradients are a's to {number(error)}.",
            "scaler.unscale_(optimizer) before the clipping"
            if wrong is two and case.b.framework == "torch" else "")
    return None


def words_of(name, one, two):
    """What each side clips by, with the limit."""
    if name != "clip_by":
        return naming.pair_of(name, getattr(one, name), getattr(two, name))
    return tuple(each.clip_by if math.isinf(each.clip) else
                 f"{each.clip_by}, {each.clip:.6g}" for each in (one, two))


def first(rows, *quantities):
    """The first StepRow of these quantities that differs, or None."""
    return next((row for row in rows if row.differs
                 and row.quantity in quantities), None)
