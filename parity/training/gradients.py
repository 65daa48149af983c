"""Why losses or gradients differ although the weights are the same."""

import math

import numpy as np

from parity_io.errors import InputError
from parity.matching.rearrangement import rearranged
from parity.numerics.words import listed, number
from parity.training import (
    averages, losses, models, targets, weighing, weighing_rows)
from parity.training.cause import TrainingCause
from parity.training.lockstep import LOSS, RAW

#: How near the gradients of what was tied add up to a gradient, relatively.
TIED = 1e-9

#: What a field of a formula is called, and which line is about it.
CAUSES = {"kind": "kind of the loss", "labels": "labels",
          "ignored": "ignored label", "reduction": "mean of the loss",
          "smoothing": "label smoothing"}


def differing(rows):
    """The rows of losses and gradients that differ."""
    return [row for row in rows if row.differs
            and row.quantity in (LOSS, RAW)]


def settled(case):
    """(a LockedPair without dropout and in one mode, the TrainingCauses).

    Raises:
        InputError: both drop values at random, and not the same ones.
    """
    if not differing(case.rows):
        return case, []
    causes = []
    first = differing(case.rows)[0]
    if case.a.training != case.b.training and None not in (
            case.a.training, case.b.training):
        trial = case.again(change_b=lambda watcher, training: watcher.switched(
            training, case.a.training))
        if _nearer(trial, case):
            causes.append(TrainingCause(
                "mode of the model", first.step, first.quantity, "",
                *("training" if each.training else "evaluation"
                  for each in (case.a, case.b)), ("mode", "model"),
                _proof(trial, "in b as well"),
                "model.train()" if case.a.training else "model.eval()"))
            case = trial
    dropping = [run.dropping for run in (case.a, case.b)]
    if differing(case.rows) and any(dropping):
        def off(watcher, training):
            watcher.undropped(training)
        trial = case.again(*(off if each else None for each in dropping))
        if all(dropping) and not differing(trial.rows):
            raise InputError(
                f"both drop values at random ({listed(dropping[0])} of a, "
                f"{listed(dropping[1])} of b), each others; set their rates "
                "to 0, or seed both alike, so that steps can be compared.")
        if all(dropping):
            case = trial
            case.b.notes.append("both drop values at random, so this was "
                                "compared with nothing dropped.")
        elif _nearer(trial, case):
            some = dropping[0] or dropping[1]
            causes.append(TrainingCause(
                "dropout", first.step, first.quantity, listed(some),
                *("active" if each else "off" for each in dropping),
                ("dropout", "model"),
                _proof(trial, f"off in {'a' if dropping[0] else 'b'}")))
            case = trial
    return case, causes


def _nearer(trial, case):
    """Whether fewer rows differ than before."""
    return len(differing(trial.rows)) < len(differing(case.rows))


def _proof(trial, what):
    """What came out once something was changed, in words."""
    rows = differing(trial.rows)
    if not rows:
        return f"With it {what}, losses and gradients are a's."
    return (f"With it {what}, fewer losses and gradients differ; the rest "
            "has another cause.")


def causes_of(case):
    """The TrainingCauses of losses and gradients, and the rows left over."""
    rows = differing(case.rows)
    if not rows or not any(row.quantity == RAW for row in rows):
        return []  # a loss alone moves no weight
    for find in (averages.causes_of, weighing.by_batches, _formula, _scaled,
                 _untied, weighing_rows.causes_of):
        found = find(case, rows[0])
        if found:
            return found
    if all(row.error is None for row in rows):
        return []  # told as parameters that are not trained
    return _models(case, rows[0]) or [_unknown(case, rows[0])]


def _formula(case, row):
    """That the losses follow two formulas."""
    sides = [targets.steps_of(case, side) for side in "ab"]
    told = [[record.loss for record in run.steps]
            for run in (case.a, case.b)]
    if not all(sides) or any(None in each for each in told):
        return []
    best = losses.fewest(*(list(losses.formulas(steps, loss))
                           for steps, loss in zip(sides, told)))
    if best is None or not best[2]:
        return []
    one, two, names = best
    given = [losses.value(one, step[one.labels]) for step in sides[1]
             if one.labels in step]
    if len(given) < len(sides[1]):
        return []
    error = max(abs(mine - other) / abs(mine) if mine else abs(other)
                for mine, other in zip(told[0], given))
    if error > losses.EXACT:
        return []
    proof = (f"Computed as a's, the loss of b's outputs is a's to "
             f"{number(error)}; computed as b's, it is b's.")
    return [TrainingCause(
        CAUSES[name], row.step, LOSS, "",
        *(_word(getattr(each, name)) for each in (one, two)), ("loss",),
        proof) for name in names]


