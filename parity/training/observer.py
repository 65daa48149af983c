"""Watching one training run: what every framework has in common.

A framework's file has a watcher, a class that tells the Observer of backward
passes, of the optimiser's updates and of the model's calls. In lockstep the
run is given another run's weights, buffers and gradients, so that each step
shows what it does alone.
"""

import contextlib

import numpy as np

from parity.tracing.trace import is_float
from parity.training import form
from parity.training.records import Part, WatchedRun, StepRecord


class Enough(BaseException):
    """Ends a user's own loop once all steps are seen."""


class Observer:
    """The state of a run that is watched.

    Args:
        framework: its name.
        steps: how many are kept.
        lock: what a run is held to, as lockstep.Lock; or None.
        lazy: whether a step ends when the model is called after its weights
            have changed, or else where the run says so.
        stop: whether the run is ended afterwards.
    """

    def __init__(self, framework, steps, lock=None, lazy=False, stop=True):
        self.run, self.steps = WatchedRun(framework), steps
        self.lock, self.lazy, self.stop = lock, lazy, stop
        self.arrays = self.put = None  # set by a framework once it can
        self.buffers: frozenset = frozenset()
        self.record = None
        self.updated, self.updates = False, 0

    @property
    def done(self):
        """Whether all steps are seen."""
        return len(self.run.steps) >= self.steps

    @property
    def number(self):
        """The present step, from 0."""
        return len(self.run.steps)

    def weights(self):
        """({path: trainable weight}, {path: buffer}), copies."""
        found = self.arrays()
        return ({path: array for path, array in found.items()
                 if path not in self.buffers},
                {path: array for path, array in found.items()
                 if path in self.buffers and is_float(array)})

    def begin(self):
        """Begin a step; in lockstep with the other's weights."""
        if self.lock is not None:
            self.lock.put(self)
        self.record = StepRecord()
        self.record.before, self.record.buffers_before = self.weights()
        self.updated = False

    def backward(self, loss, gradients):
        """Note a backward pass.

        Returns:
            {path: gradient} to take instead, or {}.
        """
        if self.record is None:
            return {}
        self.record.parts.append(Part(loss, gradients))
        return {} if self.lock is None else self.lock.raw(self)

    def updating(self, gradients, rates):
        """Note what an optimiser is given.

        Returns:
            {path: gradient} to give it instead, or {}.
        """
        if self.record is None:
            return {}
        if self.record.used is None:
            self.record.used = {}
        self.record.used |= gradients
        self.record.updates += 1
        self.updates += 1
        self.record.rates |= rates
        self.updated = True
        return {} if self.lock is None else self.lock.used(self)

    def passed(self):
        """Whether a step's update is over: the weights have changed."""
        if self.record is None or not (self.updated or self.record.parts):
            return False
        return self.updated or any(
            not np.array_equal(array, self.record.before[path])
            for path, array in self.weights()[0].items())

    def end(self, told=None):
        """End a step and begin the next."""
        if self.done or self.record is None:
            return
        record = self.record
        record.told = told
        record.after, record.buffers = self.weights()
        record.state = self.state()
        self.run.steps.append(record)
        self.record = None
        if not self.done:
            self.begin()
        elif self.stop:
            raise Enough

    def state(self):
        """{slot: {path: array}} of the optimiser."""
        return {}

    def drive(self, training, ended, declared):
        """Run a Training until enough is seen.

        Args:
            ended: called with a step's loss, or without one, where it is over.
            declared: runs a Training that has a loss alone.
        """
        with contextlib.suppress(Enough):
            if training.loop:
                made = training.loop()
                if hasattr(made, "__next__"):
                    for told in made:
                        ended(number_of(told))
                elif self.passed():
                    ended()
            elif training.step:
                for batch in training.batches:
                    told = form.called_step(training, batch)
                    told = (told[0] if isinstance(told, tuple) and told
                            else told)
                    ended(number_of(told))
            else:
                declared()


def number_of(value):
    """A loss as a number, or None where it is none."""
    try:
        if hasattr(value, "detach"):
            value = value.detach().cpu()
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        return None
    return float(array.reshape(())) if array.size == 1 else None
