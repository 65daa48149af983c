"""Two training runs beside each other, and how either is made anew."""

import contextlib
import dataclasses
import importlib
import importlib.util
import sys
from collections.abc import Callable

import numpy as np

from parity_io.errors import InputError, plural
from parity.training.form import Training, arguments, training_of
from parity.training.lockstep import Lock, rows_of
from parity.training.places import Lines
from parity.training.records import WatchedRun
from parity.tracing.users import told


@dataclasses.dataclass
class Maker:
    """A side: what makes it, and how it is called in a sentence.

    Attributes:
        make: () -> a Training or what stands for one.
        side: "a" or "b".
        exact: whether it is made float64.
        lines: where the user makes things.
    """

    make: Callable
    side: str
    exact: bool = False
    lines: Lines = dataclasses.field(default_factory=Lines)

    def run(self, steps, lock=None, change=None, locate=False):
        """Make the training and watch it.

        Args:
            steps: how many.
            lock: a Lock, or None for a run of its own.
            change: a function of (the framework's watcher, the Training)
                that alters it before it runs.
            locate: whether to note the lines of source.

        Returns:
            (its WatchedRun, its Training or None where ``make`` trained).
        """
        with contextlib.ExitStack() as stack:
            if locate:
                stack.enter_context(self.lines())
            if self.exact:
                stack.enter_context(wide())
            training, run = self.made(steps, lock)
            if run is None:
                watcher = importlib.import_module(
                    f"parity.training.{training.framework}")
                if training.framework == "torch" and watcher.strange(training):
                    raise InputError(
                        f"the optimiser of {self.side}, "
                        f"{type(training.optimizer).__name__}, holds none of "
                        "its model's parameters; make it of "
                        "model.parameters().")
                if self.exact:
                    watcher.widen(training)
                if change is not None:
                    change(watcher, training)
                for function in (training.loss, training.step, training.loop):
                    self.lines.begins_at(function)
                with self.theirs():
                    run = watcher.watched(training, steps, lock)
        self.check(run, training, steps)
        return run, training

    @contextlib.contextmanager
    def theirs(self):
        """Raise an InputError for what fails in the user's own code."""
        try:
            yield
        except (InputError, MemoryError):
            raise
        except Exception as error:  # the model's, the loss's, the optimiser's
            if (words := told(error)) is None:
                raise
            place, raised = words
            raise InputError(f"the training of {self.side} failed{place} "
                             f"{raised}; mend it.") from error

    def made(self, steps, lock):
        """(the Training, None), or (None, the run that ``make`` made)."""
        self.lines.begins_at(self.make)
        if importlib.util.find_spec("torch") is None:
            return training_of(self.make()), None
        from parity.training.torch import made_by
        made, run = made_by(self.make, steps, lock)
        whole = isinstance(made, (Training, dict)) or (
            isinstance(made, tuple) and (len(made) == 4 or len(made) == 2
                                         and callable(made[1])
                                         and not hasattr(made[1], "shape")))
        if run is not None and not whole:
            return None, run
        if lock is not None:
            lock.begin()
        return training_of(made, self.side), None

    def check(self, run, training, steps):
        """Raise InputError unless all steps were seen, and A's are numbers.
        """
        for number, record in enumerate(run.steps, 1):
            if self.side == "a" and not all(
                    np.isfinite(array).all() for array in record.after.values()
                    if array.dtype.kind == "f"):
                raise InputError(
                    f"a's weights are no numbers after step {number}, where "
                    f"its loss is {record.loss}; let a be the one that is "
                    "right, with a loss that is a number.")
        if len(run.steps) >= steps or (
                training is not None and training.optimizer is None
                and not training.step and not training.loop
                and training.framework != "keras" and len(run.steps)):
            return
        batches = [] if training is None else training.batches
        raise InputError(
            f"{self.side} made {plural(len(run.steps), 'step')}"
            + (f" of {plural(len(batches), 'batch')}".replace(
                "batchs", "batches") if batches else "")
            + f", and {steps} were asked for; "
            + ("give more batches, or --train "
               f"{max(len(run.steps), 1)}." if run.steps else
               "; ".join([*run.notes[:1],
                          "let it change the weights of its model."])))


