"""Holding one run to another, and comparing the two step by step.

Rounding grows from step to step, until two sound runs have nothing in common.
In lockstep it cannot: before each step B is given A's weights and buffers, and
its optimiser A's gradients, so that a step shows what it does by itself.
"""

import dataclasses
import types

import numpy as np

from parity.matching.parameters import suggest_parameters
from parity.matching.rearrangement import rearranged
from parity.numerics.dtypes import EPS
from parity.numerics.tolerances import LOCKSTEP_LIMIT, MANY, model_limits
from parity.training.rules import clipped

#: What is compared of a step, in the order in which it is computed.
LOSS, RAW, USED, RATE, MOMENTS, WEIGHTS, BUFFERS = QUANTITIES = (
    "loss", "gradients", "clipped gradients", "learning rate", "moments",
    "weights", "running statistics")

#: Of a parameter with less than this share of the whole gradient, the error
#: is relative to the share: nothing but rounding may be left of it.
SHARE = 1e-2

#: Gradients that are as near as this are the same but for rounding or a
#: small fault; others are left as they are until the optimiser takes them.
NEAR = 1e-2

#: How many units of rounding a weight may move beside its step.
UNITS = 8


@dataclasses.dataclass
class StepRow:
    """One quantity of one step.

    Attributes:
        step: from 1; 0 is the start.
        quantity: one of QUANTITIES.
        a, b: paths of a parameter; "" of the whole.
        error, limit: relative; error None where one side has nothing.
        differs: whether it is above its limit.
        counted: whether it may decide the verdict.
        rough: whether float32 inside one of the two may be all of it.
    """

    step: int
    quantity: str
    a: str
    b: str
    error: float | None
    limit: float
    differs: bool
    counted: bool = True
    rough: bool = False


def _trace(arrays):
    """What matching asks for of a model."""
    return types.SimpleNamespace(parameters=arrays, aliases={})


class Lock:
    """What B is held to: the run of A.

    Attributes:
        pairs: the matching.pairs.Pair of each weight and buffer.
        start: B's own arrays before the first step.
        fed: for each step, at which level B was given A's gradients: RAW,
            USED or "".
        gave: for each step {path in B: gradient} that it was given, or {}.
        near: the steps, from 0, whose backward pass was given A's gradients:
            the optimiser's are then A's, whatever B's own were.
    """

    def __init__(self, a, pairs=None):
        self.a, self.pairs = a, pairs
        self.begin()

    def begin(self):
        """Forget what was held before."""
        self.start, self.fed, self.gave, self.near = None, [], [], set()

    def put(self, observer):
        """Give B's model A's weights and buffers before a step."""
        arrays = observer.arrays()
        if self.start is None:
            self.start = arrays
            first = self.a.steps[0]
            self.pairs = self.pairs or suggest_parameters(
                _trace(first.before | first.buffers_before),
                _trace({path: array for path, array in arrays.items()
                        if array.dtype.kind == "f"
                        or path not in observer.buffers}))
        if observer.number >= len(self.a.steps):
            return
        self.fed.append("")
        self.gave.append({})
        record = self.a.steps[observer.number]
        observer.put(self.given(record.before | record.buffers_before, arrays))

    def given(self, mine, others):
        """A's arrays in B's layout: {path in B: array}, for what is paired.

        Args:
            mine: {path in A: array}.
            others: {path in B: array}, for shapes, dtypes and what is left.
        """
        made: dict = {}
        for pair in self.pairs:
            if pair.a not in mine or pair.b not in others:
                continue
            like = others[pair.b]
            places = rearranged(pair.b_layout, np.arange(
                like.size).reshape(like.shape)).reshape(-1)
            new = made.setdefault(pair.b, np.array(like))
            new.reshape(-1)[places] = rearranged(
                pair.a_layout, mine[pair.a]).reshape(-1).astype(like.dtype)
        return made

    def raw(self, observer):
        """A's gradients for a backward pass of B, if each has one and B's are
        near."""
        mine = self._of(observer)
        if mine is None or len(mine.parts) != 1 or len(
                observer.record.parts) != 1:
            return {}
        own = observer.record.parts[0].gradients
        made = self.given(mine.parts[0].gradients, like(observer, own))
        if not made or not apart(own, made) <= NEAR:
            return {}
        self.near.add(observer.number)
        return self._give(observer, RAW, made)

    def used(self, observer):
        """A's gradients for B's optimiser."""
        mine = self._of(observer)
        if mine is None or observer.run.accumulates or self.a.accumulates and (
                not observer.run.inner):
            return {}
        found = fed(self.a, mine, observer.run.inner)
        if found is None:
            return {}
        return self._give(
            observer, RAW if observer.run.inner else USED,
            self.given(found, like(observer, observer.record.raw
                                   | observer.record.used)))

    def _give(self, observer, level, made):
        """Put down what B is given."""
        self.fed[observer.number] = level
        self.gave[observer.number] = made
        return made

    def taken(self, b):
        """For each step {path in B: gradient} that B's optimiser took."""
        return [own | (gave if level == USED or record.used is None
                       or b.inner else {})
                for level, gave, record in zip(self.fed, self.gave, b.steps)
                for own in [record.raw | record.gradients]]

    def _of(self, observer):
        """A's record of the present step."""
        number = observer.number
        return self.a.steps[number] if number < len(self.a.steps) else None


