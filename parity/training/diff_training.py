"""``parity.diff_training``: where two training runs part, and why."""

import time
from collections.abc import Callable

from contract.errors import InputError
from parity.comparison.verdicts import FLOAT32
from parity.numerics.comparator import DIVERGENCE, MATCH
from parity.training.answer import TrainingComparison
from parity.training.case import Maker, case_of
from parity.training.diagnose import causes_of
from parity.training.lockstep import diverging, start_rows


def diff_training(a: Callable, b: Callable, steps: int = 3,
                  exact: bool = False) -> TrainingComparison:
    """Train two models step by step; say where they part and why.

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
    case, verdict, causes = _judged(case_of(one, two, steps))
    if causes:
        for maker in (one, two):
            maker.run(1, locate=True)
    made = TrainingComparison(
        verdict, case.steps, case.rows, causes,
        {"a": one.lines, "b": two.lines},
        (case.a.framework, case.b.framework),
        (case.a.optimizer, case.b.optimizer), notes=[
            *case.a.notes, *case.b.notes])
    made.seconds = time.perf_counter() - began
    return made


def _judged(case):
    """(the LockedPair that decided, the verdict, the causes)."""
    wrong = diverging(case.rows) or [
        row for row in start_rows(case.lock) if row.differs]
    if not wrong:
        return case, MATCH, []
    causes = causes_of(case)
    if causes and all(cause.rounding for cause in causes):
        return case, FLOAT32, causes
    return case, DIVERGENCE, causes
