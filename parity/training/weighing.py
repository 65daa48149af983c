"""How the gradients of the batches of one step are weighed.

Both sides' gradients are fitted as weighted sums of the same parts, one side's
backward passes. What is told comes out on the numbers of every step.
"""

import dataclasses

import numpy as np

from parity.matching.rearrangement import rearranged
from parity.numerics.words import listed, number
from parity.tracing.trace import WHOLE
from parity.training import targets
from parity.training.cause import TrainingCause
from parity.training.lockstep import RAW

#: How near a weighted sum is to a gradient, relatively.
NEAR = 1e-9

#: How near two weights are the same.
SAME = 1e-6

#: So many weights are shown.
SHOWN = 8


@dataclasses.dataclass
class Weighing:
    """How each side weighs the same parts of each step.

    Attributes:
        source: "a" or "b", whose parts they are.
        a, b: for each step the weights, [parts].
        error: how far the sums are from the gradients, at most, relatively.
    """

    source: str
    a: list
    b: list
    error: float = 0.0

    def ratios(self):
        """For each step how many times as much each part counts in b."""
        with np.errstate(all="ignore"):
            return [two / one for one, two in zip(self.a, self.b)]


def by_batches(case, row):
    """That batches that make one step are weighed in another way.

    Args:
        case: a case.LockedPair whose gradients differ.
        row: the first lockstep.StepRow that does.

    Returns:
        TrainingCauses.
    """
    found = _of_batches(case)
    if found is None:
        return []
    ratios = found.ratios()
    step = next((i for i, each in enumerate(ratios)
                 if not np.allclose(each, 1, rtol=SAME)), None)
    if step is None:
        return []
    first, count = ratios[step], len(ratios[step])
    proof = ("With each batch weighed as in a, b's gradients add up to a's to "
             if found.source == "b" else
             "Weighed as in b, a's gradients of each batch add up to b's to "
             ) + f"{number(found.error)} at every step."
    if all(np.allclose(each, each[0], rtol=SAME) for each in ratios):
        what, words = "scale of the accumulated gradient", [
            "1 of each batch", f"{first[0]:.6g} of each"]
        for factor, pair in ((count, ("the mean", "the sum")),
                             (1 / count, ("the sum", "the mean"))):
            if np.isclose(first[0], factor):
                words = pair
        return [cause_of(what, row, words, proof)]
    what, evidence = _name(case, ratios)
    return [cause_of(what, row, [
        f"each batch counts {in_words(each)}" for each in counted(first)],
        proof, evidence)]


def cause_of(what, row, words, proof, evidence=()):
    """A TrainingCause of a gradient."""
    return TrainingCause(what, row.step, row.quantity if row.quantity != "loss"
                         else RAW, "", *words, ("accumulation", "loss"),
                         proof, evidence=tuple(evidence))


def counted(ratio):
    """What each part counts in a and in b; the side whose parts count alike
    has 1/n of each."""
    count = len(ratio)
    alike = np.full(count, 1 / count)
    with np.errstate(all="ignore"):
        inverse = 1 / ratio
    if np.isclose(inverse.sum(), count, rtol=SAME):
        return inverse / count, alike
    return alike, ratio / count


def in_words(values):
    """Weights in words."""
    shown = ", ".join(f"{value:.4g}" for value in values[:SHOWN])
    return shown + ", …" * (len(values) > SHOWN)


def _name(case, ratios):
    """(what an unequal weighing is called, sentences on it)."""
    if any((each == 0).any() or np.isinf(each).any() for each in ratios):
        last = all(not each[:-1].any() and each[-1] for each in ratios)
        return "batches left out", [
            "Only the last batch of each step counts, as where gradients are "
            "zeroed before every batch."] if last else []
    for counts in _counts(case):
        shares = [each / each.sum() for each in counts]
        if any(all(np.allclose(part[side], share, rtol=SAME)
                   and np.allclose(part[1 - side], 1 / len(share), rtol=SAME)
                   for part, share in zip(map(counted, ratios), shares))
               for side in (0, 1)):
            return "mean of means in the accumulation", []
        for power, word in ((1, "b"), (-1, "a")):
            summed = [np.isclose(each ** power, count, rtol=SAME)
                      for each, count in zip(ratios, counts)]
            plain = [np.isclose(each, 1, rtol=SAME) for each in ratios]
            if all((one | two).all() and one.any()
                   for one, two in zip(summed, plain)):
                places = [str(i + 1) for i in np.flatnonzero(summed[0])]
                return "mean of the loss", [
                    f"{word} sums the loss of batch {listed(places)} of each "
                    f"step, over {in_words(counts[0][summed[0]])} numbers."]
    return "weights of the accumulated batches", []