def like(observer, gradients):
    """The weights that have gradients: these may be in a shorter dtype."""
    return {path: observer.record.before.get(path, array)
            for path, array in gradients.items()}


def fed(run, record, inner):
    """The gradients of a step as an optimiser takes them, or None.

    Args:
        inner: whether that optimiser clips by itself.
    """
    if inner:
        return record.raw or record.used
    if record.used is None or not run.inner:
        return record.used
    if run.accumulates:
        return None
    if None in run.rules.values():
        return None
    return clipped(run.rules, record.used)


def apart(one, two):
    """The relative L2 distance of two {path: gradient}, as far as both go."""
    gap = sum(float(np.square(one[path] - two[path], dtype=np.float64).sum())
              for path in two if path in one)
    scale = sum(float(np.square(array, dtype=np.float64).sum())
                for array in two.values())
    return (gap / scale) ** 0.5 if scale else 0.0 if not gap else np.inf


@np.errstate(all="ignore")
def rows_of(lock, b):
    """The StepRows of B in lockstep, in the order of computation."""
    a, pairs = lock.a, lock.pairs
    dtype = max((a.dtype, b.dtype), key=lambda name: EPS.get(name, 0))
    forward, _, gradient, _ = model_limits(dtype)
    step_limit = LOCKSTEP_LIMIT if dtype == "float64" else (
        MANY[dtype][2] * EPS[dtype])
    eps = EPS[dtype]
    made = []
    for i, (mine, other) in enumerate(zip(a.steps, b.steps)):
        level = lock.fed[i] if i < len(lock.fed) else ""
        if None not in (mine.loss, other.loss):
            error = _relative(other.loss, mine.loss)
            made.append(StepRow(i + 1, LOSS, "", "", error, forward,
                            not error <= forward, False))
        still = other.used is None and not moves(other)
        made += _gradients(i + 1, RAW, pairs, mine.raw, other.raw, gradient,
                           level == RAW or i in lock.near or still)
        one, two = (fed(run, record, False) for run, record in (
            (a, mine), (b, other)))
        if None not in (one, two) and (one is not mine.raw):
            made += _gradients(i + 1, USED, pairs, one, two, gradient,
                               level == USED)
        made += _rates(i + 1, pairs, a, b, mine, other)
        made += _moments(i + 1, pairs, mine, other, step_limit)
        for quantity, old, new in ((WEIGHTS, "before", "after"),
                                   (BUFFERS, "buffers_before", "buffers")):
            for pair in pairs:
                if pair.a in getattr(mine, new) and pair.b in getattr(
                        other, new):
                    made.append(_moved(i + 1, quantity, pair, *(
                        getattr(record, when) for record in (mine, other)
                        for when in (old, new)), step_limit, eps))
    if a.narrow or b.narrow:
        _roughen(made)
    return made


def moves(record):
    """Whether a step changed a weight."""
    return any(not np.array_equal(array, record.before[path], equal_nan=True)
               for path, array in record.after.items())


def _roughen(rows):
    """Mark what float32 inside a float64 run may be, in rows of such runs.

    Losses and gradients within float32's limits are no difference then; of an
    optimiser's step the rule is replayed with its float32.
    """
    forward, _, gradient, _ = model_limits("float32")
    for row in rows:
        wide = forward if row.quantity == LOSS else gradient
        if row.differs and row.error is not None and row.error <= wide:
            row.rough = True
            row.differs = row.quantity in (WEIGHTS, BUFFERS)


def _relative(one, two):
    """|one - two| / |two|, infinite where one is not finite alone."""
    if np.isnan(one) and np.isnan(two) or one == two:
        return 0.0
    return abs(one - two) / abs(two) if two else np.inf


