"""Which formula a loss follows, found from outputs, targets and the loss.

Cross-entropy with label smoothing is equation 7 of Szegedy et al.
(arXiv:1512.00567): (1 - ε) of the label's -log p, and ε of the mean over all
classes.
"""

import dataclasses
import itertools
import math

import numpy as np

#: How near a formula comes to a loss, relatively.
EXACT = 1e-10

#: What is averaged over, and what of it.
MEAN, SUM, ALL, ROWS, ROW_SUMS, PARTS = (
    "mean over what counts", "sum", "sum divided by every place",
    "mean of the rows' means", "sum divided by the rows",
    "mean of the batches' means")

#: Which output stands for which label.
SAME, NEXT = "the same place's", "the next place's"

SQUARES, HALVES, ABSOLUTES, CROSS, TWICE = (
    "squares", "half the squares", "absolute values", "cross-entropy",
    "cross-entropy of probabilities")


@dataclasses.dataclass(frozen=True)
class LossFormula:
    """One form of a loss.

    Attributes:
        kind: CROSS or TWICE, SQUARES, HALVES or ABSOLUTES.
        labels: SAME or NEXT.
        ignored: the label that does not count, or None.
        reduction: MEAN, SUM, ALL, ROWS, ROW_SUMS or PARTS.
        smoothing: ε of the label smoothing.
    """

    kind: str
    labels: str = SAME
    ignored: int | None = None
    reduction: str = MEAN
    smoothing: float = 0.0


@dataclasses.dataclass
class Places:
    """A step's outputs and targets, place by place.

    Attributes:
        outputs: [N V] of classes, or [N] of numbers.
        targets: [N].
        rows, parts: of each place the row of its batch, and the batch.
    """

    outputs: np.ndarray
    targets: np.ndarray
    rows: np.ndarray
    parts: np.ndarray


def formulas(steps, losses):
    """The LossFormulas that give every step's loss.

    Args:
        steps: for each step {SAME or NEXT: Places}.
        losses: for each step the loss.
    """
    made = []
    for labels in steps[0]:
        chosen = [step[labels] for step in steps if labels in step]
        if len(chosen) < len(steps):
            continue
        if chosen[0].outputs.ndim == 1:
            made += _of_numbers(chosen, losses)
        else:
            made += _of_classes(chosen, losses, labels)
    return made


def value(formula, places):
    """The loss of a LossFormula on Places."""
    if places.outputs.ndim == 1:
        gap = places.outputs - places.targets
        each = {SQUARES: gap**2, HALVES: gap**2 / 2,
                ABSOLUTES: np.abs(gap)}[formula.kind]
        return _reduced(each, np.ones(len(each), bool), formula.reduction,
                        places)
    own, uniform = _surprise(places, formula.kind)
    kept = _kept(places, formula.ignored)
    e = formula.smoothing
    return _reduced((1 - e) * own + e * uniform, kept, formula.reduction,
                    places)


def _kept(places, ignored):
    """Which places count; a negative label never does."""
    kept = places.targets >= 0
    return kept if ignored is None else kept & (places.targets != ignored)


def _surprise(places, kind):
    """-log p of each label, and its mean over all classes."""
    scores = places.outputs.astype(np.float64)
    if kind == TWICE:
        scores = _log_softmax(scores)
        scores = np.exp(scores)
    log = _log_softmax(scores)
    labels = np.clip(places.targets, 0, scores.shape[1] - 1)
    return -log[np.arange(len(log)), labels], -log.mean(1)


def _log_softmax(scores):
    scores = scores - scores.max(1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(1, keepdims=True))


def _reduced(each, kept, reduction, places):
    """A loss by place as one number."""
    each = np.where(kept, each, 0.0)
    total = each.sum()
    if reduction == SUM:
        return total
    if reduction == ALL:
        return total / len(each)
    if reduction == MEAN:
        return total / kept.sum() if kept.any() else math.nan
    if reduction == ROW_SUMS:
        return total / len(np.unique(places.rows))
    groups = places.rows if reduction == ROWS else places.parts
    sums, counts = (np.bincount(groups, weights) for weights in (
        each, kept.astype(float)))
    with np.errstate(all="ignore"):
        return (sums / counts)[np.unique(groups)].mean()


def _near(one, two):
    return math.isclose(one, two, rel_tol=EXACT, abs_tol=1e-300)


def _of_numbers(steps, losses):
    """Formulas of a regression."""
    for kind, reduction in itertools.product(
            (SQUARES, HALVES, ABSOLUTES), (MEAN, SUM, ROW_SUMS, PARTS)):
        formula = LossFormula(kind, reduction=reduction)
        if all(_near(value(formula, places), loss)
               for places, loss in zip(steps, losses)):
            yield formula


def _of_classes(steps, losses, labels):
    """Formulas of a classification; the smoothing follows from the loss."""
    seen = sorted({int(label) for places in steps
                   for label in places.targets if label >= 0})
    for kind, reduction, ignored in itertools.product(
            (CROSS, TWICE), (MEAN, SUM, ALL, ROWS, ROW_SUMS, PARTS),
            (None, *seen)):
        if kind == TWICE and ignored is not None:
            continue
        found = []
        for places, loss in zip(steps, losses):
            kept = _kept(places, ignored)
            own, uniform = (_reduced(each, kept, reduction, places)
                            for each in _surprise(places, kind))
            found.append(0.0 if _near(own, loss) else
                         (loss - own) / (uniform - own)
                         if uniform != own else math.nan)
        smoothing = _few_digits(found)
        if smoothing is None:
            continue
        formula = LossFormula(kind, labels, ignored, reduction, smoothing)
        if all(_near(value(formula, places), loss)
               for places, loss in zip(steps, losses)):
            yield formula


def _few_digits(found):
    """The one ε of all steps in at most three digits, or None."""
    if not all(math.isfinite(each) for each in found):
        return None
    shown = float(f"{np.mean(found):.3g}")
    near = all(abs(each - shown) < 1e-7 for each in found)
    return shown if near and 0 <= shown < 1 else None


def fewest(ones, others):
    """The two formulas, one of each side, with the fewest differences.

    Returns:
        (one, other, names of fields), or None where a side has none.
    """
    best = None
    for one, other in itertools.product(ones, others):
        names = [field.name for field in dataclasses.fields(one)
                 if getattr(one, field.name) != getattr(other, field.name)]
        if best is None or len(names) < len(best[2]):
            best = one, other, names
    return best
