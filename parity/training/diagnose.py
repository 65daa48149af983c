"""Why two training runs part, each cause proved by computing."""

import math

import numpy as np

from parity.numerics.words import number
from parity.training import (
    clip_causes, gradients, groups, naming, statistics, updates)
from parity.training.cause import TrainingCause
from parity.training.fitting import fitted
from parity.training.lockstep import BUFFERS, RATE, RAW, WEIGHTS
from parity.training.writing import writing


#: Setting of a rule -> the line that is about it.
TOPICS = {
    "eps": ("epsilon", "optimiser"), "eps_at": ("epsilon", "optimiser"),
    "decay": ("decay", "optimiser"), "decay_at": ("decay", "optimiser"),
    "clip": ("clipping", "optimiser"), "clip_by": ("clipping", "optimiser"),
    "rate": ("schedule", "optimiser"), "scale": ("accumulation", "loss"),
    updates.FROZEN: ("frozen", "optimiser"),
}


#: Setting of a rule -> what torch calls it in a group, where it is another.
IN_GROUPS = {"rate": "lr", "decay": "weight_decay", "beta1": "betas",
             "beta2": "betas"}


def causes_of(case, begun):
    """(the LockedPair that decides, its TrainingCauses as computed).

    Args:
        begun: the StepRows of the start that differ.
    """
    found = [*_start(case, begun)]
    case, more = gradients.settled(case)
    found += [*more, *gradients.causes_of(case)]
    for more in (clip_causes.causes_of(case), _updates(case),
                 statistics.causes_of(case)):
        told = {(cause.what, cause.in_a, cause.in_b) for cause in found}
        found += [cause for cause in more if (
            cause.what, cause.in_a, cause.in_b) not in told]
    return case, found


def _start(case, rows):
    """That the runs do not begin with the same weights."""
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
        side.settle()
    if not (a.rules and b.rules) and _is_rounding(case):
        return [_unknown(case, rows[0])]
    for side, other in ((a, b), (b, a)):
        side.rules = side.rules or fitted(side, other.rules)
    if not a.rules or not b.rules:
        return [_unknown(case, rows[0])]
    told = updates.causes(a, b)
    if told is None:
        return [_unknown(case, rows[0])]
    names, before, after = told
    frozen = {path for one, two in zip(a.gradients, b.gradients)
              for path in one.keys() ^ two.keys()}
    if updates.FROZEN in names and a.rules.keys() ^ b.rules.keys() <= frozen:
        names = [name for name in names if name != updates.MEMBERS]
    made = []
    for name in names:
        made += _of_setting(case, name, a, b, rows[0], before, after)
    return made


def _is_rounding(case):
    """Whether float32 inside may be all that weights differ by."""
    return all(row.rough for row in case.rows
               if row.differs and row.quantity == WEIGHTS)


def _unknown(case, row):
    """That an update differs, and it is not known why."""
    if _is_rounding(case):
        return TrainingCause(
            "float32 inside the optimiser", row.step, WEIGHTS, "",
            rounding=True, evidence=(
                "The steps differ by less than float32 rounds.",))
    return TrainingCause("", row.step, row.quantity, row.b,
                         evidence=tuple(groups.facts(case)))