def _gradients(step, quantity, pairs, mine, others, limit, counted):
    """A StepRow for each parameter of which one side has a gradient."""
    total = sum(float(np.square(array, dtype=np.float64).sum())
                for array in mine.values()) ** 0.5
    for pair in pairs:
        one, two = mine.get(pair.a), others.get(pair.b)
        if one is None and two is None or quantity == USED and (
                one is None or two is None):
            continue
        if one is None or two is None:
            there = rearranged(pair.b_layout, two) if one is None else (
                rearranged(pair.a_layout, one))
            if np.abs(there).max(initial=0) > limit * SHARE * total:
                yield StepRow(step, quantity, pair.a, pair.b, None, limit, True,
                          counted)
            continue
        one = rearranged(pair.a_layout, one).astype(np.float64)
        two = rearranged(pair.b_layout, two).astype(np.float64)
        scale = max(float(np.linalg.norm(one)), SHARE * total)
        gap = float(np.linalg.norm(two - one))
        error = gap / scale if scale else 0.0 if not gap else np.inf
        if np.array_equal(one, two, equal_nan=True):
            error = 0.0
        yield StepRow(step, quantity, pair.a, pair.b, error, limit,
                  not error <= limit, counted)


def _rates(step, pairs, a, b, mine, other):
    """A StepRow for the learning rate that differs most."""
    narrow = any(rule is not None and rule.narrow
                 for run in (a, b) for rule in run.rules.values())
    limit = EPS["float32"] if narrow else 1e-9
    found = [(_relative(other.rates[pair.b], mine.rates[pair.a]), pair)
             for pair in pairs
             if pair.a in mine.rates and pair.b in other.rates]
    if found:
        error, pair = max(found, key=lambda each: each[0])
        yield StepRow(step, RATE, pair.a, pair.b, error, limit,
                      not error <= limit, False)


def _moments(step, pairs, mine, other, limit):
    """A StepRow for each slot of the optimisers' state that both have."""
    for slot in mine.state.keys() & other.state.keys():
        one, two = mine.state[slot], other.state[slot]
        both = [pair for pair in pairs if pair.a in one and pair.b in two]
        gap = sum(float(np.square(
            rearranged(pair.b_layout, two[pair.b]).astype(np.float64)
            - rearranged(pair.a_layout, one[pair.a])).sum()) for pair in both)
        scale = sum(float(np.square(one[pair.a], dtype=np.float64).sum())
                    for pair in both)
        error = (gap / scale) ** 0.5 if scale else 0.0 if not gap else np.inf
        yield StepRow(step, MOMENTS, slot, slot, error, limit,
                      not error <= limit, False)


def _moved(step, quantity, pair, old_a, new_a, old_b, new_b, limit, eps):
    """A StepRow for how one weight or buffer was changed."""
    one = [rearranged(pair.a_layout, each[pair.a]).astype(np.float64)
           for each in (old_a, new_a)]
    two = [rearranged(pair.b_layout, each[pair.b]).astype(np.float64)
           for each in (old_b, new_b)]
    moves = one[1] - one[0], two[1] - two[0]
    size = max(map(np.linalg.norm, moves))
    if not size:
        return StepRow(step, quantity, pair.a, pair.b, 0.0, limit, False)
    error = float(np.linalg.norm(moves[1] - moves[0]) / size)
    limit = limit + UNITS * eps * float(
        max(map(np.linalg.norm, one)) / size)
    if np.array_equal(one[1], two[1], equal_nan=True):
        error = 0.0
    return StepRow(step, quantity, pair.a, pair.b, error, limit,
               not error <= limit)


def start_rows(lock):
    """A StepRow for each weight and buffer before the first step."""
    first = lock.a.steps[0]
    mine = first.before | first.buffers_before
    for pair in lock.pairs:
        one = rearranged(pair.a_layout, mine[pair.a]).astype(np.float64)
        two = rearranged(pair.b_layout, lock.start[pair.b]).astype(np.float64)
        limit = 2 * max(EPS.get(mine[pair.a].dtype.name, 0),
                        EPS.get(lock.start[pair.b].dtype.name, 0))
        scale = float(np.linalg.norm(one))
        gap = float(np.linalg.norm(two - one))
        error = gap / scale if scale else 0.0 if not gap else np.inf
        yield StepRow(0, WEIGHTS if pair.a in first.before else BUFFERS,
                  pair.a, pair.b, error, limit, not error <= limit)


@np.errstate(all="ignore")
def free_apart(lock, free):
    """How far the weights' changes are apart where B runs by itself.

    Returns:
        (error after the last step, NaN where a weight is no number; whether
        every step is within its limit).
    """
    a, worst, within = lock.a, 0.0, True
    for mine, other in zip(a.steps, free.steps):
        worst = 0.0
        for pair in lock.pairs:
            for old, new in (("before", "after"),
                             ("buffers_before", "buffers")):
                one, two = getattr(mine, new), getattr(other, new)
                if pair.a in one and pair.b in two:
                    row = _moved(
                        0, WEIGHTS, pair, getattr(a.steps[0], old), one,
                        getattr(free.steps[0], old), two, LOCKSTEP_LIMIT,
                        EPS[a.dtype])
                    worst = worst if row.error <= worst else row.error
                    within = within and not row.differs
    return worst, within


def diverging(rows):
    """The StepRows that decide that a step differs."""
    return [row for row in rows if row.differs and row.counted]