def _counts(case):
    """Yield, for each step, how many places count in each batch of it."""
    for side in "ab":
        steps = targets.steps_of(case, side)
        for labels in {key for step in steps[:1] for key in step}:
            places = [step[labels] for step in steps if labels in step]
            if len(places) < len(steps):
                continue
            seen = {None, *(int(label) for each in places[:1]
                            for label in np.unique(each.targets)
                            if each.outputs.ndim > 1 and label >= 0)}
            for ignored in seen:
                counts = [np.bincount(each.parts, (
                    (each.targets >= 0) & (each.targets != ignored)
                    if each.outputs.ndim > 1 else None)).astype(float)
                    for each in places]
                if all(each.all() and len(each) > 1 for each in counts):
                    yield counts
        run = getattr(case, side)
        sizes = [np.array([array.size for path, array in record.outputs
                           if path == WHOLE], float) for record in run.steps]
        if all(len(each) == len(record.parts) > 1 for each, record in zip(
                sizes, run.steps)):
            yield sizes


def _of_batches(case):
    """The Weighing of the batches of each step, or None."""
    taken = [_taken(run) for run in (case.a, case.b)]
    for source in "ba":
        made = Weighing(source, [], [])
        for i, record in enumerate(getattr(case, source).steps):
            parts = [part.gradients for part in record.parts]
            if len(parts) < 2 or not weigh(
                    case, made, [each[i] for each in taken], parts):
                break
        else:
            return made if len({*map(len, made.a)}) == 1 else None
    return None


def factors(case):
    """For each step the number by which b's gradient is a's; [] if none is.
    """
    taken = [_taken(run) for run in (case.a, case.b)]
    made = Weighing("a", [], [])
    if not all(weigh(case, made, each, each[:1]) for each in zip(*taken)):
        return []
    return [float(each[0]) for each in made.b]


def weigh(case, made, wholes, parts):
    """Add a step to a Weighing; whether both gradients are such sums.

    Args:
        wholes: {path: gradient} of a and of b.
        parts: of each part, {path in ``made.source``: gradient}.
    """
    pairs = [pair for pair in case.lock.pairs
             if pair.a in wholes[0] and pair.b in wholes[1]]
    if not pairs:
        return False
    vectors = [_vector(pairs, parts_of, made.source, wholes)
               for parts_of in parts]
    for side, whole in zip("ab", wholes):
        found = shares(_vector(pairs, whole, side, wholes), vectors)
        if found is None:
            return False
        getattr(made, side).append(found[0])
        made.error = max(made.error, found[1])
    return True


def _vector(pairs, arrays, side, wholes):
    """The gradients of a side's paired parameters as one vector."""
    like = wholes["ab".index(side)]
    return np.concatenate([rearranged(
        getattr(pair, f"{side}_layout"), arrays[path] if path in arrays
        else np.zeros(like[path].shape)).reshape(-1)
        for pair in pairs for path in [getattr(pair, side)]]).astype(
            np.float64)


def shares(whole, parts):
    """(the weights with which parts add up to a whole, how far off), or None.
    """
    if not parts or whole.size <= len(parts) or not np.isfinite(whole).all():
        return None
    sizes = np.array([np.linalg.norm(part) for part in parts])
    if not sizes.all() or not np.isfinite(sizes).all():
        return None
    matrix = np.stack(parts, 1) / sizes
    found, _, rank, _ = np.linalg.lstsq(matrix, whole, rcond=SAME)
    gap, size = np.linalg.norm(matrix @ found - whole), np.linalg.norm(whole)
    if rank < len(parts) or not size or gap > NEAR * size:
        return None
    found[np.abs(found) < NEAR * size] = 0.0
    return found / sizes, float(gap / size)


def _taken(run):
    """For each step what moved the weights, before it was clipped.

    An optimiser may be given its gradients times a number, or not all of them.
    What is not the same sum at every step was clipped.
    """
    raws = [record.raw for record in run.steps]
    useds = [record.used for record in run.steps]
    if run.inner or None in useds:
        return raws
    weights: list = []
    for record in run.steps:
        paths = [path for path in record.raw if path in record.used]
        flat = [np.concatenate([each[path].reshape(-1) if path in each else
                                np.zeros(record.raw[path].size)
                                for path in paths] or [np.zeros(0)])
                for each in (record.used, *(
                    part.gradients for part in record.parts))]
        found = shares(flat[0], flat[1:])
        if found is None or weights and (
                len(weights[-1]) != len(found[0])
                or not np.allclose(weights[-1], found[0], rtol=SAME)):
            return raws
        weights.append(found[0])
    return useds
