"""What is kept of a training run, as NumPy arrays."""

import dataclasses
import math

import numpy as np


@dataclasses.dataclass
class Part:
    """One backward pass.

    Attributes:
        loss: a number, or None where it is not seen.
        gradients: {path of a parameter: gradient}.
    """

    loss: float | None
    gradients: dict


@dataclasses.dataclass
class StepRecord:
    """One step: one change of the weights.

    Attributes:
        parts: the Parts, one a backward pass.
        told: the loss that the user returned or yielded, or None.
        used: {path: gradient} as the optimiser got it, after clipping; None
            where no optimiser was seen.
        rates: {path: learning rate}; empty where it is not known.
        state: {slot: {path: array}} of the optimiser, after the step.
        before, after: {path: weight}.
        buffers_before, buffers: {path: running statistic}.
        batch: the arrays that came in.
        outputs: [(path of a module, its output)], in the order of calls.
        targets: for each backward pass what its loss was computed of, beside
            outputs, as far as the graph tells.
        updates: how often the optimiser was called.
    """

    parts: list = dataclasses.field(default_factory=list)
    told: float | None = None
    used: dict | None = None
    rates: dict = dataclasses.field(default_factory=dict)
    state: dict = dataclasses.field(default_factory=dict)
    before: dict = dataclasses.field(default_factory=dict)
    after: dict = dataclasses.field(default_factory=dict)
    buffers_before: dict = dataclasses.field(default_factory=dict)
    buffers: dict = dataclasses.field(default_factory=dict)
    batch: list = dataclasses.field(default_factory=list)
    outputs: list = dataclasses.field(default_factory=list)
    targets: list = dataclasses.field(default_factory=list)
    updates: int = 0

    @property
    def raw(self):
        """{path: gradient}: the sum of the parts'.

        It is their mean where the optimiser was called for each of them, and
        so adds them up by itself.
        """
        total: dict = {}
        for part in self.parts:
            for path, array in part.gradients.items():
                total[path] = total[path] + array if path in total else array
        if self.updates > 1:
            total = {path: array / self.updates
                     for path, array in total.items()}
        return total

    @property
    def gradients(self):
        """What moved the weights, as far as it is seen."""
        return self.raw if self.used is None or self.updates > 1 else (
            self.used)

    @property
    def loss(self):
        """What the user said the loss is, or else the sum of the parts'."""
        if self.told is not None:
            return self.told
        losses = [part.loss for part in self.parts if part.loss is not None]
        return sum(losses) / max(self.updates, 1) if losses else None


@dataclasses.dataclass
class Copy:
    """A module beside the model that has its weights too, as a teacher has.

    Attributes:
        kind: its class.
        paths: those of the model's weights that it has.
        seen: {path: weight}, as they were when it was called; equal ones once.
    """

    kind: str
    paths: list
    seen: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class WatchedRun:
    """A training run that was watched.

    Attributes:
        framework: of the model.
        optimizer: the optimiser's class or function, in a word; "" if none.
        rules: {path: rules.UpdateRule} read off the optimiser; or {}.
        steps: the StepRecords.
        places: {what: "file.py:12"}, where the user makes things.
        modules: {path: (class name, {setting: value})}.
        dropping: paths of modules that drop values at random.
        training: whether the model is in training mode; None if unknown.
        inner: whether the optimiser itself clips, so that ``used`` is not
            clipped yet.
        narrow: whether the framework has float32 inside a float64 run.
        accumulates: whether it collects the gradients of several calls.
        groups: {path: (which of the optimiser's groups it is in, how many there
            are)}, of more than one.
        copies: the Copies of the model, in the order in which they are called.
        notes: remarks, a sentence each.
    """

    framework: str
    optimizer: str = ""
    rules: dict = dataclasses.field(default_factory=dict)
    steps: list = dataclasses.field(default_factory=list)
    places: dict = dataclasses.field(default_factory=dict)
    modules: dict = dataclasses.field(default_factory=dict)
    dropping: list = dataclasses.field(default_factory=list)
    training: bool | None = None
    inner: bool = False
    accumulates: bool = False
    narrow: bool = False
    groups: dict = dataclasses.field(default_factory=dict)
    copies: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)

    @property
    def wide(self):
        """Whether every weight and running statistic is float64."""
        return bool(self.steps) and all(
            array.dtype == np.float64 for record in self.steps[:1]
            for arrays in (record.before, record.buffers_before)
            for array in arrays.values())

    @property
    def dtype(self):
        """That of the largest weight."""
        weights = self.steps[0].before.values() if self.steps else ()
        return max(weights, key=lambda array: array.size).dtype.name if (
            weights) else ""


def norm(arrays):
    """The global L2 norm of {path: array}."""
    return math.sqrt(sum(float(np.square(array, dtype=np.float64).sum())
                         for array in arrays.values()))