def _word(value):
    """A field of a formula in words."""
    return "none" if value is None else (
        f"{value:g}" if isinstance(value, float) else str(value))


def _scaled(case, row):
    """That every gradient is multiplied by one number."""
    factors = weighing.factors(case)
    if not factors:
        return []
    if not np.allclose(factors, factors[0], rtol=1e-6) or np.isclose(
            factors[0], 1, rtol=1e-6):
        return []
    told = [record.loss for run in (case.a, case.b) for record in run.steps]
    both = None not in told and np.allclose(
        [factors[0] * each for each in told[:len(factors)]],
        told[len(factors):], rtol=1e-6)
    return [TrainingCause(
        "scale of the loss" if both else "scale of the gradient", row.step,
        LOSS if both else RAW, "", "1", f"{factors[0]:.6g}",
        ("loss", "accumulation"),
        f"Divided by {factors[0]:.6g}, b's gradients are a's at every step.")]


def _untied(case, row):
    """That what is one parameter in one model are two in the other.

    The gradient of the one is then the sum of both, which are alike at first.
    """
    wrong = {(each.a, each.b) for each in differing(case.rows)
             if each.step == 1 and each.quantity == RAW}
    for pair in case.lock.pairs if row.step == 1 else ():
        if (pair.a, pair.b) in wrong:
            for side in "ab":
                for path, error in _with_another(case, pair, side):
                    other = "b" if side == "a" else "a"
                    words = {side: "two, alike at the start",
                             other: "one parameter"}
                    return [TrainingCause(
                        "weight tying", 1, RAW,
                        listed([getattr(pair, side), path]), words["a"],
                        words["b"], ("model",),
                        f"The gradients of both add up to {other}'s of "
                        f"{getattr(pair, other)} to {number(error)}.",
                        "let both be one parameter" if side == "b" else
                        "give each a parameter of its own")]
    return []


def _with_another(case, pair, side):
    """Yield (path, error) of what a side's parameter is tied to in the other.

    Args:
        pair: of which the gradients differ in the first step.
        side: "a" or "b", which has two.
    """
    steps = {"a": case.a.steps[0], "b": case.b.steps[0]}
    step, mine = steps[side], getattr(pair, side)
    for path, array in step.before.items():
        if path not in {getattr(each, side) for each in case.lock.pairs} and (
                path in step.raw
                and np.array_equal(array, step.before[mine])):
            raw = {each: steps[each].raw[getattr(pair, each)] for each in "ab"}
            raw[side] = raw[side] + step.raw[path]
            one, two = (rearranged(layout, raw[each]) for layout, each in (
                (pair.a_layout, "a"), (pair.b_layout, "b")))
            error = float(np.linalg.norm(one - two)
                          / (np.linalg.norm(one) or 1))
            if error <= TIED:
                yield path, error


def _outputs_differ(case, row):
    """Whether the models' outputs differ in a step; None if it is not known.
    """
    ends = [each.steps[row.step - 1].outputs[-1][1]
            for each in (case.a, case.b) if each.steps[row.step - 1].outputs]
    if len(ends) < 2 or ends[0].size != ends[1].size:
        return None
    gap = np.abs(np.sort(ends[0].reshape(-1))
                 - np.sort(ends[1].reshape(-1))).max()
    return bool(gap > 1e-6 * (np.abs(ends[0]).max() or 1.0))


def _models(case, row):
    """What the models themselves compute otherwise, as TrainingCauses."""
    return models.causes_of(case, row) if _outputs_differ(case, row) else []


def _unknown(case, row):
    """What is known where no cause is."""
    known, differ = [], _outputs_differ(case, row)
    loss = case.b.steps[row.step - 1].loss
    if loss is not None and not math.isfinite(loss):
        known.append(f"The loss of b is {loss} in step {row.step}.")
    elif differ:
        known.append("Given the same weights, the outputs differ: the "
                     "models do; ask parity compare without --train.")
    elif differ is False and row.quantity == LOSS:
        known.append("The outputs are the same, so the loss is computed "
                     "in another way." if row.step == 1 else
                     "The outputs are the same, and so were the losses "
                     "before. The loss reads something else that a step "
                     "changes, such as an average of the weights.")
    return TrainingCause("", row.step, row.quantity, row.b,
                         topics=("loss",), evidence=tuple(known))


