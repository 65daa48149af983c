"""How the gradients of the rows of one step are weighed.

Each row of a's first step is asked by itself, and both gradients are fitted as
weighted sums of theirs.
"""

import numpy as np

from parity_io.errors import InputError
from parity.numerics.words import listed, number
from parity.training.form import arguments
from parity.training.weighing import (
    SAME, SHOWN, Weighing, cause_of, counted, in_words, weigh)

#: So many rows of a step are asked by themselves.
MOST_ROWS = 64


def causes_of(case, row):
    """That the rows of the first step's batches are weighed in another way.

    Args:
        case: a case.LockedPair whose gradients differ.
        row: the first lockstep.StepRow that does.

    Returns:
        TrainingCauses.
    """
    training = case.trainings[0]
    if row.step != 1 or training is None or training.loss is None or (
            training.framework == "keras" or not training.batches
            or training.step or training.loop):
        return []
    try:
        run, _ = case.one.run(1, change=_split)
    except InputError:
        return []  # such as a batch norm's, which takes no single row
    parts = [part.gradients for part in run.steps[0].parts]
    made = Weighing("a", [], [])
    if not 1 < len(parts) <= MOST_ROWS or not weigh(case, made, [
            run.steps[0].raw for run in (case.a, case.b)], parts):
        return []
    ratio, = made.ratios()
    if not np.isfinite(ratio).all() or np.allclose(ratio, ratio[0], rtol=SAME):
        return []
    proof = ("Weighed as in b, a's gradients of each row add up to b's to "
             f"{number(made.error)} in step 1.")
    lost = [str(i + 1) for i in np.flatnonzero(ratio == 0)]
    if lost:
        return [cause_of("rows left out", row, [
            f"all {len(ratio)} rows of step 1 count",
            f"row {listed(lost[:SHOWN])} does not" if len(lost) == 1 else
            f"rows {listed(lost[:SHOWN])} do not"], proof)]
    return [cause_of("weights of the rows", row, [
        f"each row counts {in_words(each)}" for each in counted(ratio)], proof)]


def _split(watcher, training):
    """Let each row of a training's first step be a batch."""
    rows = [each for batch in training.batches[:training.accumulate]
            for each in _rows_of(batch)]
    if 1 < len(rows) <= MOST_ROWS:
        training.batches, training.accumulate = rows, len(rows)


def _rows_of(batch):
    """A batch as batches of one row; [] where its arrays are of other lengths.
    """
    args, keywords = arguments(batch)
    arrays = [*args, *keywords.values()]
    if not all(getattr(each, "ndim", 0) for each in arrays) or len(
            {len(each) for each in arrays}) != 1:
        return []
    for i in range(len(arrays[0])):
        if keywords:
            yield {name: each[i:i + 1] for name, each in keywords.items()}
        else:
            made = tuple(each[i:i + 1] for each in args)
            yield made if isinstance(batch, (tuple, list)) else made[0]
