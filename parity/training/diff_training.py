"""``parity.diff_training``: where two training runs part, and why."""

import dataclasses
import time
from collections.abc import Callable

from parity_io.errors import InputError
from parity.comparison.verdicts import FLOAT32
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.training.answer import TrainingComparison
from parity.training.case import Maker, case_of
from parity.training.diagnose import causes_of
from parity.training.lockstep import (
    diverging, free_apart, moves, start_rows)


def diff_training(a: Callable, b: Callable, steps: int = 3,
                  exact: bool = False) -> TrainingComparison:
    """Train two models step by step; say where they diverge and why.

    Both are run several times, so that each function has to make its model,
    optimiser and batches anew whenever it is called.

    Args:
        a: the truth: a function without parameters that returns a
            ``parity.Training``, a tuple (model, loss, optimizer, batches), a
            tuple (model, loop) or a dict; or that trains a model of PyTorch
            by itself and returns (model, inputs).
        b: what is held against it: likewise.
        steps: how many steps are taken.
        exact: train in float64, also where both agree as they are.

    Returns:
        A TrainingComparison; it prints as the answer.

    Raises:
        InputError: one is no such function, or the two cannot be compared.
    """
    began = time.perf_counter()
    if not isinstance(steps, int) or steps < 1:
        raise InputError(
            f"steps is {steps!r}; give how many steps are taken, 1 or more.")
    for side, make in (("a", a), ("b", b)):
        if not callable(make):
            raise InputError(
                f"{side} is a {type(make).__name__}; give a function that "
                "makes the training, since it is made more than once.")
    one, two = Maker(a, "a", exact), Maker(b, "b", exact)
    made = _judged(case_of(one, two, steps), exact)
    if made.causes:
        for maker in (one, two):
            maker.run(1, locate=True)
            made.lines[maker.side] = maker.lines
    made.seconds = time.perf_counter() - began
    return made


def _judged(case, exact):
    """The TrainingComparison of a LockedPair."""
    begun = [row for row in start_rows(case.lock) if row.differs]
    if not begun and not diverging(case.rows):
        return _answer(case, FLOAT32 if _rough(case) else MATCH)
    decided = case if exact else _exactly(case)
    if decided is not case and not begun and not diverging(decided.rows):
        return _answer(decided, FLOAT32, notes=[
            "In float64 every step agrees, so that what differs as they are "
            "is float32's rounding."])
    apart, within = _free(case)
    if within and not begun:
        return _answer(decided, MATCH, notes=[
            "Single quantities differ, and make up for each other: by "
            "themselves both have the same weights after every step."])
    settled, causes = causes_of(decided, begun)
    rounding = causes and all(cause.rounding for cause in causes)
    return _answer(decided, FLOAT32 if rounding else DIVERGENCE, causes,
                   begun, apart, [] if settled is decided else [
                       *settled.b.notes])


def _answer(case, verdict, causes=(), begun=(), apart=None, notes=()):
    """A TrainingComparison without its lines and time."""
    return TrainingComparison(
        verdict, case.steps, [*begun, *case.rows], [*causes], {},
        (case.a.framework, case.b.framework),
        (case.a.optimizer, case.b.optimizer), apart,
        [*dict.fromkeys([*notes, *case.a.notes, *case.b.notes])])


def _free(case):
    """(how far apart both end by themselves, whether nowhere at all)."""
    try:
        run, _ = case.two.run(case.steps)
    except InputError:
        return None, False
    apart, within = free_apart(case.lock, run)
    if not any(map(moves, run.steps)):
        return None, False
    return apart, within and case.a.dtype == run.dtype == "float64"


def _rough(case):
    """Whether something differs that float32 inside may be."""
    return any(row.rough and row.counted for row in case.rows)


def _exactly(case):
    """The same in float64, or the case itself where that cannot be had."""
    if case.a.wide and case.b.wide and not (
            case.a.narrow or case.b.narrow) or None in case.trainings:
        return case
    makers = [dataclasses.replace(each, exact=True)
              for each in (case.one, case.two)]
    try:
        made = case_of(*makers, case.steps)
    except Exception:  # of a user's, who did not ask for float64
        return case
    return made if made.a.dtype == made.b.dtype == "float64" else case