@contextlib.contextmanager
def wide():
    """Let JAX and Keras make float64 where nothing says another dtype."""
    with contextlib.ExitStack() as stack:
        if "jax" in sys.modules:
            import jax
            old = jax.config.jax_enable_x64
            jax.config.update("jax_enable_x64", True)
            stack.callback(jax.config.update, "jax_enable_x64", old)
        if "keras" in sys.modules:
            import keras
            policy, floatx = keras.config.dtype_policy(), keras.config.floatx()
            keras.config.set_floatx("float64")
            keras.config.set_dtype_policy("float64")
            stack.callback(keras.config.set_floatx, floatx)
            stack.callback(keras.config.set_dtype_policy, policy)
        yield


@dataclasses.dataclass
class LockedPair:
    """Two runs, B in lockstep with A.

    Attributes:
        one, two: the Makers.
        steps: how many steps.
        a, b: the WatchedRuns.
        lock: the Lock that B was held by.
        rows: lockstep.StepRows.
        trainings: of both, None where ``make`` trained by itself.
    """

    one: Maker
    two: Maker
    steps: int
    a: WatchedRun
    b: WatchedRun
    lock: Lock
    rows: list
    trainings: tuple

    def again(self, change_a=None, change_b=None, steps=None):
        """The LockedPair of altered sides; only those are run again."""
        steps = steps or self.steps
        return case_of(self.one, self.two, steps, change_a, change_b,
                       a=None if change_a else (self.a, self.trainings[0]),
                       pairs=self.lock.pairs)


def case_of(one, two, steps, change_a=None, change_b=None, a=None,
            pairs=None):
    """Run two Makers, the second in lockstep with the first; a LockedPair."""
    run_a, training_a = a or one.run(steps, change=change_a)
    steps = min(steps, len(run_a.steps))
    lock = Lock(run_a, pairs)
    run_b, training_b = two.run(steps, lock, change_b)
    check_batches(training_a, training_b, steps)
    if not lock.pairs:
        raise InputError(
            "no weight of a has the size of one of b; give two models of one "
            "kind.")
    return LockedPair(one, two, steps, run_a, run_b, lock, rows_of(lock, run_b),
                (training_a, training_b))


def check_batches(a, b, steps):
    """Raise InputError where both give batches, and these are not the same."""
    if None in (a, b) or not a.batches or not b.batches:
        return
    for number in range(steps):
        one, two = (_arrays(each, number) for each in (a, b))
        for i, (mine, other) in enumerate(zip(one, two)):
            what = "inputs" if i == 0 else "targets"
            if mine.size == other.size and _same(mine, other, i > 0) or (
                    i and mine.size != other.size):
                continue
            raise InputError(
                f"the {what} of step {number + 1} are not the same in a and "
                "b; give both the same batches, in the same order.")


def _arrays(training, number):
    """The arrays of one step's batches, the micro-batches one after another.
    """
    size = training.accumulate
    parts = []
    for batch in training.batches[number * size:(number + 1) * size]:
        args, keywords = arguments(batch)
        arrays = [*args, *keywords.values()]
        parts.append([np.asarray(each.detach().cpu() if hasattr(
            each, "detach") else each) for each in arrays
            if hasattr(each, "__array__")])
    return [np.concatenate([each.reshape(-1) for each in some])
            for some in zip(*parts)] if parts else []


def _same(one, two, target):
    """Whether two arrays hold the same numbers, in whatever order of axes.

    Of labels, those that one side marks as to be ignored may differ: all by
    one number, that is below zero, or stands nowhere else.
    """
    labels = target and one.dtype.kind in "iu" and two.dtype.kind in "iu"
    if one.dtype.kind not in "fiub" or two.dtype.kind not in "fiub":
        return True
    one, two = one.astype(np.float64), two.astype(np.float64)
    if np.allclose(np.sort(one), np.sort(two), rtol=1e-6, atol=1e-12):
        return True
    wrong = one != two
    return labels and any(
        len(marks := set(each[wrong])) == 1 and (
            min(marks) < 0 or wrong.sum() > 1
            and not marks & {*each[~wrong]}) for each in (one, two))
