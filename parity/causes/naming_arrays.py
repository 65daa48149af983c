"""What a parameter, a table or an order is called that differs: its cause, and
what it is in a and in b."""

import numpy as np

from parity.causes import tables
from parity.causes.related import related, sloped, unlike
from parity.numerics.words import apart, listed
from parity.operations import roles
from parity.operations.expressions import tail
from parity.operations.layouts import distance
from parity.operations.exchanged_trials import PLACES
from parity.operations.program import PARAMETER
from parity.operations.trial import EXCHANGED

#: How near one number each channel's is that was computed in float32.
FLAT = 4e-6


def array(this):
    """Another parameter, buffer or table."""
    trial = this.trial
    mine, theirs = (this.b.values[trial.value_b],
                    this.a.values[trial.value_a])
    edited = np.asarray(next(iter(trial.ways[0].values())))
    truth = edited if edited.size == mine.signature.size else theirs.array
    if told := (variance_of(this, truth, mine.array)
                or normalised_of(this, truth, theirs.array, mine.array)):
        return told
    turns = not any(each.name == "add" for each in this.two.readers.get(
        this.two.root(trial.value_b), ()))
    if base := tables.bases(truth, mine.array):
        return "rotary base" if turns else "base of the positions", *base
    what = "mask" if "b" in (
        mine.signature.kind, theirs.signature.kind) else (
        "parameter" if mine.kind == PARAMETER else "table")
    relation = tables.turned(truth, mine.array)
    if what != "mask" and roles.biases_scores(this.two, trial.value_b):
        what = "bias of the scores"
    if relation:
        what = ("rotary" if turns else "position") + " frequencies"
    relation = (relation or related(truth, mine.array)
                or unlike(truth, mine.array))
    in_a, in_b = (value.name or this.written(side, number)
                  for side, value, number in (
                      ("a", theirs, trial.value_a),
                      ("b", mine, trial.value_b)))
    return what, in_a, f"{in_b}{relation and f', {relation}'}"


def variance_of(this, truth, actual):
    """How variances are told of which one side divides by n - 1, or ()."""
    if not roles.is_variance(this.two, this.trial.value_b):
        return ()
    slope = sloped(truth, actual)
    for share, words in ((slope, (1, 0)), (slope and 1 / slope, (0, 1))):
        count = 1 / (1 - share) if share and 0 < share < 1 else 0
        if count > 1.5 and abs(count - round(count)) < 1e-4 * count:
            n = round(count)
            return "running variance", *(
                (f"over n = {n} numbers", f"over n − 1 = {n - 1}")[each]
                for each in words)
    return ()


def normalised_of(this, truth, theirs, mine):
    """How a kernel is told that is normalised over other axes, or ()."""
    steps = roles.between(this.one, this.trial.value_a, ())
    for root in {root for each in steps
                 for root in this.one.arrays(each).values()}:
        value = this.a.values[root]
        if value.kind == PARAMETER and value.array is not None:
            over = [tables.normalised(array, value.array)
                    for array in (truth, mine, theirs)]
            if None not in over and over[0] != over[1]:
                return "axes of the weight norm", *(
                    "one norm over " + " × ".join(
                        str(array.shape[axis]) for axis in axes) + " numbers"
                    for array, axes in ((theirs, over[2]), (mine, over[1])))
    return ()


def order(this):
    """The same numbers in another order."""
    mine = this.b.values[this.trial.value_b]
    array = next(iter(this.trial.ways[0].values()))
    relation = related(array, mine.array) or "in another order"
    if mine.signature.kind == "b":
        return "mask", this.label("a"), f"{this.label('b')}, {relation}"
    return "order", this.label("a"), f"the same numbers: {relation}"


def packed(this):
    """Packed parts stand in another order."""
    names = [tail(name, 2) for _, name in this.trial.ways[0]]
    in_a, in_b = orders(this.trial.slot)
    return "order of the parts", in_a, f"{in_b} in {listed(names)}"


def exchanged(this):
    """Parts are taken for others of the same value."""
    in_a, in_b = orders(this.trial.slot)
    source = this.written("b", this.trial.b.operands[0])
    if is_turned(this.trial):
        ways = ["from the first step to the last",
                "from the last step to the first"]
        last = max(number for _, number, *_ in this.trial.ways[0])
        mine = this.trial.b.number == last
        return "direction", ways[not mine], f"{ways[mine]}, of {source}"
    return "order of the parts", in_a, f"{in_b} of {source}"


def is_turned(trial):
    """Whether a Trial takes the steps of a sequence from its other end."""
    return trial.kind == EXCHANGED and len(trial.slot) > PLACES and (
        trial.slot == (*reversed(range(len(trial.slot))),))


def orders(order):
    """The parts in order, and as they stand that an order brings there."""
    return [", ".join(str(each + 1) for each in some) for some in (
        range(len(order)), map(order.index, range(len(order))))]


def folded(this):
    """A kernel, or its bias, that is not a's with a norm in it."""
    leaves = {value.name: value.array for value in this.b.values if value.name}
    edits = {name: array for (_, name), array in this.trial.ways[0].items()}
    for name, truth in edits.items():
        if epsilon := epsilon_of(this, truth, leaves[name]):
            return "epsilon of the folded norm", *epsilon
    name = max(edits, key=lambda each: distance(edits[each], leaves[each]))
    relation = related(edits[name], leaves[name]) or unlike(
        edits[name], leaves[name])
    return "folded norm", f"{tail(name, 2)} with the norm in it", (
        f"{tail(name, 2)}, {relation}")


def epsilon_of(this, truth, actual):
    """The ε of a's norm and the one that a kernel was folded with, or ()."""
    steps = roles.between(this.one, this.trial.value_a, ())
    for step in steps:
        for root in this.one.arrays(step).values():
            number = roles.numbers(this.one, [step])
            if not roles.is_variance(this.one, root) or len(number) != 1:
                continue
            variance = this.a.values[root].array.reshape(-1)
            ratio = roles.along(truth, actual, variance.size)
            if ratio is None:
                continue
            found = (variance + number[0]) / ratio ** 2 - variance
            middle, off = float(np.median(found)), np.ptp(found)
            if middle > 0 and off < FLAT * (variance.max() + middle) and (
                    abs(middle - number[0]) > max(off, 1e-3 * middle)):
                return tuple(apart(number[0], float(
                    f"{middle:.{6 if off < FLAT * middle else 2}g}")))
    return ()
