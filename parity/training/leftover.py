"""That gradients of the step before are left over, and added to a step's."""

import numpy as np

from parity.numerics.words import number
from parity.training.cause import TrainingCause
from parity.training.lockstep import USED, apart

#: How near a step's gradients are to the sum.
NEAR = 1e-9


def causes_of(case, row):
    """The TrainingCause that one side alone does not zero its gradients, or
    none.

    Args:
        case: a case.LockedPair.
        row: the first StepRow of what the optimisers took that differs.
    """
    taken = {"a": [record.gradients for record in case.a.steps],
             "b": case.lock.taken(case.b)}
    kept = {side: _left_over(getattr(case, side).steps, taken[side])
            for side in "ab"}
    if (kept["a"] is None) == (kept["b"] is None):
        return []
    words = ["zeroed before every step", "added to those of the step before"]
    error = kept["b"]
    if error is None:
        words.reverse()
        error = kept["a"]
    return [TrainingCause(
        "gradients not zeroed", row.step, USED, "", *words,
        ("accumulation", "loss"),
        "What the step before left and the step's own gradients add up to "
        f"what is taken, to {number(error)}.",
        "optimizer.zero_grad() before every backward pass"
        if kept["a"] is None and case.b.framework == "torch" else "")]


def _left_over(steps, taken):
    """How far each step's gradients are from its own and those before, at
    most; None where they are no such sum."""
    worst = None
    for before, record in zip(taken, steps[1:]):
        if record.used is None or not record.raw:
            return None
        total = {path: array + before.get(path, 0)
                 for path, array in record.raw.items()}
        if not any(np.any(array) for array in before.values()):
            continue
        error = apart(record.used, total)
        if not error <= NEAR:
            return None
        worst = max(worst or 0.0, error)
    return worst