def _of_setting(case, name, a, b, row, before, after):
    """The TrainingCauses that one setting of A's rule is another in B's: one
    for all parameters between which it differs alike."""
    framework = case.b.framework
    proof = (f"With a's in b, b's weights are a's to {number(after)}, "
             f"{number(before)} off without.")
    if name == updates.MEMBERS:
        less = sorted(a.rules.keys() - b.rules.keys())
        more = sorted(b.rules.keys() - a.rules.keys())
        return [TrainingCause(
            "parameters not in the optimiser", row.step, WEIGHTS,
            naming.paths_in_words(less or more, len(a.rules)),
            "trained" if less else "not trained",
            "not trained" if less else "trained", ("optimiser",), proof,
            "" if not less else "give the optimiser every parameter"
            if known(case.b) else "change every parameter in each step")]
    if name == updates.FROZEN:
        paths = sorted({path for one, two in zip(a.gradients, b.gradients)
                        for path in one.keys() ^ two.keys()})
        less = any(one.keys() - two.keys() for one, two in zip(
            a.gradients, b.gradients))
        return [TrainingCause(
            "parameters frozen", row.step, RAW,
            naming.paths_in_words(paths, len(a.rules)),
            "a gradient" if less else "no gradient",
            "no gradient" if less else "a gradient", ("frozen", "model"),
            proof)]
    if name == "rate":
        return _of_rates(case, a, b, row, proof)
    both = [path for path in b.rules if path in a.rules]
    alike = _alike({path: tuple(getattr(side.rules[path], name)
                                for side in (a, b)) for path in both})
    made = []
    for (one, two), paths in (alike or [((None, None), both)]):
        rules = [side.rules[paths[0]] for side in (a, b)]
        one, two = (getattr(rule, name) for rule in rules)
        in_a, in_b = (clip_causes.words_of(name, *rules)
                      if name == "clip_by" else naming.pair_of(name, one, two))
        if name == "narrow":
            in_a, in_b = (f"{each} in float32" if each else "the run's own"
                          for each in (one, two))
        made.append(TrainingCause(
            naming.CAUSES[name], row.step, row.quantity,
            naming.paths_in_words(paths, len(b.rules)), in_a, in_b,
            _topics(name, alike), proof,
            writing(framework, name, one, rules[1].kind, known(case.b)),
            rounding=name == "narrow",
            groups=groups_of(case, paths, name)))
    return made


def _alike(pairs):
    """[((A's, B's), paths)] of the pairs that differ, those alike together.

    Args:
        pairs: {path: (A's, B's)}.
    """
    found: dict = {}
    for path, (one, two) in pairs.items():
        if one != two:
            found.setdefault((one, two), []).append(path)
    return [*found.items()]


def _topics(name, alike):
    """Which line tells: of several groups the one that has them all."""
    return ("optimiser",) if len(alike) > 1 else TOPICS.get(
        name, ("optimiser",))


def known(run):
    """Whether a run has an optimiser of its library."""
    return bool(run.rules) and None not in run.rules.values()


def _of_rates(case, a, b, row, proof):
    """The TrainingCauses that learning rates differ, one a group."""
    rates = {path: tuple(tuple(each.get(path, math.nan) for each in (
        updates.rates_of(side))) for side in (a, b))
        for path in b.rules if path in a.rules}
    alike = _alike({path: each for path, each in rates.items()
                    if not np.allclose(*each, rtol=1e-9, atol=0,
                                       equal_nan=True)})
    alike = alike or [([*rates.values()][0], [*rates])]
    topics = _topics("rate", alike) if len(alike) > 1 else (
        "schedule", "optimiser")
    return [_of_rate(case, one, two, row, proof, topics, "" if len(
        paths) == len(rates) else naming.paths_in_words(paths, len(rates)),
        groups_of(case, paths, "rate")) for (one, two), paths in alike]


def groups_of(case, paths, name):
    """The groups of both optimisers that have some parameters of B, with what
    a setting is called there, as a TrainingCause has them."""
    names = {pair.b: pair.a for pair in case.lock.pairs}
    found = []
    for run, own in ((case.a, [names.get(path) for path in paths]),
                     (case.b, paths)):
        groups = {run.groups.get(path) for path in own}
        found.append((*groups.pop(), IN_GROUPS.get(name, name))
                     if len(groups) == 1 and None not in groups else None)
    return tuple(found)


def _of_rate(case, one, two, row, proof, topics, where, groups):
    """The TrainingCause that a learning rate differs, or its schedule.

    Args:
        one, two: the rate of each step in A and in B.
        groups: as of a TrainingCause.
    """
    step = next((i + 1 for i, (mine, other) in enumerate(zip(one, two))
                 if not math.isclose(mine, other, rel_tol=1e-9)), row.step)
    shown = [", ".join(f"{rate:.6g}" for rate in rates[:4])
             + ", …" * (len(rates) > 4) for rates in (one, two)]
    if len({*one}) == len({*two}) == 1:
        return TrainingCause(
            "learning rate", step, RATE, where,
            *naming.pair_of("rate", one[0], two[0]), topics, proof,
            writing(case.b.framework, "rate", one[0], known=known(case.b)),
            groups=groups)

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
        what, step, RATE, where, *shown, topics, proof, evidence=evidence,
        groups=groups)


