"""Why running statistics differ after a step, such as batch norm's."""

import math

import numpy as np

from parity.matching.rearrangement import rearranged
from parity.numerics.words import number
from parity.training.cause import TrainingCause
from parity.training.lockstep import BUFFERS

#: How near a ratio is the same for every number of a buffer.
SAME = 1e-8


def causes_of(case):
    """The TrainingCauses of buffers that were moved in another way."""
    rows = [row for row in case.rows if row.quantity == BUFFERS
            and row.differs]
    if not rows:
        return []
    pairs = {(pair.a, pair.b): pair for pair in case.lock.pairs}
    seen, found = set(), []
    for row in rows:
        if (row.a, row.b) in seen:
            continue
        seen.add((row.a, row.b))
        found.append(_of(case, pairs[row.a, row.b], row))
    merged: dict = {}
    for cause in found:
        merged.setdefault((cause.what, cause.in_a, cause.in_b, cause.proof),
                          []).append(cause)
    for causes in merged.values():
        causes[0].where = (causes[0].where if len(causes) == 1 else
                           f"{causes[0].where} and {len(causes) - 1} more")
    return [causes[0] for causes in merged.values()]


def _of(case, pair, row):
    """The cause of one pair of buffers."""
    moves = []
    for mine, other in zip(case.a.steps, case.b.steps):
        old = rearranged(pair.a_layout, mine.buffers_before[pair.a])
        new = rearranged(pair.a_layout, mine.buffers[pair.a])
        theirs = rearranged(pair.b_layout, other.buffers[pair.b])
        moves.append([each.reshape(-1).astype(np.float64)
                      for each in (old, new, theirs)])
    old, new, theirs = (np.stack(each) for each in zip(*moves))
    if not (theirs - old).any():
        return TrainingCause(
            "running statistics", row.step, BUFFERS, row.b, "updated",
            "not updated", ("mode", "statistics"),
            evidence=("b's stay as they are before the step.",))
    if not (new - old).any():
        return TrainingCause(
            "running statistics", row.step, BUFFERS, row.b, "not updated",
            "updated", ("mode", "statistics"))
    ratio = _constant(theirs - old, new - old)
    kept = [_momentum(run, path) for run, path in (
        (case.a, pair.a), (case.b, pair.b))]
    if ratio is not None:
        one, two = (kept[0], kept[1]) if None not in kept else (None, None)
        if one is not None and math.isclose(two / one, ratio, rel_tol=1e-6):
            words = f"{one:.6g} of the new", f"{two:.6g} of the new"
        else:
            words = "1", f"{ratio:.6g} times as far"
        return TrainingCause(
            "momentum of the running statistics", row.step, BUFFERS, row.b,
            *words, ("statistics",),
            f"Moved 1/{ratio:.6g} as far, b's are a's.")
    found = _unbiased(old, new, theirs, kept)
    if found:
        count, error, less = found
        words = [f"over n = {count}", f"over n - 1 = {count - 1}"]
        if less == "a":
            words.reverse()
        return TrainingCause(
            "variance kept with the other denominator", row.step, BUFFERS,
            row.b, words[1], words[0], ("statistics",),
            f"Times n/(n - 1) with n = {count}, "
            f"{'b' if less == 'b' else 'a'}'s is the other's to "
            f"{number(error)}.")
    return TrainingCause("", row.step, BUFFERS, row.b,
                         topics=("statistics",))


def _constant(one, two):
    """The number by which ``two`` is ``one``, or None."""
    size = float((two * two).sum())
    ratio = float((one * two).sum()) / size if size else math.nan
    gap = float(np.abs(one - ratio * two).max())
    return ratio if gap <= SAME * float(np.abs(one).max()) else None


def _unbiased(old, new, theirs, kept):
    """(n, error, which side divides by n), where n is whole; or None."""
    for share in dict.fromkeys([each for each in kept if each] + [
            0.1, 0.01, 0.001]):
        batch = [each - (1 - share) * old for each in (new, theirs)]
        ratio = _constant(*batch)
        if ratio is None or math.isclose(ratio, 1, rel_tol=SAME):
            continue
        less = "b" if ratio > 1 else "a"
        times = ratio if ratio > 1 else 1 / ratio
        count = round(times / (times - 1))
        if count > 1 and math.isclose(
                times, count / (count - 1), rel_tol=1e-8):
            error = float(np.abs(batch[0] - ratio * batch[1]).max()
                          / np.abs(batch[0]).max())
            return count, error, less
    return None


def _momentum(run, path):
    """The share of the new statistics, as a module says; or None."""
    kind, settings = run.modules.get(path.rpartition(".")[0], ("", {}))
    value = settings.get("momentum")
    if not isinstance(value, float):
        return None
    return value if run.framework == "torch" else 1 - value
