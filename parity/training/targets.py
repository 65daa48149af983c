"""Outputs and targets of a step, place by place, for the loss' formula."""

import numpy as np

from parity.training.form import arguments
from parity.training.losses import NEXT, SAME, Places
from parity.tracing.trace import is_float


def steps_of(case, side):
    """For each step {SAME or NEXT: losses.Places}; [] where there are none.

    Args:
        case: a case.LockedPair.
        side: "a" or "b".
    """
    run = getattr(case, side)
    training = case.trainings[side == "b"]
    if (training is None or not training.batches) and _same_inputs(case):
        training = case.trainings[side == "a"]  # of a loop, the other's
    made = []
    for number, record in enumerate(run.steps):
        outputs = _by_path(record.outputs)
        targets = _targets(training, number, record)
        found: dict = {}
        for arrays in outputs:
            for batches in targets:
                if len(arrays) == len(batches):
                    for labels, places in _placed(arrays, batches):
                        found.setdefault(labels, places)
        if not found:
            return []
        made.append(found)
    return made


def _same_inputs(case):
    """Whether both models were called with the same arrays in every step."""
    return all(
        len(one.batch) == len(two.batch) and all(
            mine.shape == other.shape and np.array_equal(
                mine.astype(np.float32), other.astype(np.float32))
            for mine, other in zip(one.batch, two.batch))
        for one, two in zip(case.a.steps, case.b.steps))


def _by_path(outputs):
    """Of each module its outputs in a step, the last that ran first."""
    by_path: dict = {}
    for path, array in outputs:
        by_path.setdefault(path, []).append(array)
    return list(reversed([arrays for arrays in by_path.values()
                          if arrays[0].ndim > 0]))


def _targets(training, number, record):
    """What may be the targets of a step: of each a list by batch."""
    found = []
    if training is not None and training.batches:
        size = training.accumulate
        by_batch = []
        for batch in training.batches[number * size:(number + 1) * size]:
            args, keywords = arguments(batch)
            by_batch.append([np.asarray(
                each.detach().cpu() if hasattr(each, "detach") else each)
                for each in (*args, *keywords.values())
                if hasattr(each, "__array__")])
        found += [list(each) for each in zip(*by_batch)]
    found.reverse()  # the target is the last
    if record.targets and len({len(each) for each in record.targets}) == 1:
        found += [list(each) for each in zip(*record.targets)]
    inputs = [array for array in record.batch if array.dtype.kind in "iu"]
    parts = max(len(record.parts), 1)
    found += [[*_split(each, parts)] for each in found
              if len(each) == 1 and parts > 1]
    if inputs and len(inputs) % parts == 0:
        found += [inputs[i::len(inputs) // parts]
                  for i in range(len(inputs) // parts)]
    return found


def _split(batches, parts):
    """One batch as equal parts of its rows."""
    whole = batches[0]
    if whole.ndim and len(whole) % parts == 0:
        yield from np.split(whole, parts)


def _placed(arrays, batches):
    """Yield (SAME or NEXT, Places) of outputs and targets that fit."""
    if arrays[0].ndim > 1 and batches[0].dtype.kind in "iu":
        batches = [_unfolded(*each) for each in zip(arrays, batches)]
    one, two = arrays[0], batches[0]
    if two.dtype.kind in "iu" and one.ndim == two.ndim + 1:
        if one.shape[:-1] == two.shape:
            yield SAME, _joined(arrays, batches)
            if two.ndim > 1:
                yield NEXT, _joined([each[:, :-1] for each in arrays],
                                    [each[:, 1:] for each in batches])
        elif two.ndim > 1 and one.shape[:-1] == (
                two.shape[0], two.shape[1] - 1):
            yield NEXT, _joined(arrays, [each[:, 1:] for each in batches])
            yield SAME, _joined(arrays, [each[:, :-1] for each in batches])
    elif is_float(two) and one.size == two.size and one.ndim and (
            is_float(one)):
        yield SAME, _joined(arrays, batches, numbers=True)


def _unfolded(output, target):
    """Labels that were laid out for a loss, as their output's places are."""
    rows = output.shape[:-1]
    for shape in (rows, (*rows[:-1], rows[-1] - 1)):
        if target.size == np.prod(shape) and target.size:
            return target.reshape(shape)
    return target


def _joined(arrays, batches, numbers=False):
    """Places of all batches one after another."""
    outputs, targets, rows, parts = [], [], [], []
    row = 0
    for i, (one, two) in enumerate(zip(arrays, batches)):
        places = two.size
        outputs.append(one.reshape(-1) if numbers
                       else one.reshape(places, one.shape[-1]))
        targets.append(two.reshape(-1))
        rows.append(row + np.repeat(np.arange(len(two)),
                                    places // max(len(two), 1)))
        parts.append(np.full(places, i))
        row += len(two)
    return Places(*(np.concatenate(each).astype(kind) for each, kind in zip(
        (outputs, targets, rows, parts),
        (np.float64, np.float64 if numbers else np.int64, np.int64,
         np.int64))))
