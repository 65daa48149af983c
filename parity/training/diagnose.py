"""Why two training runs part, each cause proved by computing."""

import dataclasses
import math

import numpy as np

from parity.numerics.words import number
from parity.training import naming, updates
from parity.training.lockstep import (
    BUFFERS, RATE, RAW, WEIGHTS, start_rows)


@dataclasses.dataclass
class TrainingCause:
    """Why two runs differ.

    Attributes:
        what: in a few words, or "" if it is not identified.
        step, quantity: where it is first seen.
        where: the parameters, or "".
        in_a, in_b: what each has.
        topics: what the line of source is about; see places.TELLING.
        proof: what was put into B, and what then came out; "" if nothing.
        write: what to write in B.
        evidence: what else is known, a sentence each.
        rounding: whether it is float32's rounding alone.
    """

    what: str
    step: int
    quantity: str
    where: str = ""
    in_a: str = ""
    in_b: str = ""
    topics: tuple = ("optimiser",)
    proof: str = ""
    write: str = ""
    evidence: tuple = ()
    rounding: bool = False


#: Setting of a rule -> the line that is about it.
TOPICS = {
    "eps": ("epsilon", "optimiser"), "eps_at": ("epsilon", "optimiser"),
    "decay": ("decay", "optimiser"), "decay_at": ("decay", "optimiser"),
    "clip": ("clipping", "optimiser"), "clip_by": ("clipping", "optimiser"),
    "rate": ("schedule", "optimiser"), "scale": ("accumulation", "loss"),
    updates.FROZEN: ("frozen", "optimiser"),
}


def causes_of(case):
    """The TrainingCauses of a LockedPair in lockstep, in the order of computation."""
    found = [*_start(case)]
    found += _updates(case)
    return found


def first(rows, *quantities):
    """The first StepRow of these quantities that differs, or None."""
    return next((row for row in rows if row.differs
                 and row.quantity in quantities), None)


def _start(case):
    """That the runs do not begin with the same weights."""
    rows = [row for row in start_rows(case.lock) if row.differs]
    for quantity in (WEIGHTS, BUFFERS):
        some = [row for row in rows if row.quantity == quantity]
        if not some:
            continue
        worst = max(some, key=lambda row: math.inf if row.error is None
                    else row.error)
        what = "weights" if quantity == WEIGHTS else "running statistics"
        rest = not [row for row in case.rows if row.differs and row.counted]
        yield TrainingCause(
            f"{what} at the start", 0, quantity,
            naming.paths_in_words([row.b for row in some],
                                  len(case.lock.pairs)),
            topics=("model",),
            proof="With a's in b, every step of both agrees." if rest else "",
            evidence=(f"{worst.b} is {number(worst.error)} off before the "
                      "first step.",),
            write="load a's weights into b before it is trained")


def _updates(case):
    """What differs between the optimisers, and in the clipping."""
    rows = [row for row in case.rows if row.differs and row.counted
            and row.quantity == WEIGHTS]
    if not rows:
        return []
    a, b = updates.sides_of(case.lock, case.b)
    for side in (a, b):
        if not side.known:
            side.rules = {}
    if not a.rules or not b.rules:
        return [_unknown(case, rows[0])]
    told = updates.causes(a, b)
    if told is None:
        return [_unknown(case, rows[0])]
    names, before, after = told
    made = []
    for name in names:
        made.append(_of_setting(case, name, a, b, rows[0], before, after))
    return made


def _unknown(case, row):
    """That an update differs, and it is not known why."""
    return TrainingCause("", row.step, row.quantity, row.b)


def _of_setting(case, name, a, b, row, before, after):
    """The TrainingCause that one setting of A's rule is another in B's."""
    framework = case.b.framework
    proof = (f"With a's in b, b's weights are a's to {number(after)}, "
             f"{number(before)} off without.")
    if name == updates.MEMBERS:
        less = sorted(a.rules.keys() - b.rules.keys())
        more = sorted(b.rules.keys() - a.rules.keys())
        return TrainingCause(
            "parameters not in the optimiser", row.step, WEIGHTS,
            naming.paths_in_words(less or more, len(a.rules)),
            "trained" if less else "not trained",
            "not trained" if less else "trained", ("optimiser",), proof,
            "give the optimiser every parameter" if less else "")
    if name == updates.FROZEN:
        paths = sorted({path for one, two in zip(a.gradients, b.gradients)
                        for path in one.keys() ^ two.keys()})
        less = any(one.keys() - two.keys() for one, two in zip(
            a.gradients, b.gradients))
        return TrainingCause(
            "parameters frozen", row.step, RAW,
            naming.paths_in_words(paths, len(a.rules)),
            "a gradient" if less else "no gradient",
            "no gradient" if less else "a gradient", ("frozen", "model"),
            proof)
    if name == "rate":
        return _of_rate(case, a, b, row, proof)
    paths = [path for path in b.rules if path in a.rules and getattr(
        a.rules[path], name) != getattr(b.rules[path], name)]
    one, two = (getattr(side.rules[paths[0]], name) for side in (a, b))
    in_a, in_b = naming.pair_of(name, one, two)
    if name == "narrow":
        in_a, in_b = ("float32" if each else "float64"
                      for each in (one, two))
    return TrainingCause(
        naming.CAUSES[name], row.step, row.quantity,
        naming.paths_in_words(paths, len(b.rules)), in_a, in_b,
        TOPICS.get(name, ("optimiser",)), proof,
        naming.writing(framework, name, one), rounding=name == "narrow")


def _of_rate(case, a, b, row, proof):
    """The TrainingCause that learning rates differ: one, or their schedule."""
    path = next(iter(b.rules.keys() & a.rules.keys()))
    one, two = ([rates.get(path, math.nan) for rates in updates._rates(side)]
                for side in (a, b))
    step = next((i + 1 for i, (mine, other) in enumerate(zip(one, two))
                 if not math.isclose(mine, other, rel_tol=1e-9)), row.step)
    shown = [", ".join(f"{rate:.6g}" for rate in rates[:4])
             + ", …" * (len(rates) > 4) for rates in (one, two)]
    if len({*one}) == len({*two}) == 1:
        return TrainingCause("learning rate", step, RATE, "", *naming.pair_of(
            "rate", one[0], two[0]), ("schedule", "optimiser"), proof,
            naming.writing(case.b.framework, "rate", one[0]))

    def shifted(late, early):
        return len(one) > 1 and np.allclose(late[1:], early[:-1], rtol=1e-9)
    what, evidence = "learning rate's schedule", ()
    if shifted(one, two):
        what = "schedule off by one step"
        evidence = ("b's rate at each step is a's at the next.",)
    elif shifted(two, one):
        what = "schedule off by one step"
        evidence = ("b's rate at each step is a's at the one before.",)
    return TrainingCause(
        what, step, RATE, "", *shown, ("schedule", "optimiser"), proof,
        evidence=evidence)


